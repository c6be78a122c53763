// A device kernel for tests: y = x + 1 on 16-bit codes, and whatever else the test asks for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay {

enum class Misdeed : std::uint8_t {
  kNone,
  kBehindOutput,
  kBeforeOutput,
  kBehindWorkspace,
  kPadding,  ///< writes between the elements of y
  kInput,
  kWorkspaceRead,  ///< y = the workspace's first bytes
  kWildWrite,
  kTrap,
  kHang,
  kTooManyThreads,
  kRunCount,  ///< y = x + 1 + how often the kernel ran in this process
};

struct Probe {
  const std::uint16_t* x = nullptr;
  std::uint16_t* y = nullptr;
  std::uint16_t* workspace = nullptr;
  std::int64_t count = 0, stride = 0, workspace_count = 0, y_storage = 0;
};

void launch_probe(const Probe& probe, Misdeed misdeed, cudaStream_t stream);

}  // namespace assay

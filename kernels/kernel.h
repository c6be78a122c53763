// Kernel: name, op, declared arithmetic, and one function from input tensors to pre-allocated outputs; the registry.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/params.h"
#include "oracle/tensor.h"

namespace assay {

/// One call. Outputs are pre-filled with a canary and must be written completely (the `rows` input, where present,
/// names the rows that must be written; others may be left).
struct Call {
  const Params& params;
  std::span<const TensorView> inputs;
  std::span<const OutputView> outputs;
  int fill = 0;  ///< 0 or 1: which of two patterns fills memory that is handed out without content (workspaces)
  bool bare =
      false;  ///< under a memory checker: device memory of exact size, no guards, no poison, no outputs brought back
};

/// What a run says about itself.
struct RunFacts {
  std::string variant;  ///< e.g. "tile 64x64, 4 splits"
  std::string device = {};  ///< device kernels: where it ran (DeviceInfo::text)
};

struct Kernel {
  std::string_view name;  ///< <idea>_<format>: "fa2_bf16"
  std::string_view op;
  std::string_view summary;     ///< one sentence
  std::vector<Format> formats;  ///< input formats it takes
  bool device = false;          ///< runs on a GPU (kernels/device/device_call.h)
  bool mutant = false;          ///< a planted fault: only in the mutant program
  std::string_view expects =
      {};  ///< mutants: the failure mode that must be reported, empty if the catalogue has none yet
  /// Mutants: the sound kernel; op, formats, device, contract and declaration are taken from it.
  std::string_view base = {};
  /// Mutants: the name of the switch in fault.h, "kScaleOff".
  std::string_view fault = {};
  /// Mutants: the public report it is modelled on ("flashinfer #4401"), empty if there is none.
  std::string_view report = {};
  /// A reason why the case is outside the kernel's contract, or nothing.
  std::optional<std::string> (*unsupported)(const Params&);
  Arithmetic (*declared)(const Params&);
  RunFacts (*run)(const Call&);
};

struct RegisterKernel {
  explicit RegisterKernel(const Kernel& kernel);
};
/// Sorted by name.
std::vector<const Kernel*> all_kernels();
const Kernel* find_kernel(std::string_view name);

}  // namespace assay

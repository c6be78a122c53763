// The test kernel's device code.
#include "tests/device/probe.cuh"

namespace assay {
namespace {

__device__ std::uint16_t runs = 0;

__global__ void probe_kernel(const Probe p, const Misdeed misdeed) {
  for (std::int64_t i = threadIdx.x; i < p.count; i += blockDim.x)
    p.y[i * p.stride] = static_cast<std::uint16_t>(p.x[i * p.stride] + 1);
  __syncthreads();
  if (threadIdx.x != 0) return;
  switch (misdeed) {
    case Misdeed::kBehindOutput: p.y[p.y_storage] = 1; break;
    case Misdeed::kBeforeOutput: p.y[-1] = 1; break;
    case Misdeed::kBehindWorkspace: p.workspace[p.workspace_count] = 1; break;
    case Misdeed::kPadding: p.y[1] = 1; break;
    case Misdeed::kInput: const_cast<std::uint16_t*>(p.x)[2] ^= 1; break;
    case Misdeed::kWorkspaceRead: p.y[0] = p.workspace[0]; break;
    case Misdeed::kWildWrite: *reinterpret_cast<volatile int*>(16) = 1; break;
    case Misdeed::kTrap: __trap();
    case Misdeed::kRunCount: p.y[0] = static_cast<std::uint16_t>(p.x[0] + 1 + runs++); break;
    case Misdeed::kHang:
      while (*const_cast<const volatile std::uint16_t*>(p.x) == p.x[0]) {
      }
      break;
    default: break;
  }
}

}  // namespace

void launch_probe(const Probe& probe, Misdeed misdeed, cudaStream_t stream) {
  const int threads = misdeed == Misdeed::kTooManyThreads ? 4096 : 64;
  probe_kernel<<<1, threads, 0, stream>>>(probe, misdeed);
}

}  // namespace assay

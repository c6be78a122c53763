// The one check of CUDA's return codes: every error becomes one of the exceptions of kernels/run_error.h.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace assay {

/// Does nothing for cudaSuccess. Otherwise throws, naming `what` and the CUDA error:
///   CannotRun            no device, no driver, no memory, or no code in this program for the device
///   ProcessSpoiled       the device context is lost (illegal address, trap, ECC, ...)
///   std::runtime_error   anything else (a refused launch, a bad argument)
void check_cuda(cudaError_t status, std::string_view what);

}  // namespace assay

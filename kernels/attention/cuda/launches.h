// Launchers of the attention forward kernels, for plain C++.
#pragma once

#include <cstdint>

#include "kernels/attention/cuda/forward_params.h"

namespace assay::cuda {

struct Bf16;
struct Fp16;
struct Fp32;

/// Keys per tile of the kernels whose tiles in shared memory have head size `dim`.
constexpr int keys_per_tile(std::int64_t dim) { return dim <= 64 ? 128 : 64; }
/// Query rows of a block, whatever the head size.
inline constexpr int kTileRows = 128;

// Each launch only asks for the kernel; a refused one is left in cudaGetLastError. Both head sizes are at most kDim and
// are padded to it; p describes at most 2^31 - 1 query tiles.

/// kDim 64, 128, 256; Element Bf16, Fp16.
template <class Element, int kDim>
void launch_fa2(const ForwardParams& p, CUstream_st* stream);
/// kDim 64, 128; Element Bf16, Fp16.
template <class Element, int kDim>
void launch_fa4(const ForwardParams& p, CUstream_st* stream);

/// Rows of Q that launch_naive takes together.
inline constexpr int kNaiveRows = 32;
/// Element Bf16, Fp16, Fp32; any head size. `scores` has room for `room` times kNaiveRows times p.kv_len.longest
/// numbers, room >= 1: query tiles are taken in groups of so many.
template <class Element>
void launch_naive(const ForwardParams& p, float* scores, std::int64_t room, CUstream_st* stream);

}  // namespace assay::cuda

// Tiles of head vectors in shared memory: their swizzle, the copies into them, and the fragments out of them.
#pragma once

#include <cstdint>

namespace assay::cuda {

/// 16 bytes, the unit of the swizzle and of copies.
inline constexpr int kChunk = 8;  // elements

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Byte offset of chunk `chunk` of row `row`. Chunks of a row are permuted by the row's last three bits, so that eight
/// rows' chunks of one number lie in different banks.
template <int kDim>
__device__ __forceinline__ std::uint32_t swizzled(int row, int chunk) {
  return static_cast<std::uint32_t>(row * kDim * 2 + ((chunk ^ (row & 7)) << 4));
}

/// Four 8x8 matrices; lane l names row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

/// Address of a 16-channel step of what `base` points to: base's own chunk is 0 or 1 under its row's permutation, whose
/// bits 1 and 2 the step's number enters by exclusive or.
__device__ __forceinline__ std::uint32_t channel_step(std::uint32_t base, int step) {
  return (base ^ static_cast<std::uint32_t>((step & 3) << 5)) + static_cast<std::uint32_t>((step >> 2) << 7);
}

/// 16 bytes from global to shared memory past the registers; the last 16 - bytes are zeros, and nothing behind the
/// first `bytes` is read.
__device__ __forceinline__ void copy_chunk(std::uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Copies rows of one head into tiles of kRows x kDim, zeros behind the last row and the last channel. Every thread of
/// the block has one chunk of every kThreads / (kDim / kChunk)-th row.
template <int kDim, int kThreads>
class RowCopier {
 public:
  static constexpr int kChunks = kDim / kChunk, kStep = kThreads / kChunks;
  static_assert(kStep % 8 == 0, "rows of one thread share their permutation");

  /// `head`: the head's row 0. `stride` in elements. `whole`: all vectors start at multiples of 16 bytes.
  __device__ RowCopier(const std::uint16_t* head, std::int64_t stride, int dim, bool whole)
      : row_(static_cast<int>(threadIdx.x) / kChunks),
        stride_(stride),
        to_(swizzled<kDim>(row_, static_cast<int>(threadIdx.x) % kChunks)),
        whole_(whole) {
    const int channel = static_cast<int>(threadIdx.x) % kChunks * kChunk, left = dim - channel;
    elements_ = left < 0 ? 0 : left < kChunk ? left : kChunk;
    from_ = head + row_ * stride + (elements_ == 0 ? 0 : channel);
  }

  /// Rows [first, first + kRows) into the tile at `tile`; those from `end` on are zeros.
  template <int kRows>
  __device__ __forceinline__ void copy(std::uint32_t tile, int first, int end) const {
    const std::uint16_t* from = from_ + first * stride_;
    const int left = end - first - row_;
    if (whole_) {
#pragma unroll
      for (int n = 0; n < kRows / kStep; ++n) {
        copy_chunk(tile + to_ + n * kStep * kDim * 2, from, n * kStep < left ? elements_ * 2 : 0);
        from += kStep * stride_;
      }
    } else {
#pragma unroll 1
      for (int n = 0; n < kRows / kStep; ++n) {
        copy_elements(tile + to_ + n * kStep * kDim * 2, from, n * kStep < left ? elements_ : 0);
        from += kStep * stride_;
      }
    }
  }

 private:
  /// The same for vectors that start anywhere.
  static __device__ void copy_elements(std::uint32_t to, const std::uint16_t* from, int count) {
    std::uint32_t words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      words[w] = 2 * w < count ? from[2 * w] : 0;
      words[w] |= static_cast<std::uint32_t>(2 * w + 1 < count ? from[2 * w + 1] : 0) << 16;
    }
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
  }

  int row_, elements_;
  std::int64_t stride_;
  std::uint32_t to_;
  bool whole_;
  const std::uint16_t* from_;
};

}  // namespace assay::cuda

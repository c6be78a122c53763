// The two 16-bit operand formats of the tensor cores: conversion in pairs, and their matrix instruction.
#pragma once

#include <cstdint>

namespace assay::cuda {

/// D = A B + D, m16n8k16: the block-FMA of one 16-element block per output on Hopper. A in four registers (rows g and
/// g + 8, columns 2t and 2t + 8), B in two (rows 2t and 2t + 8 of column g), D in four; g = lane / 4, t = lane % 4.
struct Bf16 {
  static constexpr bool kReachesFp32Subnormals = true;  ///< numbers below 2^-126 are numbers of the format
  /// The pair (low, high), each rounded to nearest even, low in the low half.
  static __device__ __forceinline__ std::uint32_t pack(float low, float high) {
    std::uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
  }
  static __device__ __forceinline__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                                  std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

struct Fp16 {
  static constexpr bool kReachesFp32Subnormals = false;
  static __device__ __forceinline__ std::uint32_t pack(float low, float high) {
    std::uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
  }
  static __device__ __forceinline__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                                  std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

}  // namespace assay::cuda

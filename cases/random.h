// Counter-based random numbers: a value depends on (seed, role, coordinates) only, never on another value.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace assay {

/// 2^64 divided by the golden ratio, made odd: the step of the Weyl sequence whose members mix64 turns into random bits
/// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

/// The finaliser of that paper (Stafford's variant 13 of MurmurHash3): a bijection of 64-bit words; flipping one input
/// bit flips each output bit with probability near 1/2.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Adds one word to a hash: for a given hash a bijection of the word.
constexpr std::uint64_t absorb(std::uint64_t hash, std::uint64_t word) { return mix64(hash + kGolden * (word + 1)); }

/// The key of one tensor's values. The role enters by FNV-1a, so q and k of one seed are independent.
constexpr std::uint64_t tensor_key(std::uint64_t seed, std::string_view role) {
  std::uint64_t name = 0xcbf29ce484222325U;
  for (const char c : role) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return absorb(absorb(0, seed), name);
}

/// The numbers of one run of elements: number i is mix64(origin + (i + 1) kGolden).
struct Stream {
  std::uint64_t origin = 0;
  constexpr std::uint64_t bits(std::int64_t i) const {
    return mix64(origin + kGolden * (static_cast<std::uint64_t>(i) + 1));
  }
};

/// Uniform in [0, 1), a multiple of 2^-53.
constexpr double unit_uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// Uniform in 0 ... n - 1 for 1 <= n <= 2^32; bias below n 2^-32.
constexpr std::int64_t below(std::uint64_t bits, std::int64_t n) {
  return static_cast<std::int64_t>(((bits >> 32) * static_cast<std::uint64_t>(n)) >> 32);
}

/// Standard normal by inversion: strictly increasing in the tail probability, largest magnitude 8.29.
/// Uses + - * / sqrt and log64 only, so every compiler gives the same bits.
double unit_normal(std::uint64_t bits);

/// out[i] = unit_normal(stream.bits(i)).
void unit_normals(const Stream& stream, std::span<double> out);

}  // namespace assay

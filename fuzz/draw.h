// Chance for drawn cases: the same numbers for the same seed, everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay {

/// splitmix64 over a counter.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  /// A stream of its own for every name.
  Draw(std::uint64_t seed, std::string_view name) : state_(seed) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  std::size_t operator()(std::size_t n) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return static_cast<std::size_t>((x ^ (x >> 31)) % n);
  }

 private:
  std::uint64_t state_;
};

}  // namespace assay

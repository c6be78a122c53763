// The extra counters and what is written there.
#include "fuzz/signal.h"

#include <cmath>
#include <string_view>

#include "cases/random.h"
#include "fuzz/suites.h"

namespace assay {
namespace {

constexpr std::size_t kCounters = 1 << 16;
/// volatile: nothing in the program reads the bytes, and an optimiser that sees that would leave the stores out.
__attribute__((section("__libfuzzer_extra_counters"), used)) volatile std::uint8_t counters[kCounters];

/// Powers of two from 2^-24 to 1 that `used` reaches; one more for beyond.
void signal_used(std::uint64_t hash, double used) {
  constexpr int kLowest = -24;
  for (int power = kLowest; power <= 1; ++power)
    if (used > std::ldexp(1.0, power - 1)) signal_feature(absorb(hash, static_cast<std::uint64_t>(power - kLowest)));
}

}  // namespace

void signal_feature(std::uint64_t feature) { counters[mix64(feature) % kCounters] = 1; }

void signal_case(std::uint64_t salt, const Case& c, const Regimes& regimes) {
  for (std::size_t axis = 0; axis < regimes.axes(); ++axis)
    for (std::uint32_t levels = regimes.reached(axis); levels != 0; levels &= levels - 1)
      signal_feature(absorb(absorb(salt, axis), levels & -levels));
  for (const auto& [cell, value] : coverage_cells(c)) signal_feature(tensor_key(tensor_key(salt + 1, cell), value));
}

void signal_use(std::uint64_t salt, const Measurement& measurement) {
  for (const OutputMeasure& output : measurement.outputs) {
    const std::uint64_t hash = tensor_key(salt + 2, output.role);
    signal_used(hash, output.worst.used);
    for (const TierMeasure& tier : output.tiers)
      signal_used(absorb(hash, static_cast<std::uint64_t>(tier.level)), tier.worst.used);
  }
}

// Where the linker puts the section's ends: what libFuzzer itself reads.
extern "C" volatile std::uint8_t __start___libfuzzer_extra_counters;
extern "C" volatile std::uint8_t __stop___libfuzzer_extra_counters;

std::size_t signal_count() {
  std::size_t count = 0;
  for (volatile std::uint8_t* at = &__start___libfuzzer_extra_counters; at != &__stop___libfuzzer_extra_counters; ++at)
    count += *at != 0;
  return count;
}

void signal_clear() {
  for (volatile std::uint8_t& counter : counters) counter = 0;
}

}  // namespace assay

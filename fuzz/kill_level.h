// Which level rejects a run of a mutant: the weakest rule that turns it into a failure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/runner.h"
#include "oracle/op.h"

namespace assay {

/// From the weakest rule to the strongest. kHarness: a crash, a hang, a write outside the outputs, a changed input, or
/// other bits in a repeated run. kClass: NaN, infinity or zero where a number is due, or the reverse. kT0 to kT2: o
/// outside that level's set. kLse: lse alone outside a set, of any level. kProbe: on an exact probe. kMetamorphic: two
/// runs that must agree do not.
enum class KillLevel : std::uint8_t { kHarness, kClass, kT0, kT1, kT2, kLse, kProbe, kMetamorphic };
inline constexpr std::array<std::string_view, 8> kKillLevels{"harness", "class", "T0",    "T1",
                                                             "T2",      "LSE",   "probe", "metamorphic"};
inline constexpr std::size_t kKillLevelCount = kKillLevels.size();
inline std::string_view kill_level_name(KillLevel level) { return kKillLevels[static_cast<std::size_t>(level)]; }

/// The weakest level that rejects the run, of those that one run decides. `evaluation`: at the highest level, of the
/// run's own declaration.
std::optional<KillLevel> kill_level(const Evaluation& evaluation, const RunOutcome& run);

/// The same, of outputs: kClass to kLse.
std::optional<KillLevel> kill_level(const Evaluation& evaluation, const std::vector<Tensor>& outputs);

/// Largest |o - truth| over elements whose truth is a number; +inf where o is none.
double largest_error(const Truth& truth, const std::vector<Tensor>& outputs);

}  // namespace assay

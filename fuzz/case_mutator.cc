// How often what happens to a case.
#include "fuzz/case_mutator.h"

#include <optional>

#include "fuzz/draw.h"
#include "fuzz/generate.h"
#include "fuzz/input_case.h"

namespace assay {
namespace {

constexpr std::size_t kFreshOneIn = 4;  // so many inputs come from nowhere

}  // namespace

std::string CaseMutator::mutate(std::span<const std::uint8_t> input, std::uint64_t seed) {
  Draw draw(seed);
  const Choose choose = [&](std::size_t n) { return draw(n); };
  const std::optional<Case> start = input_case(op_, input, limits_);
  if (!start || choose(kFreshOneIn) == 0) return fresh(choose);
  Case c = *start;
  for (std::size_t changes = 1 + choose(3); changes > 0; --changes) c = mutated(c, last_, choose, limits_).value_or(c);
  last_ = c;
  return print_case(c);
}

std::string CaseMutator::cross(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b, std::uint64_t seed) {
  Draw draw(seed);
  const std::optional<Case> first = input_case(op_, a, limits_), second = input_case(op_, b, limits_);
  if (first && second)
    if (const std::optional<Case> child = crossed(*first, *second, [&](std::size_t n) { return draw(n); }, limits_))
      return print_case(*child);
  return mutate(a, seed);
}

std::string CaseMutator::fresh(const Choose& choose) const {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i)
    if (const std::optional<Case> c = fresh_case(op_, choose, limits_)) return print_case(*c);
  return std::string(op_);
}

}  // namespace assay

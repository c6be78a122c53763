// How often what happens to a case.
#include "fuzz/case_mutator.h"

#include <algorithm>
#include <optional>

#include "fuzz/draw.h"
#include "fuzz/generate.h"
#include "fuzz/input_case.h"
#include "oracle/op.h"
#include "oracle/op_parameters.h"

namespace assay {
namespace {

constexpr std::size_t kFreshOneIn = 4;  // so many inputs come from nowhere

}  // namespace

std::string CaseMutator::mutate(std::span<const std::uint8_t> input, std::uint64_t seed) {
  Draw draw(seed);
  const Choose choose = [&](std::size_t n) { return draw(n); };
  const std::optional<Case> start = input_case(op_, input, limits_);
  if (!start || choose(kFreshOneIn) == 0) return line(fresh(choose), choose);
  Case c = *start;
  for (std::size_t changes = 1 + choose(3); changes > 0; --changes) c = mutated(c, last_, choose, limits_).value_or(c);
  last_ = c;
  return line(std::move(c), choose);
}

Case CaseMutator::fresh(const Choose& choose) const {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i)
    if (const std::optional<Case> c = fresh_case(op_, choose, limits_)) return *c;
  return parse_case(op_);
}

std::string CaseMutator::line(Case c, const Choose& choose) const {
  const std::string_view format = info(op_named(op_).input_format(c.params)).name;
  if (formats_.empty() || std::find(formats_.begin(), formats_.end(), format) != formats_.end()) return print_case(c);
  Case other = c;
  other.params.set(op_parameters(op_).format_key, formats_[choose(formats_.size())]);
  return print_case(legal_case(std::move(other), limits_).value_or(c));
}

}  // namespace assay

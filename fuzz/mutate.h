// Mutation of cases: one small legal change of parameters, sources or single values at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "cases/case.h"

namespace assay {

/// A number below n (n >= 1): all the chance a mutation has.
using Choose = std::function<std::size_t(std::size_t)>;

struct MutationLimits {
  std::int64_t elements = 40000;  ///< of all inputs and outputs together
  std::size_t overrides = 48;
  bool dictionary = false;  ///< elements may become NaN, infinite, or another value of the dictionary
};

/// legal_case (cases/legal.h), if the case is within the limits.
std::optional<Case> legal_case(Case c, const MutationLimits& limits);

/// `c` with one change: another seed, argument or recipe of a source; another number or word, or `other`'s value, for a
/// parameter; `other`'s source; elements moved by a few units in the last place, negated, scaled by two, or set to
/// another element's value or one of a dictionary; or overrides taken back. Nothing if the change turned out to be illegal. No other file or
/// file source is touched.
std::optional<Case> mutated(const Case& c, const Case& other, const Choose& choose, const MutationLimits& limits);

}  // namespace assay

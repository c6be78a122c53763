// The size of a case: what a minimiser makes smaller, as one total order.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "cases/case.h"

namespace assay {

/// Compared member by member, in this order. Two cases of equal size are the same case.
struct CaseSize {
  std::int64_t elements = 0;  ///< storage of all inputs and outputs, used or not
  std::size_t options = 0;    ///< parameters that are not the default, and a poison that is not
  std::int64_t values = 0;    ///< sum of value_size over the elements that sources fill
  std::size_t overrides = 0;
  std::size_t length = 0;  ///< of the case line,
  std::string line;        ///< and the line
  auto operator<=>(const CaseSize&) const = default;
};

/// Throws InputError as materialize does.
CaseSize case_size(const Case& c);

/// 0 for 0, 1 for 1; for other powers of two, negative numbers and longer fractions more; 8 for infinities and NaN.
int value_size(double value);

}  // namespace assay

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
  std::int64_t values = 0;    ///< value_size summed over the elements that sources fill, and kOverride per override
  std::size_t overrides = 0;
  std::size_t length = 0;  ///< of the case line,
  std::string line;        ///< and the line
  auto operator<=>(const CaseSize&) const = default;
};

/// Throws InputError as materialize does.
CaseSize case_size(const Case& c);
/// case_size(c) < than, without looking at values where elements and options decide.
bool is_smaller(const Case& c, const CaseSize& than);
/// CaseSize::elements alone.
std::int64_t case_elements(const Case& c);

/// 0 for 0, 1 for 1; for other powers of two, negative numbers and longer fractions more, kLongNumber at most; 8 for
/// infinities and NaN.
int value_size(double value);
inline constexpr int kLongNumber = 12;
/// Less than a long number less 1: a plain value by an override is smaller than a random one. Together with a special
/// value more than a long number: to leave such an override out makes a case smaller.
inline constexpr int kOverride = 8;

}  // namespace assay

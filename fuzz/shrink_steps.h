// Shrink steps: every way to make a case smaller by one change, for any op.
#pragma once

#include <vector>

#include "cases/case.h"

namespace assay {

/// Kinds of change, in the order in which a minimiser tries them.
enum class ShrinkKind : std::uint8_t {
  kNumber,     ///< one integer parameter: 1, 2, powers of two and one more, halves of the way down, one less
  kTwo,        ///< two integer parameters together: their ratio or their difference stays
  kList,       ///< one number of a list, or one entry of all lists whose length a parameter gives
  kOption,     ///< one parameter back to its default, or one of its parts joined by '+' left out; poison
  kReal,       ///< one parameter that is a real number: 1, 2, a power of two, fewer digits
  kOverrides,  ///< all, halves, quarters, ... single overrides left out
  kSource,     ///< one tensor from a plainer recipe, plainer arguments, a smaller seed
  kValue,      ///< one value of a short tensor, or of an override: 0, 1, a power of two
};
inline constexpr std::size_t kShrinkKinds = 8;

/// Legal cases that differ from `c` by one change of that kind and are smaller by case_size, the boldest change first.
/// Parameters that the change leaves without meaning (the page size of what is not paged any more, lengths above the
/// longest) go with it, and so do sources and overrides of tensors that are gone.
std::vector<Case> shrink_steps(const Case& c, ShrinkKind kind);

}  // namespace assay

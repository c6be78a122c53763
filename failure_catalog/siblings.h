// Cases like another one on which a fault has more to show: what a second look at a kernel asks it.
#pragma once

#include <string>
#include <vector>

#include "cases/case.h"

namespace assay {

struct Sibling {
  Case c;
  std::string what;  ///< "other seeds, 8 heads for 2, the LSE": how it differs, ends "on ..."
};

/// Other seeds in all of them. Masks, layout, formats and options stay, and lengths modulo 128; then rows, keys and the
/// LSE join, plain values stand in for special ones, and at last options that bend logits are left out, since a fault
/// that shows without them is easier to name. Files keep their values. Nearest to the case first.
std::vector<Sibling> siblings(const Case& c);

}  // namespace assay

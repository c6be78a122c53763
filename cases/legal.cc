// What is left of a changed case once everything that lost its meaning is gone.
#include "cases/legal.h"

#include <algorithm>

#include "cases/override.h"
#include "oracle/error.h"

namespace assay {

std::optional<Case> legal_case(Case c) {
  try {
    const Op& op = op_named(c.op);
    c.params = op.canonical(c.params);
    const std::vector<InputSpec> specs = op.inputs(c.params);
    std::erase_if(c.sources, [&](const auto& item) {
      return std::none_of(specs.begin(), specs.end(),
                          [&](const InputSpec& s) { return s.layout.role == item.first && s.values.empty(); });
    });
    std::erase_if(c.overrides, [&](const Override& item) {
      try {
        parse_override(print_override(item), specs);
        return false;
      } catch (const InputError&) {
        return true;
      }
    });
    return parse_case(print_case(c));
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace assay

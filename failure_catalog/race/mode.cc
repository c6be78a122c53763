// M29: runs of the same bytes in the same process write different bits.
#include <fmt/format.h>

#include "failure_catalog/repeated.h"

namespace assay {
namespace {

std::optional<Diagnosis> detect(const Scene& scene) {
  const std::optional<Repetition> again = repeated(scene, 2);
  if (!again || again->settles) return std::nullopt;
  return Diagnosis{
      0.99, fmt::format("runs of the same bytes in the same process write different bits: {}", again->difference)};
}

const RegisterMode kRegister({.name = "race", .id = "M29", .title = "Bits that depend on the run", .detect = detect});

}  // namespace
}  // namespace assay

// M30: what ran before decides the bits: repeated, the call settles on other outputs, and a fresh process agrees with
// them.
#include <fmt/format.h>

#include "failure_catalog/repeated.h"

namespace assay {
namespace {

std::optional<Diagnosis> detect(const Scene& scene) {
  const std::optional<Repetition> again = repeated(scene, 1);
  if (!again || !again->settles) return std::nullopt;
  return Diagnosis{0.99,
                   fmt::format("the outputs of this call are those of one that follows another: repeated, the call "
                               "settles on other bits: {}",
                               again->difference)};
}

const RegisterMode kRegister(
    {.name = "history", .id = "M30", .title = "State left by the call before", .detect = detect});

}  // namespace
}  // namespace assay

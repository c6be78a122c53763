// Repeats the failing call.
#include "failure_catalog/repeated.h"

#include <fmt/format.h>

namespace assay {
namespace {

/// First stored element that differs, or nothing.
std::optional<std::string> difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::int64_t i = 0; i < a[k].layout.storage; ++i) {
      const std::uint64_t was = a[k].view().code(i), is = b[k].view().code(i);
      if (was == is) continue;
      return fmt::format("element {} of {} is {:.9g} and {:.9g}", i, a[k].layout.role, decode(a[k].layout.format, was),
                         decode(a[k].layout.format, is));
    }
  return std::nullopt;
}

}  // namespace

std::optional<Repetition> repeated(const Scene& scene, int times) {
  if (scene.experiment == nullptr) return std::nullopt;
  const auto run = [&] { return scene.experiment->rerun(Freshness::kSameProcess); };
  std::optional<std::string> differs;
  for (int n = 0; n < times && !differs; ++n) {
    const auto again = run();
    if (!again) return std::nullopt;
    differs = difference(scene.outputs, *again);
  }
  if (!differs) return std::nullopt;
  const auto later = run(), last = run();
  if (!later || !last) return std::nullopt;
  return Repetition{!difference(*later, *last) && difference(scene.outputs, *last), *differs};
}

}  // namespace assay

// Registry of failure modes.
#include "failure_catalog/mode.h"

#include <algorithm>
#include <deque>

namespace assay {
namespace {

/// A deque: pointers to its elements stay valid while it grows.
std::deque<Mode>& registry() {
  static std::deque<Mode> modes;
  return modes;
}

}  // namespace

RegisterMode::RegisterMode(const Mode& mode) { registry().push_back(mode); }

std::vector<const Mode*> all_modes() {
  std::vector<const Mode*> modes;
  for (const Mode& mode : registry()) modes.push_back(&mode);
  std::sort(modes.begin(), modes.end(), [](const Mode* a, const Mode* b) { return a->id < b->id; });
  return modes;
}

const Mode* find_mode(std::string_view name) {
  for (const Mode& mode : registry())
    if (mode.name == name || mode.id == name) return &mode;
  return nullptr;
}

}  // namespace assay

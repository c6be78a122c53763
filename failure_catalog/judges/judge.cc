// Registry of foreign judges, and their customary inputs.
#include "failure_catalog/judges/judge.h"

#include <algorithm>
#include <deque>

namespace assay {
namespace {

/// A deque: pointers to its elements stay valid while it grows.
std::deque<Judge>& registry() {
  static std::deque<Judge> judges;
  return judges;
}

void replace_all(std::string& text, std::string_view from, const auto& next) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const std::string to = next();
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

}  // namespace

RegisterJudge::RegisterJudge(const Judge& judge) { registry().push_back(judge); }

std::vector<const Judge*> all_judges() {
  std::vector<const Judge*> judges;
  for (const Judge& judge : registry()) judges.push_back(&judge);
  std::sort(judges.begin(), judges.end(), [](const Judge* a, const Judge* b) { return a->name < b->name; });
  return judges;
}

const Judge* find_judge(std::string_view name) {
  for (const Judge& judge : registry())
    if (judge.name == name) return &judge;
  return nullptr;
}

std::vector<Case> customary_cases(const Judge& judge, Format dtype, std::uint64_t seed) {
  std::vector<Case> cases;
  for (const std::string_view line : judge.inputs) {
    std::string text(line);
    replace_all(text, "{s}", [&] { return std::to_string(seed++); });
    replace_all(text, "{dtype}", [&] { return std::string(info(dtype).name); });
    cases.push_back(parse_case(text));
  }
  return cases;
}

}  // namespace assay

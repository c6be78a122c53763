// One level of every factor, at random: what the pairwise suites are drawn from, without their cover.
#include "fuzz/generate.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/pairwise.h"
#include "oracle/error.h"

namespace assay {
namespace {

/// The op's plans, made once; empty for an op without any.
const std::vector<Plan>& plans_of(std::string_view op) {
  static std::map<std::string, std::vector<Plan>, std::less<>> known;
  if (const auto at = known.find(op); at != known.end()) return at->second;
  std::vector<Plan>& plans = known[std::string(op)];
  try {
    for (const char* suite : {"edge", "adversarial", "fuzz"}) plans.push_back(plan_of(op, suite));
  } catch (const InputError&) {
    plans.clear();
  }
  return plans;
}

std::string drawn_line(const Plan& plan, const Choose& choose) {
  std::vector<std::size_t> row;
  for (const Levels& levels : plan.factors) row.push_back(choose(3) == 0 ? 0 : choose(levels.size()));
  return planned_line(plan, std::move(row), choose(65536), choose);
}

}  // namespace

std::optional<Case> fresh_case(std::string_view op, const Choose& choose, const MutationLimits& limits) {
  const std::vector<Plan>& plans = plans_of(op);
  const std::string line = plans.empty() ? std::string(op) : drawn_line(plans[choose(plans.size())], choose);
  Case c;
  try {
    c = parse_case(line);
  } catch (const InputError&) {
    return std::nullopt;  // levels that cannot stand together
  }
  const std::optional<Case> legal = legal_case(std::move(c), limits);
  if (!legal) return std::nullopt;
  c = *legal;
  for (std::size_t changes = choose(4); changes > 0; --changes) c = mutated(c, c, choose, limits).value_or(c);
  return c;
}

}  // namespace assay

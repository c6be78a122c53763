// Greedy pairwise cover over fragments of a case line, then further distinct combinations up to the suite's size.
#include "fuzz/pairwise.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "fuzz/draw.h"
#include "oracle/error.h"

namespace assay {
namespace {

using Row = std::vector<std::size_t>;
using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

bool excluded(const Plan& plan, const Row& row, std::size_t a, std::size_t b) {
  return plan.excludes != nullptr && plan.excludes(plan.factors[a][row[a]], plan.factors[b][row[b]]);
}

/// Of two levels that exclude each other the later one gives way to level 0, unless it is among `kept`.
void make_possible(const Plan& plan, Row& row, std::span<const std::size_t> kept = {}) {
  for (std::size_t a = 0; a < row.size(); ++a)
    for (std::size_t b = a + 1; b < row.size(); ++b)
      if (excluded(plan, row, a, b)) row[std::find(kept.begin(), kept.end(), b) == kept.end() ? b : a] = 0;
}

}  // namespace

Plan plan_of(std::string_view op, std::string_view suite) {
  if (op == "attention") return attention_plan(suite);
  if (op == "softmax") return softmax_plan(suite);
  if (op == "merge") return merge_plan(suite);
  throw InputError(fmt::format("suite '{}': op '{}' has no plan of cases", suite, op));
}

std::string planned_line(const Plan& plan, std::vector<std::size_t> row, std::size_t seed, const Pick& pick) {
  make_possible(plan, row);
  std::vector<std::string> words;
  for (std::size_t f = 0; f < row.size(); ++f) {
    std::istringstream level(plan.factors[f][row[f]]);
    for (std::string word; level >> word;) {
      if (const std::size_t at = word.find("{s}"); at != std::string::npos) word.replace(at, 3, std::to_string(seed++));
      words.push_back(std::move(word));
    }
  }
  std::string line(plan.op);
  if (plan.settle != nullptr) return line + plan.settle(words, pick);
  for (const std::string& word : words) line += " " + word;
  return line;
}

std::vector<std::string> pairwise_lines(std::string_view op, std::string_view suite) {
  const Plan plan = plan_of(op, suite);
  Draw choices(plan.seed);
  std::set<Pair> open;
  for (std::size_t a = 0; a < plan.factors.size(); ++a)
    for (std::size_t b = a + 1; b < plan.factors.size(); ++b)
      for (std::size_t i = 0; i < plan.factors[a].size(); ++i)
        for (std::size_t j = 0; j < plan.factors[b].size(); ++j)
          if (plan.excludes == nullptr || !plan.excludes(plan.factors[a][i], plan.factors[b][j])) open.insert({a, i, b, j});
  const auto gain = [&](const Row& row) {
    std::size_t count = 0;
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = a + 1; b < row.size(); ++b) count += open.count({a, row[a], b, row[b]});
    return count;
  };
  std::vector<std::string> lines;
  while (lines.size() < plan.size || !open.empty()) {
    Row best;
    std::size_t best_gain = 0;
    const std::size_t tries = open.empty() ? 1 : 20;
    for (std::size_t attempt = 0; attempt < tries; ++attempt) {
      Row row;
      for (const Levels& levels : plan.factors) row.push_back(choices(levels.size()));
      if (attempt == 0 && !open.empty()) {  // at least one open pair, so that the cover ends
        const auto& [a, i, b, j] = *std::next(open.begin(), static_cast<std::ptrdiff_t>(choices(std::min<std::size_t>(open.size(), 64))));
        row[a] = i, row[b] = j;
        make_possible(plan, row, std::array{a, b});
      } else {
        make_possible(plan, row);
      }
      if (const std::size_t g = gain(row); best.empty() || g > best_gain) best = row, best_gain = g;
    }
    for (std::size_t a = 0; a < best.size(); ++a)
      for (std::size_t b = a + 1; b < best.size(); ++b) open.erase({a, best[a], b, best[b]});
    lines.push_back(planned_line(plan, best, lines.size() * 8 + 1, [&](std::size_t n) { return choices(n); }));
  }
  return lines;
}

}  // namespace assay

// A pairwise cover: case lines in which every pair of factor levels that can stand together stands together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// One choice of a factor: words of the case line, where {s} stands for a fresh seed and other names in braces for what `settle`
/// puts there.
using Levels = std::vector<std::string>;
/// Chooses a number below n.
using Pick = std::function<std::size_t(std::size_t)>;

/// What a suite of an op combines, and how many lines it has at least.
struct Plan {
  std::string_view op;
  std::vector<Levels> factors;
  std::size_t size = 0;
  std::uint64_t seed = 0;  ///< of the choices
  /// Levels of two factors that cannot stand together; no pair with a level 0.
  bool (*excludes)(const std::string&, const std::string&) = nullptr;
  /// The line's fields, with a space before each, from the chosen words; null: as they are.
  std::string (*settle)(const std::vector<std::string>& words, const Pick& pick) = nullptr;
};

/// The plans for suite "edge" or "adversarial"; attention has two more, "dense", and "fuzz" for single draws.
Plan attention_plan(std::string_view suite);
Plan softmax_plan(std::string_view suite);
Plan merge_plan(std::string_view suite);

/// The line of a row of levels, one per factor; its seeds count up from `seed`.
std::string planned_line(const Plan& plan, std::vector<std::size_t> row, std::size_t seed, const Pick& pick);

/// The op's plan for one of those suites. Throws InputError for an op without plan.
Plan plan_of(std::string_view op, std::string_view suite);

/// A fuzzed attention case line: `pick(n)` chooses below n, once for each factor and seed. Long keys and large heads are left out, so
/// that a case takes milliseconds.
std::string chosen_line(const Pick& pick);

/// An op's lines of one of those suites; the same list on every machine. Throws InputError for an op without plan.
std::vector<std::string> pairwise_lines(std::string_view op, std::string_view suite);

}  // namespace assay

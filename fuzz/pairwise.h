// A pairwise cover: case lines in which every pair of factor levels that can stand together stands together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// One choice of a factor: text for the case line, where {s} stands for a fresh seed and {lens} for ragged lengths.
using Levels = std::vector<std::string>;

/// What a suite of an op combines, and how many lines it has at least.
struct Plan {
  std::string_view op;
  std::vector<Levels> factors;
  std::size_t size = 0;
  std::uint64_t seed = 0;  ///< of the choices
};

/// The plans for suite "edge" or "adversarial"; attention's stands in pairwise.cc.
Plan softmax_plan(std::string_view suite);
Plan merge_plan(std::string_view suite);

/// A fuzzed attention case line: `pick(n)` chooses below n, once for each factor and seed. Long keys and large heads are left out, so
/// that a case takes milliseconds.
std::string chosen_line(const std::function<std::size_t(std::size_t)>& pick);

/// An op's lines of the suite "edge" or "adversarial"; the same list on every machine. Throws InputError for an op without plan.
std::vector<std::string> pairwise_lines(std::string_view op, std::string_view suite);

}  // namespace assay

// A pairwise cover: case lines in which every pair of factor levels that can stand together stands together.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// A fuzzed case line: `pick(n)` chooses below n, once for each factor and seed. Long keys and large heads are left out, so
/// that a case takes milliseconds.
std::string chosen_line(const std::function<std::size_t(std::size_t)>& pick);

/// Lines of the suite "edge" or "adversarial"; the same list on every machine.
std::vector<std::string> pairwise_lines(std::string_view suite);

}  // namespace assay

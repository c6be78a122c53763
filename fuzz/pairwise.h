// A pairwise cover: case lines in which every pair of factor levels that can stand together stands together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// Lines of the suite "edge" or "adversarial"; the same list on every machine.
std::vector<std::string> pairwise_lines(std::string_view suite);

}  // namespace assay

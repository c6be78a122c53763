// Suites: named lists of distinct case lines, from files of curated lines and from a pairwise cover.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"

namespace assay {

struct SuiteInfo {
  std::string_view name;
  std::string_view summary;
};

std::vector<SuiteInfo> all_suites();

/// The suite's cases, distinct and in a fixed order. Throws InputError for an unknown name or a bad line (file and line
/// number named).
std::vector<Case> suite_cases(std::string_view name);

/// Coverage cells of a case, for the record's counts: recipe, mask, layout, dtype, residue (key length mod 64), length.
std::map<std::string, std::string> coverage_cells(const Case& c);

}  // namespace assay

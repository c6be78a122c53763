// Suites: named lists of distinct case lines, from files of curated lines and from a pairwise cover.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "kernels/runner.h"

namespace assay {

struct SuiteInfo {
  std::string_view name;
  std::string_view summary;
};

std::vector<SuiteInfo> all_suites();

/// The suite's cases, distinct and in a fixed order. Throws InputError for an unknown name or a bad line (file and line
/// number named).
std::vector<Case> suite_cases(std::string_view name);

/// A kernel of one op or dtype is not asked about cases of another: those are no skipped cases, they are not its cases.
bool takes(const KernelIdentity& kernel, const Case& c);

/// Coverage cells of a case, for the record's counts: its recipe, and what Op::cells says.
std::map<std::string, std::string> coverage_cells(const Case& c);

}  // namespace assay

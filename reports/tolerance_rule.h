// The comparison of a tolerance on |y - r| with a case's bound, for `assay tolerance`.
#pragma once

#include <vector>

#include "reports/tolerance.h"

namespace assay {

/// `bound`: the judged levels of the evaluation, ascending; the last decides what the bound rejects.
RuleReport rule_report(const Op& op, const Problem& problem, const Evaluation& evaluation,
                       const std::vector<JudgedLevel>& bound, const Rule& rule);

}  // namespace assay

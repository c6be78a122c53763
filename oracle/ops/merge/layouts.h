// Merge's parameter table and everything its registration names that has no header of its own.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/merge/merge.h"

namespace assay {

inline constexpr std::array<ParamInfo, 13> kMergeParams{{
    {"parts", "2", "partial states of each row"},
    {"rows", "1", "rows"},
    {"dv", "64", "dimension of o"},
    {"dtype", "bf16", "format of o_parts: fp32, fp16, bf16"},
    {"out", "", "format of o (default dtype)"},
    {"base", "e", "of lse_parts and lse: e, 2"},
    {"lse", "yes", "whether the merged LSE is an output: yes, no"},
    {"empty_part", "-inf", "LSE that marks an empty part: -inf, either (+inf too)"},
    {"empty", "zero", "o of a row whose parts are all empty: zero, nan"},
    {"empty_lse", "-inf", "LSE of such a row: -inf, inf"},
    {"masked_nonfinite", "propagates", "non-finite o of empty parts: ignored, propagates"},
    {"layout", "parts", "outermost axis of o_parts and lse_parts in memory: parts, rows"},
    {"pad", "0", "unused elements behind each vector of o_parts and o"},
}};

Params canonical_merge(const Params& params);
std::vector<InputSpec> merge_inputs(const Params& params);
std::vector<TensorLayout> merge_outputs(const Params& params);
Format merge_input_format(const Params& params);
/// parts, base, empty_part, layout, dtype and length (rows).
std::map<std::string, std::string> merge_cells(const Params& params);

std::vector<KnownWrong> merge_known_wrong(const Problem& problem, const Evaluation& evaluation);
std::string merge_digits(const Problem& problem, std::size_t output, std::int64_t index, int count);
std::vector<BoundTerm> merge_bound_terms(const Problem& problem, const Arithmetic& arithmetic);
std::vector<PlantedFault> merge_planted_faults();
PlantedOutputs merge_plant(const Problem& problem, std::size_t fault, double size);
FaultSite merge_fault_site(const Problem& problem, std::size_t fault, std::size_t row);

}  // namespace assay

// Softmax's parameter table and everything its registration names that has no header of its own.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/softmax/softmax.h"

namespace assay {

inline constexpr std::array<ParamInfo, 12> kSoftmaxParams{{
    {"rows", "1", "rows"},
    {"n", "64", "elements of a row"},
    {"dtype", "bf16", "format of x: fp32, fp16, bf16"},
    {"out", "", "format of y (default dtype)"},
    {"scale", "1", "factor of x, an fp32 number"},
    {"mask", "none", "none, bool, additive"},
    {"steps", "0", "keys per step of the online recurrence whose maxima and sums are outputs; 0 = none"},
    {"lse", "none", "none, e (natural), 2 (base two)"},
    {"empty", "zero", "y of a row without admissible key: zero, nan, mean"},
    {"empty_lse", "-inf", "LSE of such a row: -inf, inf"},
    {"pad", "0", "unused elements behind each row of x and y"},
    {"offset", "0", "unused elements in front of x and y"},
}};

Params canonical_softmax(const Params& params);
std::vector<InputSpec> softmax_inputs(const Params& params);
std::vector<TensorLayout> softmax_outputs(const Params& params);
Format softmax_input_format(const Params& params);
/// mask, steps, layout, dtype, residue (n mod 64) and length.
std::map<std::string, std::string> softmax_cells(const Params& params);

std::vector<KnownWrong> softmax_known_wrong(const Problem& problem, const Evaluation& evaluation);
std::string softmax_digits(const Problem& problem, std::size_t output, std::int64_t index, int count);
std::vector<BoundTerm> softmax_bound_terms(const Problem& problem, const Arithmetic& arithmetic);
std::vector<PlantedFault> softmax_planted_faults();
PlantedOutputs softmax_plant(const Problem& problem, std::size_t fault, double size);
FaultSite softmax_fault_site(const Problem& problem, std::size_t fault, std::size_t row);

}  // namespace assay

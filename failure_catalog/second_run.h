// Second runs of the kernel under test on changed inputs, judged like the first; and changes that several modes try.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "failure_catalog/mode.h"

namespace assay {

/// Some level rejects an element of the row.
bool row_fails(const Measurement& measurement, std::size_t row);
std::vector<std::size_t> failing_rows(const Measurement& measurement);

/// What the kernel under test makes of another problem with the same rows. Nothing where it cannot be asked, refuses
/// the problem, or its runs are spent.
std::optional<Measurement> second_run(const Scene& scene, const Problem& problem);
bool all_right(const Measurement& measurement, const std::vector<std::size_t>& rows);

/// The problem with every code of one input changed, used or not; `change` gets the code's value and returns the new
/// one.
Problem with_values(Problem problem, std::string_view role, const std::function<double(double)>& change);
/// The problem with all its logits times a factor, but for a soft cap.
Problem with_logits_times(Problem problem, double factor);
/// The case's problem with other bytes in storage that no element uses.
Problem with_poison(const Scene& scene, Poison poison);
/// The tensor of that role holds vectors, not masks, factors or lengths: "q", "k_prefix", "x", "o_parts", ...
bool holds_vectors(std::string_view role);

/// Some input has storage between its vectors: wrong strides lead there, and what lies there can seem to be used.
bool has_gaps(const Problem& problem);

/// False for rows without an admissible key, or with logits of -inf only.
bool has_weights(const RowFacts& facts);

/// Calls f(output, i, code) for every element of an output that some level rejects; i indexes OutputTruth's arrays.
template <class F>
void for_each_rejected(const Scene& scene, F&& f) {
  for (std::size_t k = 0; k < scene.outputs.size(); ++k) {
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    for (std::size_t i = 0; i < truth.element.size(); ++i) {
      const std::uint64_t code = scene.outputs[k].view().code(truth.element[i]);
      if ((truth.classes[i] | scene.evaluation.bound.outputs[k].also[i]) == kAnything) continue;
      const bool canary = code == canary_code(truth.layout.format);
      if (canary || !accepted(scene.evaluation, k, i, code)) f(k, i, code);
    }
  }
}

/// "b 0 h 1 q 17" or "row 17".
std::string row_name(const Scene& scene, std::size_t row);

}  // namespace assay

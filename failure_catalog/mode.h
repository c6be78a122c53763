// Mode: a named way to be wrong, as data with proof: detector or hypotheses, witness case, mutants. One folder per
// mode.
//
// What a mode's author must know:
//
//  - A mode offers at least one of two things. `detect` looks for a signature (exact zeros, NaN in certain rows, other
//    bits in a rerun) and says how specific it is. `hypotheses` says what the outputs would be under the fault, for
//    any row of the truth; the classifier fits parameters, asks whether the hypothesis explains the outputs (trial.h),
//    and compares it with those of all other modes. Wherever a fault has a prediction, prefer the hypothesis: it holds
//    for faults of any size and on any case, and brings its own proof.
//  - A prediction is exact: no rounding, no tau. `scene.attention()->counterfactual` computes one row under changed
//    keys, weights, heads, values (Hypothesis), or from any numerator and denominator (mix). Faults of addresses are
//    said best as another Problem with an AttentionView of its own: keep both alive in a shared_ptr captured by
//    `predict`. Return nothing for rows that the fault leaves alone.
//  - Cost: a scene samples up to 48 rows, half of them failing. A hypothesis that does not explain the first four
//    failing rows costs no more than those, so dozens are fine; thousands are not: find an offset or a key from the
//    residuals. Hypotheses are asked one after another; make predictions lazily, inside `predict`.
//  - `detect` and `hypotheses` are called for every failing case of every op: return nothing unless the op (and what
//    the mode needs of the case: a window, pages, splits) is there.
//  - Confidence of a signature: 0.95 if a law holds for every judged row (exactly these rows, no other), 0.9 if for
//    every rejected one, less for a pattern. A hypothesis that explains everything has 0.97, so a fitting hypothesis
//    beats a pattern and a signature above 0.97 must be a proof (other bits on the same bytes, the canary itself).
//    Below 0.985 every other signature of 0.9 or more is a rival; one below 0.95 is not believed before siblings of
//    the case are asked.
//  - Two hypotheses whose predictions, or whose residuals, differ by less than noise are rivals on this input. The one
//    of smaller `cost` is named (then the earlier mode); `follow_up`, where one of the two offers it, changes the
//    problem so that it separates them, and what is left goes to siblings of the case (second_look.h), both by itself.
//  - A convention that differs from the declared one (alignment, window ends, base or sign of the LSE, empty rows) is
//    evidence that begins with "convention: ".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "failure_catalog/scene.h"

namespace assay {

/// A fault's parameter as the outputs show it.
struct Estimate {
  std::string parameter;  ///< "softmax scale over the declared one", "keys of logit 0 and value 0"
  double value = 0, standard_error = 0;
  double budget = 0;  ///< errors inside the tolerance could shift the value by so much besides
};

struct Diagnosis {
  double confidence = 0;      ///< in (0, 1]; the classifier takes the largest
  std::string evidence = {};  ///< one sentence with numbers
  std::optional<Estimate> estimate = std::nullopt;
  std::vector<std::string> rivals = {};  ///< modes that cannot be told apart from this one on this input
};

/// One way in which a mode could have made the outputs.
struct Supposition {
  Trial::PredictAt predict;                           ///< of a row of the truth; without parameter: of (row, 0)
  std::function<std::string(const FitAt&)> evidence;  ///< the sentence, once fitted
  std::optional<Parameter> parameter = std::nullopt;
  std::string parameter_name = {};  ///< of the estimate
  double cost = 0;                  ///< how far-fetched, beside other hypotheses that fit as well
};

/// dO/dt and dLSE/dt of a fault's parameter at 0, per row of the truth: for matched filters.
struct Tangent {
  std::string parameter;
  Trial::Predict slope;
};

/// Another problem of the same op whose outcome separates a mode from a rival.
struct FollowUp {
  enum class Clean : std::uint8_t { kSaysNothing, kMeansThis, kMeansTheRival };
  Problem problem;
  std::string what;                      ///< "with splits off", "with all values 1": ends "a second run ..."
  Clean if_clean = Clean::kSaysNothing;  ///< what it means if the kernel is right there
};

struct Mode {
  std::string_view name;  ///< the folder's name and the id in every report
  std::string_view id;    ///< "M01"
  std::string_view title;
  std::optional<Diagnosis> (*detect)(const Scene&) = nullptr;
  std::vector<Supposition> (*hypotheses)(const Scene&) = nullptr;
  std::vector<Tangent> (*tangents)(const Scene&) = nullptr;
  std::optional<FollowUp> (*follow_up)(const Scene&, std::string_view rival) = nullptr;
};

struct RegisterMode {
  explicit RegisterMode(const Mode& mode);
};
/// In the order of failure_modes.md: non-finite, zero, unused data, membership, weights, precision.
std::vector<const Mode*> all_modes();
const Mode* find_mode(std::string_view name);

}  // namespace assay

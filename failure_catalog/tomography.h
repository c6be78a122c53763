// Weight tomography (probes.md 4): the weights that a kernel gives to keys, read off its outputs, and the keys of each
// row that it left out or took besides.
//
// Attention is linear in V. With V the identity on keys c D ... c D + D - 1 and zero elsewhere, channel d of a row is
// the weight of key c D + d, so ceil(N / D) runs on the same Q and K return the whole matrix: of any kernel that runs,
// under any mask, window, page table or head map. V is the same for all heads and sequences, so a weight names a
// position; one more run, with V naming sequence and head, says whose keys were used.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/attention/problem.h"

namespace assay {

class Scene;

/// Outputs of the kernel under test on a problem; nothing if it gives none.
using KernelRun = std::function<std::optional<std::vector<Tensor>>(const Problem&)>;

struct KeyRun {
  std::int64_t first = 0, last = 0;
  bool operator==(const KeyRun&) const = default;
};

/// One row's weights, each of kv_len keys.
struct RowWeights {
  AttentionRow row;
  std::int64_t position = 0;     ///< of the diagonal: the key above which an aligned causal mask ends
  std::vector<float> expected;   ///< the oracle's, with v_scale; 0 for keys that are not admissible
  std::vector<float> measured;   ///< the kernel's
  std::vector<bool> admissible;  ///< in the row's key set
  std::vector<KeyRun> missing;   ///< expected well above zero, measured exactly 0
  std::vector<KeyRun> extra;     ///< not admissible, measured above 0
  /// Median of measured / expected over the other keys, and the largest distance from it relative to it: 1 and rounding
  /// where the kernel is right.
  double factor = 1, spread = 0;
  std::int64_t unequal = 0;  ///< keys further from the median than rounding explains
  double total = 0;          ///< sum of measured over sum of expected
  bool finite = true;        ///< no NaN or infinity among the measured
  /// Shares of the row's weight by sequence and kv head, in the order b hkv + g; empty if that was not read.
  std::vector<float> origin;

  bool right_keys() const { return finite && missing.empty() && extra.empty(); }
};

struct Tomography {
  std::vector<RowWeights> rows;  ///< the judged ones
  std::int64_t runs = 0;         ///< of the kernel
  double rounding = 0;           ///< relative error of a measured weight that rounding of P and o explains
};

/// Why the case has no tomography (another op, V inside K, too large a matrix), or nothing.
std::optional<std::string> no_tomography(const Problem& problem, std::string_view op);

/// Runs the kernel ceil(longest kv_len / dv) times, and once more for the origins where all sequences and heads have
/// values of their own and fit into dv channels. Nothing if a run gives no outputs.
std::optional<Tomography> weight_tomography(const Problem& problem, const KernelRun& run);

/// Rows that agree in what is wrong with them.
struct KeyDifference {
  std::vector<std::size_t> rows;  ///< indices into Tomography::rows, ascending
  /// Runs of missing and extra keys are counted from each row's diagonal, not from key 0.
  bool from_diagonal = false;
  std::vector<KeyRun> missing, extra;
  bool finite = true;
  double spread = 0, factor_low = 1, factor_high = 1;  ///< over the rows
  std::int64_t unequal = 0;                            ///< most in one row
};

/// What differs from the oracle's key sets and weights, rows grouped; empty for a right kernel.
std::vector<KeyDifference> key_differences(const Tomography& tomography);

/// "rows 64..127 (b 0 h 1): keys 64..127 missing, key 128 extra, weights of the others within 0.4 %".
std::string describe(const KeyDifference& difference, const Tomography& tomography);

/// Rows whose weight comes from a sequence or kv head that is not theirs, in words; empty if there are none or that was
/// not read.
std::vector<std::string> foreign_origins(const Tomography& tomography, const AttentionParams& params);

/// What tomography says of a failing case.
struct KeyEvidence {
  bool right_keys = false;  ///< every row uses exactly its keys, of its own sequence and head
  bool wrong_keys = false;  ///< some row leaves out or takes besides
  std::string text;         ///< one clause
};

/// By the experiment of a scene, for the classifier. Nothing without one, for cases that have no tomography, and where
/// it would take more runs than a verdict should cost.
std::optional<KeyEvidence> key_evidence(const Scene& scene);

}  // namespace assay

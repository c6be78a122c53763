// Truth (midpoint, radius or class per element) and Bound (tau per element) of one case, for the judged elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/tensor.h"

namespace assay {

/// What an output element may be, as a set of classes. kNumber: a value in the acceptance set of (mid, radius, tau).
/// kZero: +0 or -0. A row outside the kernel's promised range carries kAnything.
using ClassSet = std::uint8_t;
inline constexpr ClassSet kNumber = 1, kZero = 2, kPlusInf = 4, kMinusInf = 8, kNan = 16, kAnything = 31;

/// Facts of one judged row that measurements and failure modes may use. Logits in natural units.
struct RowFacts {
  std::int32_t batch = 0, head = 0, query = 0;
  std::int32_t keys = 0;       ///< admissible keys
  std::int32_t first_key = -1, last_key = -1;  ///< smallest and largest admissible key, -1 if none
  double max_logit = 0;        ///< NaN if the row has a NaN or +inf logit; -inf if all are -inf
  double min_logit = 0;
  double lse = 0;              ///< natural log
  double effective_keys = 0;   ///< 1 / sum p^2
  bool escalated = false;      ///< decided by ball arithmetic, not by fp64
};

/// One output tensor: parallel arrays over its judged elements, row by row.
struct OutputTruth {
  TensorLayout layout;
  std::vector<std::int64_t> element;  ///< position in the storage
  std::vector<std::int32_t> row;      ///< index into Truth::rows
  std::vector<double> mid;
  std::vector<double> radius;         ///< proven: |exact - mid| <= radius; +inf = unknown (oracle_uncertain)
  std::vector<ClassSet> classes;      ///< from the mathematics alone
};

struct Truth {
  std::vector<RowFacts> rows;
  std::vector<OutputTruth> outputs;   ///< in the order of Op::outputs
};

/// Bound of one output tensor, parallel to OutputTruth.
struct OutputBound {
  std::vector<double> tau;            ///< before output rounding; +inf = nothing is promised, never NaN
  std::vector<ClassSet> also;         ///< further classes that the declared arithmetic may legally produce
};

/// How much declared structure a bound uses (numerics.md 2.4). kT0: formats and enums. kT1: the running maximum of every key tile
/// and P's rounding are replayed. kT2: the scores too, through the block-FMA model.
enum class Level : std::uint8_t { kT0, kT1, kT2 };

/// A further acceptance set of one output under declared structure, parallel to OutputTruth: a kNumber element must also lie in
/// [RN(mid - tau), RN(mid + tau)]. tau covers the radius of mid; +inf where the level says nothing about the element.
struct OutputTier {
  std::vector<double> mid, tau;
};
struct Tier {
  Level level = Level::kT1;
  std::vector<OutputTier> outputs;  ///< parallel to Truth::outputs; empty vectors for an output that the tier leaves alone
};

struct Bound {
  std::vector<OutputBound> outputs;  ///< T0
  std::vector<Tier> tiers;           ///< ascending levels above T0 for which the declaration suffices
  /// Per row: the name of the intermediate that may leave its format ("S", "P overflow", "l", "O accumulator", ...) with the
  /// threshold, e.g. "P overflow: shift residual 31.2 > 16"; empty = in range.
  std::vector<std::string> out_of_range;
  std::vector<std::string> assumptions;  ///< what the bound rests on, one sentence each
};

struct Evaluation {
  Truth truth;
  Bound bound;
};

}  // namespace assay

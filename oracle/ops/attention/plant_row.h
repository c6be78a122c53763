// One attention row, summed up so that the planted faults that move weight cost no further walk over its keys.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/ops/attention/counterfactual.h"

namespace assay {

/// Keys that a fault takes away, and what of N and L (over D) they hold. The smaller side is kept, so that the other is
/// a difference without cancellation.
struct LostPart {
  std::int32_t first_key = 0, last_key = 0;
  double weight = 0, rest = 0;  ///< sum of p_j over the part and over the other keys, each summed by itself
  std::vector<double> smaller;  ///< [dv] sum of p_j f_j v_j over the lighter of the two
  bool smaller_is_part = true;
  bool whole_row = false;  ///< there are no other keys
};

/// A key outside the row that a shifted mask would add.
struct EdgeKey {
  std::int32_t key = 0;
  double x = 0;           ///< its logit
  std::vector<double> v;  ///< [dv] f v; NaN where it is not finite
};

/// Everything over D = sum of e^x_j, with the sink: p_j = e^x_j / D.
struct PlantRow {
  std::vector<double> o;        ///< [dv] sum of p_j f_j v_j
  double log_denominator = 0;   ///< log D
  double keys = 0, sink = 0;    ///< the shares of the keys and of the sink
  LostPart key, tile;           ///< the key and the tile of 64 keys whose whole loss would move o furthest
  std::optional<EdgeKey> edge;  ///< the key just beyond the right edge, else the left one, unless something masks it
};

/// Reads rows of one problem, which must outlive it.
class PlantRowReader {
 public:
  explicit PlantRowReader(const AttentionProblem& problem) : problem_(problem), counterfactual_(problem) {}

  /// Nothing if the row has no softmax: no key of finite logit, a NaN or +inf.
  std::optional<PlantRow> read(const AttentionRow& row);
  /// The same under another softmax scale, without key, tile and edge.
  std::optional<PlantRow> read_scaled(const AttentionRow& row, double gain);

 private:
  bool weigh(const AttentionRow& row, const std::vector<double>& logits, PlantRow& out);
  std::size_t dim_v() const { return static_cast<std::size_t>(problem_.params().dim_v); }
  double add_keys(const AttentionRow& row, std::size_t begin, std::size_t end, std::vector<double>& sum) const;
  LostPart part(const AttentionRow& row, std::size_t begin, std::size_t end, const PlantRow& sums) const;
  std::optional<std::int32_t> edge_key(const AttentionRow& row) const;

  const AttentionProblem& problem_;
  Counterfactual counterfactual_;
  std::vector<std::int32_t> admissible_, keys_;  ///< keys_: those of finite logit
  std::vector<double> p_;                        ///< parallel to keys_
};

}  // namespace assay

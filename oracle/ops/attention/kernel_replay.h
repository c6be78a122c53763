// A row as a kernel of the declared structure computes it, with any of its steps done otherwise: what precision and
// weight faults predict.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/ops/attention/counterfactual.h"

namespace assay {

/// What a logit is made of: x = cap(scale q_scale k_scale s) + alibi + additive.
struct ReplayKey {
  std::int32_t key = 0;
  bool admissible = true;
  double score = 0;                 ///< s, of the stored values
  double scale_q = 1, k_scale = 1;  ///< scale q_scale, and k_scale
  double alibi = 0, additive = 0;   ///< shares of the logit
};

/// What a kernel does otherwise than declared; the default is nothing. A format kFp32 rounds nothing more.
struct Deviation {
  // Logits.
  double scale = 1;                                                              ///< multiplies the softmax scale
  std::function<double(const AttentionRow&, const ReplayKey&)> logit = nullptr;  ///< the natural logit
  bool masked_too = false;             ///< masked keys of the visited tiles have a logit too, which `logit` gives
  Format score_store = Format::kFp32;  ///< of S
  Format score_sum = Format::kFp32;    ///< of q.k after every block of the MMA, or every product of a scalar kernel
  // Weights.
  std::function<double(double)> exp2 = nullptr;               ///< of the exponent, in log2 units
  std::function<double(std::int64_t)> weight_gain = nullptr;  ///< factor of P by column of its tile
  std::function<bool(std::int64_t key)> unshifted = nullptr;  ///< P of the key is e^x, not e^(x - m)
  std::optional<Format> p_format = std::nullopt;              ///< in place of the declared one
  bool p_truncated = false;
  double p_unit = 1;       ///< P times this is rounded, and divided by it again
  bool other_sum = false;  ///< l adds rounded P where unrounded P is declared, and the reverse
  // State from tile to tile.
  int o_power = 1, l_power = 1;  ///< of alpha, in the rescaling of O and l; 0: not rescaled
  Format alpha_of_o = Format::kFp32;
  int lazy = 0;  ///< the maximum is not raised by less than 2^lazy; 0: as declared
  /// kTileOnly: m is the tile's own maximum, to which O and l are carried; kStale: P is relative to the maximum before
  /// the tile.
  enum class Frame : std::uint8_t { kDeclared, kTileOnly, kStale } frame = Frame::kDeclared;
  bool l_left_out = false;       ///< O is divided by l after every tile, its old l not multiplied in before
  bool tile_frame_kept = false;  ///< own maxima: P V of a tile is not carried to the common maximum
  // Accumulators.
  Format l_key = Format::kFp32, l_tile = Format::kFp32;  ///< of l after every key, after every tile
  Format o_key = Format::kFp32, o_block = Format::kFp32, o_tile = Format::kFp32;
  bool one_chain = false;  ///< no promotion
  // End of a row.
  std::function<double(double)> sink = nullptr;  ///< of the sink's logit; -inf: none
  bool sink_in_parts = false;                    ///< every split takes the sink among its keys too
  std::function<double(double)> reciprocal = nullptr, log2 = nullptr;
  Format reciprocal_store = Format::kFp32;
  std::function<double(const AttentionRow&, std::int64_t key)> value_factor = nullptr;
  double gain = 1;                 ///< of O
  bool cast_before_scale = false;  ///< O is rounded to the output format before its value factor
  bool output_truncated = false;
  double lse_factor = 1;
  Format lse_store = Format::kFp32;
  // Merge of splits.
  bool merges_one = false;  ///< a single split is handed to the merge too, as a kernel that splits longer sequences may
  Format part_lse = Format::kFp32, part_o = Format::kFp32;
  double part_lse_factor = 1;  ///< of the LSE that a part hands over
  double merge_base = 1;       ///< ln of the base whose powers LSE differences are
  bool equal_parts = false, last_part = false;
  bool empty_counted = false;  ///< a part without keys weighs as one of LSE 0 and O 0
};

/// Replays rows of one problem, which must outlive it, under one declared arithmetic. fp32 steps are taken in fp32,
/// long sums in fp64, 8-bit products through the block-FMA model. Fields that are not declared have a usual value.
class KernelReplay {
 public:
  KernelReplay(const AttentionProblem& problem, const Arithmetic& declared);
  ~KernelReplay();
  KernelReplay(const KernelReplay&) = delete;
  KernelReplay& operator=(const KernelReplay&) = delete;

  /// O before output rounding, and the LSE in the declared base; nothing for a row without an admissible key or sink,
  /// unless masked keys count too.
  std::optional<RowOutput> row(std::size_t row, const Deviation& deviation);
  /// The truth of the row plus what the deviation changes in the replay: nothing where that is nothing.
  std::optional<RowOutput> predict(std::size_t row, const Deviation& deviation, const Truth& truth);

  const AttentionProblem& problem() const { return problem_; }
  const Arithmetic& structure() const { return a_; }  ///< the declared one with all fields filled in

 private:
  struct Row;
  struct Head;
  struct State;
  struct Part;
  const Row& load(std::size_t row);
  Part contract(const Row& row, const Deviation& deviation) const;
  std::optional<RowOutput> without_keys(const Row& row, const Deviation& deviation) const;
  const Head& head(std::int64_t batch, std::int64_t kv_head);
  void visit(Row& row) const;
  void sum_scores(const Row& row, const Deviation& d, std::vector<double>& score) const;

  Part walk(const Row& row, const Deviation& d, std::int64_t first, std::int64_t end) const;
  void logits(const Row& row, const Deviation& d, std::int64_t first, std::int64_t end, State& s) const;
  void step(const Row& row, const Deviation& d, std::int64_t first, std::int64_t end, State& s) const;
  void own_step(const Row& row, const Deviation& d, float tile_max, State& s) const;
  void weigh(const Row& row, const Deviation& d, float frame, State& s, std::array<float, 4>& l) const;
  void add_values(const Row& row, const Deviation& d, const State& s, std::vector<double>& o) const;
  double value_factor(const Row& row, const Deviation& d, std::int64_t key) const;
  Part finish(const Row& row, const Deviation& d, const State& s, double sink, bool is_part) const;
  Part merge(const Deviation& d, const std::vector<Part>& parts, double sink) const;

  const AttentionProblem& problem_;
  const AttentionParams& params_;
  Arithmetic a_;
  bool on_score_ = false, narrow_ = false;
  std::size_t bytes_ = 0;  ///< of heads and rows
  std::map<std::pair<std::int64_t, std::int64_t>, std::unique_ptr<Head>> heads_;
  std::map<std::size_t, std::unique_ptr<Row>> rows_;
  std::map<std::size_t, std::optional<RowOutput>> nominal_;
};

}  // namespace assay

// Attention under a hypothesis: the fp64 answer of one row for a given key set, weights and view of V.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "oracle/ops/attention/operands.h"
#include "oracle/trial.h"

namespace assay {

/// What the kernel is supposed to have done differently.
struct Hypothesis {
  double gain = 1;                                 ///< multiplies the softmax scale
  std::function<double(double)> see_v = nullptr;   ///< what it saw in place of each stored v
  bool softcap = true, alibi = true, sink = true;  ///< false: it left the option out
  bool descale = true;                             ///< false: all factors 1
  /// What became of the natural logit x of a key.
  std::function<double(std::int32_t key, double x)> see_logit = nullptr;
  std::int64_t k_head = -1, v_head = -1;  ///< kv head whose keys, values it read; -1: the row's own
  std::int64_t q_head = -1;               ///< query head whose q it read
  double ghosts = 0, ghost_logit = 0;     ///< further keys of that logit and of value 0
  double output_gain = 1;                 ///< multiplies o
};

/// Answers for rows of one problem under changed key sets, weights and values. Keeps decoded heads and scores of the
/// rows it was asked about, as far as they fit into about 128 MiB.
///
/// A fault of addresses (pages, strides, wraps, heads, lengths) is often said best as another Problem, whose right
/// answer is what the kernel returned: build it, and an AttentionProblem and a Counterfactual of its own over it.
class Counterfactual {
 public:
  explicit Counterfactual(const AttentionProblem& problem) : problem_(problem) {}

  /// What a kernel would return for the row that used these keys under that hypothesis; NaN as well where a raw score
  /// q.k passes fp32's largest number.
  RowOutput attend(const AttentionRow& row, const std::vector<std::int32_t>& keys, const Hypothesis& hypothesis = {});

  /// Numerator and denominator apart: o = sum n_j w_j / (sum d_j + e^(sink - frame) + ghosts), LSE = frame + log of the
  /// denominator. A NaN or infinity among the values of these keys shows in its channel, one of another key in
  /// `or_nan`; a NaN logit makes the row NaN. n and d parallel to keys, relative to e^frame; w_j = v_scale_j v_j.
  RowOutput mix(const AttentionRow& row, const std::vector<std::int32_t>& keys, std::span<const double> numerator,
                std::span<const double> denominator, double frame, const Hypothesis& hypothesis = {});

  /// The logits of these keys, natural, parallel to them; afterwards `head` holds the row's operands.
  std::vector<double> logits(const AttentionRow& row, const std::vector<std::int32_t>& keys,
                             const Hypothesis& hypothesis = {});
  const HeadOperands& head() const { return *head_; }

 private:
  double logit(const AttentionRow& row, std::int32_t key, double score, const Hypothesis& hypothesis) const;
  bool passes_fp32(const AttentionRow& row, const std::vector<std::int32_t>& keys, const Hypothesis& hypothesis);
  const HeadOperands& operands(std::int64_t batch, std::int64_t kv_head);
  const std::vector<double>& scores(const AttentionRow& row, const Hypothesis& hypothesis);
  void add_special(const AttentionRow& row, const HeadOperands& head, std::int64_t v_head,
                   const std::vector<std::int32_t>& keys, std::span<const double> numerator, RowOutput& out);

  const AttentionProblem& problem_;
  std::map<std::pair<std::int64_t, std::int64_t>, HeadOperands> heads_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, std::vector<double>>
      scores_;  ///< by batch, query head, query, kv head
  std::size_t head_bytes_ = 0, score_bytes_ = 0;
  const HeadOperands* head_ = nullptr;
  std::vector<double> q_, magnitude_;
};

}  // namespace assay

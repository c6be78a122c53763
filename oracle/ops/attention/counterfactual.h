// Attention under a hypothesis: the fp64 answer of one row for a given key set, scale and view of V.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "oracle/ops/attention/operands.h"

namespace assay {

struct RowOutput {
  std::vector<double> o;  ///< [dv]; zeros without keys
  double lse = 0;         ///< in the declared base; -inf without keys and sink
};

/// What the kernel is supposed to have done differently.
struct Hypothesis {
  double gain = 1;                                   ///< multiplies the softmax scale
  std::function<double(double)> see_v = nullptr;     ///< what it saw in place of each stored v
  bool softcap = true, alibi = true, sink = true;    ///< false: it left the option out
  bool descale = true;                               ///< false: all factors 1
};

/// Answers for rows of one problem under changed key sets, scales and values; decodes each head once.
class Counterfactual {
 public:
  explicit Counterfactual(const AttentionProblem& problem) : problem_(problem) {}

  /// What a kernel would return for the row that used these keys under that hypothesis.
  RowOutput attend(const AttentionRow& row, const std::vector<std::int32_t>& keys, const Hypothesis& hypothesis = {});

  /// The logits of these keys, natural, parallel to them; afterwards `head` holds the row's operands.
  std::vector<double> logits(const AttentionRow& row, const std::vector<std::int32_t>& keys, const Hypothesis& hypothesis = {});
  const HeadOperands& head() const { return head_; }

 private:
  double logit(const AttentionRow& row, std::int32_t key, const Hypothesis& hypothesis) const;

  const AttentionProblem& problem_;
  HeadOperands head_;
  std::vector<double> q_, score_, magnitude_;
};

}  // namespace assay

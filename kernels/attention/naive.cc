// Unfused attention in scalar fp32: all logits of a row, their maximum, the weights, their sum, the weighted sum of V.
#include "kernels/attention/naive.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/register.h"
#include "kernels/attention/row_end.h"
#include "kernels/coarse.h"
#include "kernels/fault.h"
#include "kernels/narrow.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

/// K and V of one head as stored, in fp32.
struct Head {
  std::int64_t batch = -1, kv_head = -1;
  HeadMatrix kt, v;  ///< K transposed
};

/// x[j] = q . k_j for all keys: one chain of multiply and add over the head dimension, ascending.
void scores(const float* q, const HeadMatrix& kt, std::int64_t dim, std::vector<float>& x) {
  x.assign(static_cast<std::size_t>(kt.cols), 0.0F);
  constexpr std::int64_t kBlock = 1024;  // keys whose sums stay in the first-level cache
  for (std::int64_t first = 0; first < kt.cols; first += kBlock) {
    const std::int64_t end = first + kBlock < kt.cols ? first + kBlock : kt.cols;
    for (std::int64_t c = 0; c < dim; ++c) {
      const float* k = kt.row(c);
      for (std::int64_t j = first; j < end; ++j) x[static_cast<std::size_t>(j)] += q[c] * k[j];
      if (faulty(Fault::kScoreSumInBf16)) narrow_all(Format::kBf16, x);
    }
  }
}

class Rows {
 public:
  explicit Rows(const AttentionCall& call)
      : call_(call),
        q_(static_cast<std::size_t>(call.params().dim_qk)),
        o_(static_cast<std::size_t>(call.params().dim_v)) {}

  void load(std::int64_t batch, std::int64_t kv_head) {
    if (head_.batch == batch && head_.kv_head == kv_head) return;
    const KeyRange all{0, call_.kv_len(batch)};
    head_ = {batch, kv_head, transposed(call_.load_k(batch, kv_head, all, all.end, call_.params().dim_qk)),
             call_.load_v(batch, kv_head, all, all.end, call_.params().dim_v)};
  }

  void compute(std::int64_t head, std::int64_t query) {
    const AttentionParams& p = call_.params();
    const RowSink sink = sink_of(call_, head);
    logits(head, query);
    float m = -kInfinity;
    const std::size_t count = x_.size() - (faulty(Fault::kTailOfFourSkipped) && x_.size() > 4 ? x_.size() % 4 : 0);
    for (std::size_t j = 0; j < count; ++j)
      if (keep_[j] != 0) m = max_keeping_nan(m, x_[j]);
    if (m == -kInfinity && !(faulty(Fault::kEmptyRowDivided) && sink.kind == Sink::kNone)) {
      const EmptyRow empty = empty_row(p, sink);
      o_.assign(o_.size(), empty.o);
      if (empty.mean) mean_of_v(head);
      return call_.store(head_.batch, head, query, o_.data(), empty.lse);
    }
    o_.assign(o_.size(), 0.0F);
    float l = 0.0F;
    for (std::size_t j = 0; j < count; ++j) {
      if (keep_[j] == 0) {
        if (faulty(Fault::kMaskedValueWeighed)) add_value(0.0F, j);
        continue;
      }
      const std::size_t times = faulty(Fault::kTailKeysRepeated) && j + 1 == count ? 1 + (4 - count % 4) % 4 : 1;
      const float p_j = weight(x_[j], m) * static_cast<float>(times);
      l += p_j;
      add_value((faulty(Fault::kWeightsInBf16) ? narrowed(Format::kBf16, p_j) : p_j) * value_scale(head, j), j);
      if (faulty(Fault::kValueSumInFp16)) narrow_all(Format::kFp16, o_);
    }
    const float shift = faulty(Fault::kNoShift) ? 0.0F : m;
    const RowEnd end = end_row(shift, shift * kLog2e, l, sink, p.lse);
    for (float& o : o_)
      o = faulty(Fault::kReciprocalOneStep) ? o * end.keep * reciprocal_one_step_f32(end.sum) : o * end.keep / end.sum;
    call_.store(head_.batch, head, query, o_.data(), end.lse);
  }

 private:
  static float weight(float x, float m) {
    if (faulty(Fault::kNoShift)) return exp2_f32(x * kLog2e);
    if (faulty(Fault::kShiftRoundedTwice)) return exp2_f32(fma_f32(x, kLog2e, -(m * kLog2e)));
    return exp2_f32((x - m) * kLog2e);
  }

  double score_factor(std::int64_t head, std::int64_t query, std::int64_t key) const {
    const double factor = call_.descales().score_factor(head_.batch, head, query, key);
    if (!faulty(Fault::kScaleConstant)) return factor;
    const AttentionParams& p = call_.params();
    const double constant = 1.0 / std::sqrt(static_cast<double>(p.dim_qk));
    if (p.scale == 0.0F) return p.descale == Descale::kNone ? constant : factor;
    return factor * (constant / static_cast<double>(p.scale));
  }

  void logits(std::int64_t head, std::int64_t query) {
    const KeyRange all{0, call_.kv_len(head_.batch)};
    call_.load_q(head_.batch, head, query, q_.data());
    scores(q_.data(), head_.kt, call_.params().dim_qk, x_);
    if (faulty(Fault::kRawScoreRange))
      for (float& x : x_) x = ranged(Format::kFp16, x);
    for (std::size_t j = 0; j < x_.size(); ++j)
      x_[j] *= static_cast<float>(score_factor(head, query, static_cast<std::int64_t>(j)));
    const RowLengths lengths = call_.lengths(head_.batch);
    call_.rules().adjust(lengths, head_.batch, head, query, all, x_.data());
    keep_.resize(x_.size());
    call_.rules().admissible(lengths, head_.batch, head, query, all, keep_.data());
    if (faulty(Fault::kMaskAdded)) masked_by([](float x) { return x - kInfinity; });
    if (faulty(Fault::kMaskFilled) && std::find(keep_.begin(), keep_.end(), 1) != keep_.end())
      masked_by([](float) { return -1e4F; });
  }

  /// Masked keys take part, with this logit.
  void masked_by(float (*logit)(float)) {
    for (std::size_t j = 0; j < x_.size(); ++j)
      if (keep_[j] == 0) x_[j] = logit(x_[j]), keep_[j] = 1;
  }

  float value_scale(std::int64_t head, std::size_t key) const {
    return call_.descales().value(head_.batch, head, static_cast<std::int64_t>(key));
  }

  void add_value(float weight, std::size_t key) {
    const float* v = head_.v.row(static_cast<std::int64_t>(key));
    for (std::size_t c = 0; c < o_.size(); ++c) o_[c] += weight * v[c];
  }

  void mean_of_v(std::int64_t head) {
    o_.assign(o_.size(), 0.0F);
    for (std::size_t j = 0; j < x_.size(); ++j) add_value(value_scale(head, j), j);
    if (!x_.empty())
      for (float& o : o_) o /= static_cast<float>(x_.size());
  }

  const AttentionCall& call_;
  Head head_;
  std::vector<float> q_, x_, o_;
  std::vector<std::uint8_t> keep_;
};

struct Naive {
  static std::optional<std::string> refuses(const AttentionParams&) { return std::nullopt; }

  static Arithmetic declared(const AttentionParams& p) { return naive_arithmetic(p); }

  static RunFacts run(const AttentionCall& call) {
    Rows rows(call);
    for (const auto& [batch, head, queries] : call.rows()) {
      const AttentionParams& p = call.params();
      if (faulty(Fault::kOddHeadUnstored) && head > 0 && head == p.heads_q - 1 && head % 2 == 0) continue;
      rows.load(batch, faulty(Fault::kHeadsTiled) ? head % p.heads_kv : head / (p.heads_q / p.heads_kv));
      for (const std::int64_t query : queries) rows.compute(head, query);
    }
    return {"unfused, one row at a time"};
  }
};

const RegisterKernel kFp32{attention_kernel<Naive, Format::kFp32>(
    {.name = "naive_fp32", .summary = "unfused attention, fp32 inputs, scalar fp32 arithmetic"})};
const RegisterKernel kBf16{attention_kernel<Naive, Format::kBf16>(
    {.name = "naive_bf16", .summary = "unfused attention, bf16 inputs, scalar fp32 arithmetic"})};
const RegisterKernel kFp16{attention_kernel<Naive, Format::kFp16>(
    {.name = "naive_fp16", .summary = "unfused attention, fp16 inputs, scalar fp32 arithmetic"})};
const RegisterKernel kE4m3{attention_kernel<Naive, Format::kE4m3>(
    {.name = "naive_e4m3", .summary = "unfused attention, e4m3 inputs widened to fp32, scalar fp32 arithmetic"})};
const RegisterKernel kE5m2{attention_kernel<Naive, Format::kE5m2>(
    {.name = "naive_e5m2", .summary = "unfused attention, e5m2 inputs widened to fp32, scalar fp32 arithmetic"})};

}  // namespace

Arithmetic naive_arithmetic(const AttentionParams& p) {
  return {.qk = Accumulate::kFp32,
          .pv = Accumulate::kFp32,
          .score_store = ScoreStore::kFp32,
          .scale_form = ScaleForm::kOnScore,
          .exponential = Exponential::kEx2Approx,
          .p_format = Format::kFp32,
          .p_known = true,
          .p_offset = 0,
          .promote_n = 0,
          .tanh = Tanh::kTwoUlp,
          .lazy_threshold = 0,
          .row_sum_of = RowSumOf::kUnroundedP,
          .row_sum_tree = RowSumTree::kSequential,
          .normalize = Normalize::kDivide,
          .subnormals = Subnormals::kKept,
          .max_policy = MaxPolicy::kGlobal,
          .tile_order = TileOrder::kForward,
          .tile_n = static_cast<int>(p.len_kv > 0 ? p.len_kv : 1),  // the whole row is one tile
          .splits = 1};
}

}  // namespace assay

// Unfused attention in scalar fp32: all scores of a row, their maximum, the weights, their sum, the weighted sum of V.
#include "kernels/attention/call.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

template <Format kInput>
std::optional<std::string> unsupported(const Params& params) {
  if (attention_params(params).input != kInput) return "takes " + std::string(info(kInput).name) + " inputs only";
  return std::nullopt;
}

Arithmetic declared(const Params& params) {
  const AttentionParams p = attention_params(params);
  return {.qk = Accumulate::kFp32,
          .pv = Accumulate::kFp32,
          .score_store = ScoreStore::kFp32,
          .scale_form = ScaleForm::kOnScore,
          .exponential = Exponential::kEx2Approx,
          .p_format = Format::kFp32,
          .p_known = true,
          .row_sum_of = RowSumOf::kUnroundedP,
          .row_sum_tree = RowSumTree::kSequential,
          .normalize = Normalize::kDivide,
          .subnormals = Subnormals::kKept,
          .max_policy = MaxPolicy::kGlobal,
          .tile_order = TileOrder::kForward,
          .tile_n = static_cast<int>(p.len_kv > 0 ? p.len_kv : 1),  // the whole row is one tile
          .splits = 1};
}

/// Keys j that row i of sequence b may attend to, in ascending order.
void admissible_keys(const AttentionCall& call, std::int64_t b, std::int64_t h, std::int64_t i,
                     std::vector<std::int64_t>& keys) {
  const AttentionParams& p = call.params();
  const std::int64_t diagonal = p.align == Align::kTopLeft ? i : i + call.kv_len(b) - call.q_len(b);
  keys.clear();
  for (std::int64_t j = 0; j < call.kv_len(b); ++j) {
    const std::int64_t ahead = j - diagonal;  // how far the key lies in the future
    if (p.causal && ahead > 0) continue;
    if (p.window_right >= 0 && ahead > p.window_right) continue;
    if (p.window_left >= 0 && -ahead > p.window_left) continue;
    if (p.window_left >= 0 && p.window_ends == WindowEnds::kLeftExclusive && -ahead == p.window_left) continue;
    if (p.data_mask == DataMask::kBool && !call.attends(b, h, i, j)) continue;
    keys.push_back(j);
  }
}

/// s[j] = q . k_j for all keys: one chain of multiply and add over the head dimension, ascending. `kt` is K transposed.
void scores(const float* q, const HeadMatrix& kt, std::int64_t dim, std::vector<float>& s) {
  s.assign(static_cast<std::size_t>(kt.cols), 0.0F);
  constexpr std::int64_t kBlock = 1024;  // keys whose sums stay in the first-level cache
  for (std::int64_t first = 0; first < kt.cols; first += kBlock) {
    const std::int64_t end = first + kBlock < kt.cols ? first + kBlock : kt.cols;
    for (std::int64_t c = 0; c < dim; ++c) {
      const float* k = kt.row(c);
      for (std::int64_t j = first; j < end; ++j) s[static_cast<std::size_t>(j)] += q[c] * k[j];
    }
  }
}

struct Row {
  std::vector<float> o;
  float lse = 0.0F;
};

/// A row without admissible key, or whose logits are all -inf: the declared values.
void empty_row(const AttentionParams& p, const HeadMatrix& v, Row& row) {
  row.lse = p.empty_lse == EmptyLse::kMinusInf ? -kInfinity : kInfinity;
  row.o.assign(row.o.size(), p.empty_output == EmptyOutput::kNan ? std::numeric_limits<float>::quiet_NaN() : 0.0F);
  if (p.empty_output != EmptyOutput::kMean || v.rows == 0) return;
  for (std::int64_t j = 0; j < v.rows; ++j)
    for (std::size_t c = 0; c < row.o.size(); ++c) row.o[c] += v.row(j)[c];
  for (float& o : row.o) o /= static_cast<float>(v.rows);
}

RunFacts run(const Call& raw) {
  const AttentionCall call(raw);
  const AttentionParams& p = call.params();
  HeadMatrix kt, v;
  std::int64_t loaded = -1;
  std::vector<float> q(static_cast<std::size_t>(p.dim_qk)), s, x;
  std::vector<std::int64_t> keys;
  Row row{std::vector<float>(static_cast<std::size_t>(p.dim_v)), 0.0F};
  for (const auto& [b, h, queries] : call.rows()) {
    const std::int64_t g = h / (p.heads_q / p.heads_kv);
    if (loaded != b * p.heads_kv + g) {
      loaded = b * p.heads_kv + g;
      kt = transposed(call.load_k(b, g, call.kv_len(b), p.dim_qk));
      v = call.load_v(b, g, call.kv_len(b), p.dim_v);
    }
    for (const std::int64_t i : queries) {
      call.load_q(b, h, i, q.data());
      scores(q.data(), kt, p.dim_qk, s);
      admissible_keys(call, b, h, i, keys);
      x.resize(keys.size());
      float m = -kInfinity;
      for (std::size_t n = 0; n < keys.size(); ++n) {
        x[n] = s[static_cast<std::size_t>(keys[n])] * p.scale;
        if (p.data_mask == DataMask::kAdditive) x[n] += call.bias(b, h, i, keys[n]);
        m = max_keeping_nan(m, x[n]);
      }
      if (m == -kInfinity) {
        empty_row(p, v, row);
        call.store(b, h, i, row.o.data(), row.lse);
        continue;
      }
      for (float& y : x) y = exp2_f32((y - m) * kLog2e);
      row.o.assign(row.o.size(), 0.0F);
      float l = 0.0F;
      for (std::size_t n = 0; n < keys.size(); ++n) {
        const float weight = x[n];
        const float* value = v.row(keys[n]);
        l += weight;
        for (std::size_t c = 0; c < row.o.size(); ++c) row.o[c] += weight * value[c];
      }
      for (float& o : row.o) o /= l;
      row.lse = p.lse == LseBase::kTwo ? m * kLog2e + log2_f32(l) : m + log_f32(l);
      call.store(b, h, i, row.o.data(), row.lse);
    }
  }
  return {"unfused, one row at a time"};
}

const RegisterKernel kFp32{{.name = "naive_fp32",
                            .op = "attention",
                            .summary = "unfused attention, fp32 inputs, scalar fp32 arithmetic",
                            .formats = {Format::kFp32},
                            .unsupported = unsupported<Format::kFp32>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kBf16{{.name = "naive_bf16",
                            .op = "attention",
                            .summary = "unfused attention, bf16 inputs, scalar fp32 arithmetic",
                            .formats = {Format::kBf16},
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "naive_fp16",
                            .op = "attention",
                            .summary = "unfused attention, fp16 inputs, scalar fp32 arithmetic",
                            .formats = {Format::kFp16},
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay

// The online softmax of one row over key tiles.
#include "kernels/attention/online_softmax.h"

#include "kernels/fault.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

constexpr std::int64_t kMmaK = 16;

float rounded(Format format, float value) { return static_cast<float>(round_to(format, static_cast<double>(value))); }

}  // namespace

KeyRange key_range(const AttentionCall& call, std::int64_t batch, std::int64_t query) {
  const AttentionParams& p = call.params();
  const std::int64_t keys = call.kv_len(batch);
  const std::int64_t position = query + (p.align == Align::kBottomRight ? keys - call.q_len(batch) : std::int64_t{0});
  const std::int64_t leak = faulty(Fault::kMaskShiftedByOne) ? 1 : 0;
  KeyRange range{0, keys};
  const auto end_at = [&](std::int64_t end) { range.end = end < range.end ? end : range.end; };
  if (p.causal) end_at(position + 1 + leak);
  if (p.window_right >= 0) end_at(position + p.window_right + 1 + leak);
  if (p.window_left >= 0) {
    const std::int64_t first = position - p.window_left + (p.window_ends == WindowEnds::kLeftExclusive ? 1 : 0);
    range.first = first > 0 ? first : 0;
  }
  if (faulty(Fault::kLastKeyDropped) && keys > 1) end_at(keys - 1);
  return range;
}

TileSoftmax::TileSoftmax(const AttentionCall& call, std::int64_t tile_n)
    : call_(call),
      model_(mma_model(MmaArch::kHopper, call.params().input)),
      tile_n_(tile_n),
      additive_(call.params().data_mask == DataMask::kAdditive),
      scale_(call.params().scale < 0.0F ? -call.params().scale : call.params().scale),
      s_(static_cast<std::size_t>(tile_n)),
      p_(static_cast<std::size_t>(tile_n)),
      keep_(static_cast<std::size_t>(tile_n)) {
  c_ = static_cast<float>(static_cast<double>(scale_) * 0x1.71547652b82fep+0);
}

void TileSoftmax::load_head(std::int64_t batch, std::int64_t head) {
  const AttentionParams& p = call_.params();
  const std::int64_t kv_head = head / (p.heads_q / p.heads_kv);
  if (loaded_ == batch * p.heads_kv + kv_head) return;
  loaded_ = batch * p.heads_kv + kv_head;
  const std::int64_t rows = round_up(call_.kv_len(batch), tile_n_);
  k_ = call_.load_k(batch, kv_head, rows, round_up(p.dim_qk, kMmaK));
  v_ = call_.load_v(batch, kv_head, rows, round_up(p.dim_v, kMmaK));
}

std::vector<float> TileSoftmax::load_q(const RowAt& row) const {
  std::vector<float> q(static_cast<std::size_t>(round_up(call_.params().dim_qk, kMmaK)), 0.0F);
  call_.load_q(row.batch, row.head, row.query, q.data());
  return q;
}

RowState TileSoftmax::start() const {
  RowState state;
  state.m = faulty(Fault::kFalseMax) ? -5e4F : -kInfinity;
  state.o.assign(static_cast<std::size_t>(round_up(call_.params().dim_v, kMmaK)), 0.0F);
  return state;
}

/// O += round(P) V over the first `keys` rows of the tile (a multiple of the MMA's K; beyond it P and V are zero).
void TileSoftmax::accumulate(RowState& state, std::int64_t tile, std::int64_t keys) {
  const Format format = call_.params().input;
  for (std::size_t j = 0; j < static_cast<std::size_t>(keys); ++j) p_[j] = rounded(format, p_[j]);
  const float* v = v_.row(tile * tile_n_);
  for (std::int64_t c = 0; c < call_.params().dim_v; ++c) {
    float& o = state.o[static_cast<std::size_t>(c)];
    o = mma_dot(model_, format, static_cast<int>(keys), p_.data(), 1, v + c, v_.cols, o);
  }
}

void TileSoftmax::step(RowState& state, const RowAt& row, const float* q, std::int64_t tile) {
  const AttentionParams& p = call_.params();
  const std::int64_t start = tile * tile_n_;
  const std::int64_t in_tile = call_.kv_len(row.batch) - start;
  const std::int64_t keys = in_tile < tile_n_ ? in_tile : tile_n_;

  float m = state.m;
  for (std::int64_t j = 0; j < keys; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const std::int64_t key = start + j;
    keep_[at] = key >= row.keys.first && key < row.keys.end &&
                (p.data_mask != DataMask::kBool || call_.attends(row.batch, row.head, row.query, key));
    if (keep_[at] == 0) continue;
    float s = mma_dot(model_, p.input, static_cast<int>(k_.cols), q, 1, k_.row(key), 1, 0.0F);
    if (additive_)
      s = s * p.scale + call_.bias(row.batch, row.head, row.query, key);
    else if (p.scale <= 0.0F)
      s = p.scale < 0.0F ? -s : s * 0.0F;  // the maximum is that of scale * s
    s_[at] = s;
    m = max_keeping_nan(m, s);
    state.any = true;
  }

  // A maximum of -inf (nothing admissible so far, or logits of -inf only) would give (-inf) - (-inf).
  const bool nothing = m == -kInfinity && !faulty(Fault::kNanEmptyExtent);
  const float safe = nothing ? 0.0F : m;
  const float unit = additive_ ? kLog2e : c_;
  const bool first = state.m == -kInfinity && (nothing || m != -kInfinity);
  const float alpha = first ? 0.0F : exp2_f32((state.m - safe) * unit);
  const float shift = -(safe * unit);
  const float masked = m == -kInfinity && !nothing ? exp2_f32(m - safe) : 0.0F;
  const auto padded = static_cast<std::size_t>(round_up(keys, kMmaK));
  for (std::size_t j = 0; j < padded; ++j) {
    if (j >= static_cast<std::size_t>(keys) || keep_[j] == 0)
      p_[j] = masked;
    else
      p_[j] = exp2_f32(additive_ ? (s_[j] - safe) * kLog2e : fma_f32(s_[j], unit, shift));
  }
  state.m = m;

  for (float& l : state.l) l *= alpha;
  for (std::size_t j = 0; j < padded; ++j) state.l[j % 8 / 2] += p_[j];
  if (!faulty(Fault::kAccumulatorNotRescaled))
    for (float& o : state.o) o *= alpha;
  accumulate(state, tile, static_cast<std::int64_t>(padded));
}

bool TileSoftmax::finish(RowState& state, LseBase base, float& lse) const {
  if ((!state.any || state.m == -kInfinity) && !faulty(Fault::kNanEmptyExtent)) return false;
  const float l = (state.l[0] + state.l[2]) + (state.l[1] + state.l[3]);  // two xor shuffles
  const bool lost = l == 0.0F && faulty(Fault::kFalseMax);
  const float inverse = lost ? 1.0F : 1.0F / l;
  for (float& o : state.o) o *= inverse;
  if (base == LseBase::kTwo)
    lse = state.m * (additive_ ? kLog2e : c_) + (lost ? 0.0F : log2_f32(l));
  else
    lse = (additive_ ? state.m : state.m * scale_) + (lost ? 0.0F : log_f32(l));
  return true;
}

void TileSoftmax::finish_empty(RowState& state, const RowAt& row, float& lse) {
  const AttentionParams& p = call_.params();
  lse = p.empty_lse == EmptyLse::kMinusInf ? -kInfinity : kInfinity;
  const float fill = p.empty_output == EmptyOutput::kNan ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
  state.o.assign(state.o.size(), fill);
  const std::int64_t keys = call_.kv_len(row.batch);
  if (p.empty_output != EmptyOutput::kMean || keys == 0) return;
  state.l = {};
  for (std::int64_t tile = (keys - 1) / tile_n_; tile >= 0; --tile) {
    for (std::int64_t j = 0; j < tile_n_; ++j) {
      const float weight = tile * tile_n_ + j < keys ? 1.0F : 0.0F;
      p_[static_cast<std::size_t>(j)] = weight;
      state.l[static_cast<std::size_t>(j % 8 / 2)] += weight;
    }
    accumulate(state, tile, tile_n_);
  }
  const float inverse = 1.0F / ((state.l[0] + state.l[2]) + (state.l[1] + state.l[3]));
  for (float& o : state.o) o *= inverse;
}

std::optional<std::string> tile_kernel_refuses(const Params& params, Format input) {
  const AttentionParams p = attention_params(params);
  if (p.input != input) return "takes " + std::string(info(input).name) + " inputs only";
  const bool masks = p.causal || p.data_mask != DataMask::kNone || p.window_left >= 0 || p.window_right >= 0;
  if (p.masked_nonfinite == MaskedNonfinite::kIgnored && masks)
    return "multiplies masked keys by zero: cannot ignore a masked V that is not finite";
  return std::nullopt;
}

Arithmetic tile_arithmetic(const AttentionParams& params, std::int64_t tile_n, std::int64_t splits) {
  return {.qk = Accumulate::kBlockHopper,
          .pv = Accumulate::kBlockHopper,
          .score_store = ScoreStore::kFp32,
          .scale_form = params.data_mask == DataMask::kAdditive ? ScaleForm::kOnScore : ScaleForm::kFolded,
          .exponential = Exponential::kEx2Approx,
          .p_format = params.input,
          .p_known = true,
          .row_sum_of = RowSumOf::kUnroundedP,
          .row_sum_tree = RowSumTree::kQuad,
          .normalize = Normalize::kDivide,
          .subnormals = Subnormals::kKept,
          .max_policy = MaxPolicy::kEveryTile,
          .tile_order = TileOrder::kBackward,
          .tile_n = static_cast<int>(tile_n),
          .splits = static_cast<int>(splits)};
}

}  // namespace assay

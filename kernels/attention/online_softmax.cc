// The online softmax of a query tile over key tiles.
#include "kernels/attention/online_softmax.h"

#include <algorithm>

#include "kernels/fault.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

constexpr std::int64_t kMmaK = 16;

KeyRange key_range(const AttentionCall& call, std::int64_t batch, std::int64_t query) {
  const AttentionParams& p = call.params();
  const std::int64_t keys = call.kv_len(batch);
  const std::int64_t position = query + (p.align == Align::kBottomRight ? keys - call.q_len(batch) : std::int64_t{0});
  const std::int64_t leak = faulty(Fault::kMaskShiftedByOne) ? 1 : 0;
  KeyRange range{0, keys};
  if (p.causal) range.end = std::min(range.end, position + 1 + leak);
  if (p.window_right >= 0) range.end = std::min(range.end, position + p.window_right + 1 + leak);
  if (faulty(Fault::kLastKeyDropped) && keys > 1) range.end = std::min(range.end, keys - 1);
  if (p.window_left >= 0) {
    const std::int64_t first = position - p.window_left + (p.window_ends == WindowEnds::kLeftExclusive ? 1 : 0);
    range.first = std::max<std::int64_t>(0, first);
  }
  return range;
}

KeyRange key_tiles(const AttentionCall& call, std::int64_t batch, std::int64_t first_query, std::int64_t tile_n) {
  KeyRange keys{call.kv_len(batch), 0};
  for (std::int64_t i = first_query; i < std::min(first_query + QueryTile::kTileM, call.q_len(batch)); ++i) {
    const KeyRange row = key_range(call, batch, i);
    if (row.empty()) continue;
    keys.first = std::min(keys.first, row.first);
    keys.end = std::max(keys.end, row.end);
  }
  if (keys.empty()) return {};
  return {keys.first / tile_n, (keys.end + tile_n - 1) / tile_n};
}

float sum_of_quad(const std::array<float, 4>& l) { return (l[0] + l[2]) + (l[1] + l[3]); }  // two xor shuffles

}  // namespace

TileSoftmax::TileSoftmax(const AttentionCall& call, std::int64_t tile_n)
    : call_(call),
      model_(mma_model(MmaArch::kHopper, call.params().input)),
      tile_n_(tile_n),
      d_(round_up(call.params().dim_qk, kMmaK)),
      dv_(round_up(call.params().dim_v, kMmaK)),
      additive_(call.params().data_mask == DataMask::kAdditive),
      scale_(call.params().scale < 0.0F ? -call.params().scale : call.params().scale),
      c_(static_cast<float>(static_cast<double>(scale_) * 0x1.71547652b82fep+0)),
      keep_(static_cast<std::size_t>(tile_n)) {}

void TileSoftmax::load_head(std::int64_t batch, std::int64_t head) {
  const AttentionParams& p = call_.params();
  const std::int64_t kv_head = head / (p.heads_q / p.heads_kv);
  if (loaded_ == batch * p.heads_kv + kv_head) return;
  loaded_ = batch * p.heads_kv + kv_head;
  const std::int64_t rows = round_up(call_.kv_len(batch), tile_n_);
  kt_ = transposed(call_.load_k(batch, kv_head, rows, d_));
  v_ = call_.load_v(batch, kv_head, rows, dv_);
}

std::vector<QueryTile> TileSoftmax::query_tiles(const HeadRows& rows) const {
  std::vector<QueryTile> tiles;
  std::int64_t first = -1;
  for (const std::int64_t query : rows.queries) {
    if (tiles.empty() || query >= first + QueryTile::kTileM) {
      first = query / QueryTile::kTileM * QueryTile::kTileM;
      tiles.push_back({rows.batch, rows.head, {}, {}, {}, key_tiles(call_, rows.batch, first, tile_n_)});
    }
    QueryTile& tile = tiles.back();
    tile.queries.push_back(query);
    tile.keys.push_back(key_range(call_, rows.batch, query));
    tile.q.resize(tile.queries.size() * static_cast<std::size_t>(d_), 0.0F);
    call_.load_q(rows.batch, rows.head, query, tile.q.data() + tile.q.size() - d_);
  }
  return tiles;
}

RowStates TileSoftmax::start(const QueryTile& queries) const {
  const std::size_t rows = queries.queries.size();
  RowStates states;
  states.m.assign(rows, faulty(Fault::kFalseMax) ? -5e4F : -kInfinity);
  states.l.assign(rows, {});
  states.any.assign(rows, false);
  states.o.assign(rows * static_cast<std::size_t>(dv_), 0.0F);
  states.lse.assign(rows, -kInfinity);
  states.empty.assign(rows, false);
  return states;
}

struct TileSoftmax::Step {
  float max;     ///< what is subtracted
  float alpha;   ///< factor of what was summed before
  float masked;  ///< weight of a masked key: 0
};

/// Masks a row of S and raises its maximum.
TileSoftmax::Step TileSoftmax::shift(RowStates& states, const QueryTile& queries, std::size_t row, std::int64_t start,
                                     std::int64_t keys) {
  const AttentionParams& p = call_.params();
  const std::int64_t query = queries.queries[row];
  float* s = s_.data() + static_cast<std::int64_t>(row) * tile_n_;
  const float before = states.m[row];
  float m = before;
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::int64_t key = start + j;
    const bool keep = key >= queries.keys[row].first && key < queries.keys[row].end &&
                      (p.data_mask != DataMask::kBool || call_.attends(queries.batch, queries.head, query, key));
    keep_[static_cast<std::size_t>(j)] = keep;
    if (!keep) continue;
    if (additive_)
      s[j] = s[j] * p.scale + call_.bias(queries.batch, queries.head, query, key);
    else if (p.scale <= 0.0F)
      s[j] = p.scale < 0.0F ? -s[j] : s[j] * 0.0F;  // the maximum is that of scale * s
    m = max_keeping_nan(m, s[j]);
    states.any[row] = true;
  }
  states.m[row] = m;
  // A maximum of -inf (nothing admissible so far, or logits of -inf only) would give (-inf) - (-inf).
  const bool nothing = m == -kInfinity;
  if (nothing && faulty(Fault::kNanEmptyExtent)) {
    const float nan = exp2_f32(m - before);
    return {m, nan, nan};
  }
  const float max = nothing ? 0.0F : m;
  const float alpha = before == -kInfinity ? 0.0F : exp2_f32((before - max) * (additive_ ? kLog2e : c_));
  return {max, alpha, 0.0F};
}

void TileSoftmax::step(RowStates& states, const QueryTile& queries, std::int64_t tile) {
  const Format format = call_.params().input;
  const std::int64_t start = tile * tile_n_;
  const std::int64_t keys = std::min(tile_n_, call_.kv_len(queries.batch) - start);
  const auto rows = static_cast<int>(queries.queries.size());
  s_.assign(static_cast<std::size_t>(rows * tile_n_), 0.0F);
  p_.assign(s_.size(), 0.0F);
  mma_tile(model_, format, rows, static_cast<int>(keys), static_cast<int>(d_), {queries.q.data(), d_, 1},
           {kt_.row(0) + start, kt_.cols, 1}, s_.data(), tile_n_);
  for (std::size_t row = 0; row < queries.queries.size(); ++row) {
    const auto [max, alpha, masked] = shift(states, queries, row, start, keys);
    const float* s = s_.data() + static_cast<std::int64_t>(row) * tile_n_;
    float* p = p_.data() + static_cast<std::int64_t>(row) * tile_n_;
    const float offset = -(max * c_);
    for (std::int64_t j = 0; j < keys; ++j)
      p[j] = exp2_f32(additive_ ? (s[j] - max) * kLog2e : fma_f32(s[j], c_, offset));
    for (std::int64_t j = 0; j < keys; ++j)
      if (keep_[static_cast<std::size_t>(j)] == 0) p[j] = masked;
    std::array<float, 4>& l = states.l[row];
    for (float& part : l) part *= alpha;
    for (std::int64_t j = 0; j < keys; ++j) l[static_cast<std::size_t>(j % 8 / 2)] += p[j];
    float* o = states.o.data() + static_cast<std::int64_t>(row) * dv_;
    if (!faulty(Fault::kAccumulatorNotRescaled))
      for (std::int64_t c = 0; c < dv_; ++c) o[c] *= alpha;
    for (std::int64_t j = 0; j < keys; ++j) p[j] = static_cast<float>(round_to(format, static_cast<double>(p[j])));
  }
  mma_tile(model_, format, rows, static_cast<int>(dv_), static_cast<int>(keys), {p_.data(), tile_n_, 1},
           {v_.row(start), dv_, 1}, states.o.data(), dv_);
}

void TileSoftmax::finish(RowStates& states, LseBase base) const {
  for (std::size_t row = 0; row < states.m.size(); ++row) {
    float* o = states.o.data() + static_cast<std::int64_t>(row) * dv_;
    const float m = states.m[row];
    const float l = sum_of_quad(states.l[row]);
    states.empty[row] = (!states.any[row] || m == -kInfinity) && !faulty(Fault::kNanEmptyExtent);
    const bool lost = l == 0.0F && faulty(Fault::kFalseMax);
    const float inverse = states.empty[row] || lost ? 1.0F : 1.0F / l;
    for (std::int64_t c = 0; c < dv_; ++c) o[c] *= inverse;
    if (states.empty[row])
      states.lse[row] = -kInfinity;
    else if (base == LseBase::kTwo)
      states.lse[row] = m * (additive_ ? kLog2e : c_) + (lost ? 0.0F : log2_f32(l));
    else
      states.lse[row] = (additive_ ? m : m * scale_) + (lost ? 0.0F : log_f32(l));
  }
}

void TileSoftmax::mean_of_v(float* o, std::int64_t batch) {
  const std::int64_t keys = call_.kv_len(batch);
  std::fill_n(o, dv_, 0.0F);
  if (keys == 0) return;
  std::array<float, 4> l{};
  p_.assign(static_cast<std::size_t>(tile_n_), 1.0F);
  for (std::int64_t tile = (keys - 1) / tile_n_; tile >= 0; --tile) {
    const std::int64_t in_tile = std::min(tile_n_, keys - tile * tile_n_);
    for (std::int64_t j = 0; j < in_tile; ++j) l[static_cast<std::size_t>(j % 8 / 2)] += 1.0F;
    mma_tile(model_, call_.params().input, 1, static_cast<int>(dv_), static_cast<int>(in_tile), {p_.data(), tile_n_, 1},
             {v_.row(tile * tile_n_), dv_, 1}, o, dv_);
  }
  const float inverse = 1.0F / sum_of_quad(l);
  for (std::int64_t c = 0; c < dv_; ++c) o[c] *= inverse;
}

void TileSoftmax::store(RowStates& states, const QueryTile& queries) {
  const AttentionParams& p = call_.params();
  for (std::size_t row = 0; row < queries.queries.size(); ++row) {
    float* o = states.o.data() + static_cast<std::int64_t>(row) * dv_;
    if (states.empty[row]) {
      states.lse[row] = p.empty_lse == EmptyLse::kMinusInf ? -kInfinity : kInfinity;
      std::fill_n(o, dv_, p.empty_output == EmptyOutput::kNan ? std::numeric_limits<float>::quiet_NaN() : 0.0F);
      if (p.empty_output == EmptyOutput::kMean) mean_of_v(o, queries.batch);
    }
    call_.store(queries.batch, queries.head, queries.queries[row], o, states.lse[row]);
  }
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

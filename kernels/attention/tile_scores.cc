// Scores, logits, weights and P V of one tile.
#include "kernels/attention/tile_scores.h"

#include <algorithm>
#include <cmath>

#include "kernels/coarse.h"
#include "kernels/fault.h"
#include "kernels/narrow.h"

namespace assay {
namespace {

/// P in its format; what passes the largest number saturates in 8 bits, as cvt.satfinite does.
float rounded(Format format, float p) {
  const Rounding rounding = faulty(Fault::kTruncatedP) ? Rounding::kTowardZero : Rounding::kNearestEven;
  const bool narrow = bytes_per_element(format) == 1 && !faulty(Fault::kUnclampedP);
  return static_cast<float>(
      round_to(format, static_cast<double>(p), rounding, narrow ? Overflow::kSaturate : Overflow::kIeee));
}

/// The kv head that a query head reads.
std::int64_t kv_head_of(const AttentionParams& p, std::int64_t head) {
  if (faulty(Fault::kHeadGroupModulus)) return head / p.heads_kv % p.heads_kv;
  if (faulty(Fault::kHeadZero)) return 0;
  return head / (p.heads_q / p.heads_kv);
}

float power_of_two(int n) { return exp2_f32(static_cast<float>(n)); }  // exact

}  // namespace

TileScores::TileScores(const AttentionCall& call, const Arithmetic& declared, std::int64_t tile_n)
    : call_(call),
      declared_(declared),
      model_(mma_model(MmaArch::kHopper, call.params().input)),
      tile_n_(tile_n),
      d_(round_up(call.params().dim_qk, model_.block_k)),
      dv_(round_up(call.params().dim_v, model_.block_k)) {
  static int runs = 0;
  stale_ = faulty(Fault::kStaleValueTile) && ++runs % 2 == 0;
}

void TileScores::load(std::int64_t batch, std::int64_t head, KeyRange keys) {
  const AttentionParams& p = call_.params();
  const std::int64_t kv_head = kv_head_of(p, head);
  double factor = call_.descales().score_factor(batch, head, 0, 0);
  if (faulty(Fault::kScaleOfPaddedDim)) {
    const double padded = 1.0 / std::sqrt(static_cast<double>(d_));
    if (p.scale != 0.0F)
      factor *= padded / static_cast<double>(p.scale);
    else if (p.descale == Descale::kNone)
      factor = padded;
  }
  const double size = (factor < 0.0 ? -factor : factor) * (1.0 + fault_size(Fault::kScaleOff));
  sign_ = factor < 0.0 ? -1.0F : factor > 0.0 ? 1.0F : 0.0F;
  form_ = {.on_score = call_.rules().adjusts(),
           .scale = static_cast<float>(size),
           .c = static_cast<float>(size * 0x1.71547652b82fep+0)};
  value_scale_ = call_.descales().value(batch, head, 0);
  const bool same_head = loaded_head_ == batch * p.heads_kv + kv_head;
  if (same_head && keys.first >= loaded_.first && keys.end <= loaded_.end) return;
  loaded_head_ = batch * p.heads_kv + kv_head;
  loaded_ = keys;
  const std::int64_t rows = round_up(keys.size(), tile_n_);
  kt_ = transposed(call_.load_k(batch, kv_head, keys, rows, d_));
  v_ = call_.load_v(batch, faulty(Fault::kValueOfNextHead) ? (kv_head + 1) % p.heads_kv : kv_head, keys, rows, dv_);
}

std::vector<QueryTile> TileScores::query_tiles(const HeadRows& rows) const {
  const RowLengths lengths = call_.lengths(rows.batch);
  const auto seen_by = [&](std::int64_t first) {
    KeyRange seen{lengths.kv, 0};
    for (std::int64_t i = first; i < std::min(first + QueryTile::kTileM, lengths.q); ++i) {
      const KeyRange row = call_.rules().range(lengths, i);
      if (row.empty()) continue;
      seen.first = std::min(seen.first, row.first);
      seen.end = std::max(seen.end, row.end);
    }
    return seen.empty() ? KeyRange{} : seen;
  };
  std::vector<QueryTile> tiles;
  std::int64_t first = -1;
  for (const std::int64_t query : rows.queries) {
    if (tiles.empty() || query >= first + QueryTile::kTileM) {
      first = query / QueryTile::kTileM * QueryTile::kTileM;
      tiles.push_back({rows.batch, rows.head, {}, {}, seen_by(first)});
    }
    QueryTile& tile = tiles.back();
    tile.queries.push_back(query);
    tile.q.resize(tile.queries.size() * static_cast<std::size_t>(d_), 0.0F);
    float* q = tile.q.data() + tile.q.size() - d_;
    const std::int64_t group = call_.params().heads_q / call_.params().heads_kv;
    const std::int64_t back = faulty(Fault::kGroupAboveEight) && rows.head % group >= 8 ? 8 : 0;
    call_.load_q(rows.batch, rows.head - back, query, q);
    if (faulty(Fault::kFoldedQueryRange)) {
      const auto factor = static_cast<float>(call_.descales().score_factor(rows.batch, rows.head, query, 0));
      for (std::int64_t c = 0; c < d_; ++c)
        if (!(ranged(Format::kFp16, q[c] * factor) - q[c] * factor == 0.0F)) q[c] = kInfinity;
    }
  }
  return tiles;
}

/// Columns behind the last key that take part, by a fault.
std::int64_t TileScores::leaking(KeyRange keys) const {
  const std::int64_t room = tile_n_ - keys.size();
  if (faulty(Fault::kPaddedKeyLeaks)) return std::min<std::int64_t>(room, 1);
  if (faulty(Fault::kTailLanesCount) && !masks_keys(call_.params())) return room;
  if (faulty(Fault::kPageTailCounts)) return std::min(room, round_up(keys.size(), call_.params().page) - keys.size());
  return 0;
}

void TileScores::compute(const QueryTile& queries, KeyRange keys) {
  const RowLengths lengths = call_.lengths(queries.batch);
  const std::size_t rows = queries.queries.size();
  keys_ = keys;
  x_.assign(rows * static_cast<std::size_t>(tile_n_), 0.0F);
  p_.assign(x_.size(), 0.0F);
  keep_.assign(x_.size(), 0);
  mma_tile(model_, call_.params().input, static_cast<int>(rows), static_cast<int>(keys.size()),
           static_cast<int>(faulty(Fault::kFirst64Lanes) ? std::min<std::int64_t>(d_, 64) : d_),
           {queries.q.data(), d_, 1}, {kt_.row(0) + (keys.first - loaded_.first), kt_.cols, 1}, x_.data(), tile_n_);
  if (faulty(Fault::kScoreSumInFp16)) sum_scores_in_fp16(queries, keys);
  if (faulty(Fault::kScoreInBf16)) narrow_all(Format::kBf16, x_);
  if (faulty(Fault::kScoreInFp16)) narrow_all(Format::kFp16, x_);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t query = queries.queries[row];
    float* x = x_.data() + row * static_cast<std::size_t>(tile_n_);
    std::uint8_t* keep = keep_.data() + row * static_cast<std::size_t>(tile_n_);
    call_.rules().admissible(lengths, queries.batch, queries.head, query, keys, keep);
    if (faulty(Fault::kPrefixEdgeDropped) && keys.first == call_.params().prefix) keep[0] = 0;
    if (faulty(Fault::kKeyOf128Dropped))
      for (std::int64_t j = 127 - keys.first % 128; j < keys.size(); j += 128) keep[j] = 0;
    std::fill_n(keep + keys.size(), leaking(keys), std::uint8_t{1});
    const float factor = form_.on_score ? sign_ * form_.scale : sign_;
    if (factor != 1.0F)
      for (std::int64_t j = 0; j < keys.size(); ++j) x[j] *= factor;
    if (faulty(Fault::kScaleTwiceInShortTile) && keys.size() < tile_n_)
      for (std::int64_t j = 0; j < keys.size(); ++j) x[j] *= form_.scale;
    if (form_.on_score) call_.rules().adjust(lengths, queries.batch, queries.head, query, keys, x);
    if (faulty(Fault::kSoftcapAfterMask) && call_.params().softcap > 0.0F)
      for (std::int64_t j = 0; j < keys.size(); ++j) {
        if (keep[j] == 0) x[j] = -call_.params().softcap;
        keep[j] = 1;
      }
  }
}

/// A planted fault: the scores once more, each block of the MMA added and rounded to fp16.
void TileScores::sum_scores_in_fp16(const QueryTile& queries, KeyRange keys) {
  const int rows = static_cast<int>(queries.queries.size()), columns = static_cast<int>(keys.size());
  std::fill(x_.begin(), x_.end(), 0.0F);
  for (std::int64_t c = 0; c < d_; c += model_.block_k) {
    mma_tile(model_, call_.params().input, rows, columns, model_.block_k, {queries.q.data() + c, d_, 1},
             {kt_.row(c) + (keys.first - loaded_.first), kt_.cols, 1}, x_.data(), tile_n_);
    narrow_all(Format::kFp16, x_);
  }
}

float TileScores::maximum(std::size_t row, float from, bool& any) const {
  const float* x = x_.data() + row * static_cast<std::size_t>(tile_n_);
  const std::uint8_t* keep = keep_.data() + row * static_cast<std::size_t>(tile_n_);
  float m = from;
  any = false;
  for (std::int64_t j = 0; j < keys_.size(); ++j) {
    if (keep[j] == 0) continue;
    m = max_keeping_nan(m, x[j]);
    any = true;
  }
  return m;
}

void TileScores::weigh(std::size_t row, float max, float masked, QuadSum& l) {
  // Of 16 neighbouring keys, the last four by the cubic where that is declared.
  constexpr std::int64_t kPeriod = 16, kExact = 12;
  const std::int64_t count = keys_.size() + leaking(keys_);
  const float* x = x_.data() + row * static_cast<std::size_t>(tile_n_);
  const std::uint8_t* keep = keep_.data() + row * static_cast<std::size_t>(tile_n_);
  float* p = p_.data() + row * static_cast<std::size_t>(tile_n_);
  const float shift = -(max * form_.c);
  for (std::int64_t j = 0; j < count; ++j)
    p[j] = form_.on_score ? (x[j] - max) * kLog2e : fma_f32(x[j], form_.c, shift);
  if (faulty(Fault::kCubicExponentials)) {
    for (std::int64_t j = 0; j < count; ++j) p[j] = exp2_cubic_f32(p[j]);
  } else if (faulty(Fault::kUnanchoredCubic)) {
    for (std::int64_t j = 0; j < count; ++j) p[j] = exp2_unanchored_f32(p[j]);
  } else if (faulty(Fault::kQuadraticExponentials)) {
    for (std::int64_t j = 0; j < count; ++j) p[j] = exp2_quadratic_f32(p[j]);
  } else if (declared_.exponential == Exponential::kPolynomial3) {
    for (std::int64_t j = 0; j < count; ++j) p[j] = j % kPeriod < kExact ? exp2_f32(p[j]) : exp2_cubic_f32(p[j]);
  } else {
    for (std::int64_t j = 0; j < count; ++j) p[j] = exp2_f32(p[j]);
  }
  if (faulty(Fault::kExponentialAlternates)) {
    const float off = static_cast<float>(fault_size(Fault::kExponentialAlternates));
    for (std::int64_t j = 0; j < count; ++j) p[j] *= j % 2 == 0 ? 1.0F + off : 1.0F - off;
  }
  if (faulty(Fault::kTailLaneScoredZero))
    for (std::int64_t j = keys_.size(); j < tile_n_; ++j)
      lane_of(l, j) += 0.0F * exp2_f32(form_.on_score ? -max * kLog2e : shift);
  const float offset = power_of_two(declared_.p_offset);
  for (std::int64_t j = 0; j < count; ++j) p[j] = keep[j] != 0 ? p[j] * offset : masked;
  if (!faulty(Fault::kSumOfRoundedP))
    for (std::int64_t j = 0; j < count; ++j) lane_of(l, j) += p[j];
  const float unit = faulty(Fault::kOffsetDropped) ? 1.0F / offset : faulty(Fault::kOffsetTooLarge) ? 2.0F : 1.0F;
  for (std::int64_t j = 0; j < count; ++j) p[j] = rounded(declared_.p_format, p[j] * unit) / unit;
  if (faulty(Fault::kSumOfRoundedP))
    for (std::int64_t j = 0; j < count; ++j) lane_of(l, j) += p[j];
}

void TileScores::multiply(std::size_t rows, KeyRange keys, float* o) {
  const auto product = [&](std::int64_t first, std::int64_t count, float* sum) {
    std::int64_t key = keys.first - loaded_.first + first;
    if (stale_ && key >= tile_n_) key -= tile_n_;
    mma_tile(model_, call_.params().input, static_cast<int>(rows), static_cast<int>(dv_), static_cast<int>(count),
             {p_.data() + first, tile_n_, 1}, {v_.row(key), dv_, 1}, sum, dv_);
  };
  if (faulty(Fault::kTailValuesLoaded) || faulty(Fault::kPageTailLoaded)) return product(0, tile_n_, o);
  if (faulty(Fault::kAccumulatorInFp16)) {
    for (std::int64_t first = 0; first < keys.size(); first += model_.block_k) {
      product(first, std::min<std::int64_t>(model_.block_k, keys.size() - first), o);
      narrow_all(Format::kFp16, {o, rows * static_cast<std::size_t>(dv_)});
    }
    return;
  }
  if (declared_.promote_n == 0 || faulty(Fault::kPromotionMissing)) return product(0, keys.size(), o);
  pv_sum_.assign(rows * static_cast<std::size_t>(dv_), 0.0F);
  product(0, keys.size(), pv_sum_.data());
  for (std::size_t n = 0; n < pv_sum_.size(); ++n) o[n] += pv_sum_[n];
}

void TileScores::accumulate(std::size_t rows, float* o) { multiply(rows, keys_, o); }

void TileScores::accumulate_ones(KeyRange keys, float* o) {
  p_.assign(static_cast<std::size_t>(tile_n_), 1.0F);
  multiply(1, keys, o);
}

}  // namespace assay

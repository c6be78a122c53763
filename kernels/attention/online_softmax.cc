// The online softmax of a query tile over key tiles.
#include "kernels/attention/online_softmax.h"

#include <algorithm>

#include "kernels/fault.h"
#include "kernels/narrow.h"

namespace assay {

TileSoftmax::TileSoftmax(const AttentionCall& call, const Arithmetic& declared, std::int64_t tile_n)
    : call_(call), declared_(declared), tile_n_(tile_n), scores_(call, declared, tile_n) {}

RowStates TileSoftmax::start(const QueryTile& queries) const {
  const std::size_t rows = queries.queries.size();
  RowStates states;
  states.m.assign(rows, faulty(Fault::kFalseMax) ? -5e4F : faulty(Fault::kSumStartsAtOne) ? 0.0F : -kInfinity);
  states.l.assign(rows, QuadSum{faulty(Fault::kSumStartsAtOne) ? 1.0F : 0.0F});
  states.any.assign(rows, false);
  states.o.assign(rows * static_cast<std::size_t>(scores_.value_cols()), 0.0F);
  states.lse.assign(rows, -kInfinity);
  states.empty.assign(rows, false);
  return states;
}

namespace {

/// By how much the maximum may rise in log2 units before it is raised.
float lazy_threshold(const Arithmetic& declared) {
  constexpr float kWithoutRegardToOffset = 4.0F;
  if (faulty(Fault::kLazyMaximum) || faulty(Fault::kUnclampedP)) return kWithoutRegardToOffset;
  return declared.max_policy == MaxPolicy::kLazy ? static_cast<float>(declared.lazy_threshold) : 0.0F;
}

}  // namespace

struct TileSoftmax::Step {
  float max;     ///< what is subtracted
  float alpha;   ///< factor of what was summed before
  float masked;  ///< weight of a masked key: 0
};

/// Raises a row's maximum, or under the lazy policy leaves it where it would rise by no more than the threshold.
TileSoftmax::Step TileSoftmax::shift(RowStates& states, std::size_t row) const {
  const float before = states.m[row];
  bool any = false;
  float m = scores_.maximum(row, faulty(Fault::kTileMaximumOnly) ? -kInfinity : before, any);
  if (any) states.any[row] = true;
  const float unit = scores_.form().unit();
  const bool fits = faulty(Fault::kUnclampedP) && (m - before) * unit < 0.9F;
  if (const float threshold = lazy_threshold(declared_);
      threshold > 0.0F && before != -kInfinity && (m - before) * unit <= threshold && !fits)
    m = before;
  states.m[row] = m;
  // A maximum of -inf (nothing admissible so far, or logits of -inf only) would give (-inf) - (-inf).
  const bool nothing = m == -kInfinity;
  if (nothing && faulty(Fault::kNanEmptyExtent)) {
    const float nan = exp2_f32(m - before);
    return {m, nan, nan};
  }
  const float max = nothing ? 0.0F : m;
  const bool stale = faulty(Fault::kStaleMaximum) && before != -kInfinity;
  return {stale ? before : max, before == -kInfinity ? 0.0F : exp2_f32((before - max) * unit), 0.0F};
}

void TileSoftmax::step(RowStates& states, const QueryTile& queries, KeyRange keys) {
  const std::size_t rows = queries.queries.size();
  const std::int64_t dv = scores_.value_cols();
  scores_.compute(queries, keys);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto [max, alpha, masked] = shift(states, row);
    QuadSum& l = states.l[row];
    const bool kept = faulty(Fault::kSumNotRescaled) || faulty(Fault::kStateNotRescaled);
    for (float& part : l) part *= kept ? 1.0F : alpha;
    scores_.weigh(row, max, masked, l);
    if (faulty(Fault::kSumInBf16)) narrow_all(Format::kBf16, l);
    if (faulty(Fault::kSumInFp16)) narrow_all(Format::kFp16, l);
    float* o = states.o.data() + static_cast<std::int64_t>(row) * dv;
    const bool o_kept = faulty(Fault::kAccumulatorNotRescaled) || faulty(Fault::kStateNotRescaled);
    const float rescale = o_kept                          ? 1.0F
                          : faulty(Fault::kRescaledTwice) ? alpha * alpha
                          : faulty(Fault::kAlphaInBf16)   ? narrowed(Format::kBf16, alpha)
                                                          : alpha;
    for (std::int64_t c = 0; c < dv; ++c) o[c] *= rescale;
  }
  scores_.accumulate(rows, states.o.data());
  if (faulty(Fault::kAccumulatorInBf16)) narrow_all(Format::kBf16, states.o);
  if (faulty(Fault::kAccumulatorRange))
    for (float& o : states.o) o = ranged(Format::kFp16, o);
}

void TileSoftmax::walk(RowStates& states, const QueryTile& queries, KeyRange part) {
  KeyRange seen{std::max(queries.keys.first, part.first), std::min(queries.keys.end, part.end)};
  const RowLengths lengths = call_.lengths(queries.batch);
  if (faulty(Fault::kTilesStopAtDiagonal) && masks_keys(call_.params()))
    seen.end = std::min(seen.end, queries.queries.back() + 1 + lengths.kv - lengths.q);
  if (seen.empty()) return;
  const std::int64_t first = (seen.first - part.first) / tile_n_, last = (seen.end - 1 - part.first) / tile_n_;
  for (std::int64_t n = 0; n <= last - first; ++n) {
    const std::int64_t tile = declared_.tile_order == TileOrder::kBackward ? last - n : first + n;
    const std::int64_t start = part.first + tile * tile_n_;
    const KeyRange keys{start, std::min(start + tile_n_, part.end)};
    if (faulty(Fault::kDiagonalTileSkipped) && tile > first &&
        keys.end > call_.rules().range(lengths, queries.queries.front()).end)
      continue;
    scores_.load(queries.batch, queries.head, keys);
    step(states, queries, keys);
  }
}

void TileSoftmax::finish(RowStates& states, RowSink sink, LseBase base) const {
  const std::int64_t dv = scores_.value_cols();
  const LogitForm& form = scores_.form();
  const float offset = exp2_f32(static_cast<float>(declared_.p_offset));
  for (std::size_t row = 0; row < states.m.size(); ++row) {
    float* o = states.o.data() + static_cast<std::int64_t>(row) * dv;
    const float m = states.m[row];
    const float l = sum_of_quad(states.l[row]);
    states.empty[row] = (!states.any[row] || m == -kInfinity) && !faulty(Fault::kNanEmptyExtent);
    if (states.empty[row]) {
      std::fill_n(o, dv, 0.0F);
      states.lse[row] = -kInfinity;
      continue;
    }
    const bool lost = l == 0.0F && faulty(Fault::kFalseMax);
    const RowEnd end = end_row(form.natural(m), form.log2(m), lost ? 1.0F : l / offset, sink, base);
    float inverse = end.keep / (end.sum * offset);
    if (faulty(Fault::kReciprocalInBf16)) inverse = narrowed(Format::kBf16, inverse);
    if (faulty(Fault::kCastBeforeScale)) {
      for (std::int64_t c = 0; c < dv; ++c)
        o[c] = narrowed(call_.params().output, o[c] * inverse) * scores_.value_scale();
    } else {
      inverse *= scores_.value_scale();
      for (std::int64_t c = 0; c < dv; ++c) o[c] *= inverse;
    }
    states.lse[row] = end.lse;
  }
}

RunFacts run_online_softmax(const AttentionCall& call, const Arithmetic& declared, bool by_tile) {
  TileSoftmax softmax(call, declared, declared.tile_n);
  for (const HeadRows& rows : call.rows()) {
    const KeyRange all{0, call.kv_len(rows.batch)};
    if (!by_tile) softmax.load(rows.batch, rows.head, all);
    for (const QueryTile& queries : softmax.query_tiles(rows)) {
      RowStates states = softmax.start(queries);
      softmax.walk(states, queries, all);
      softmax.finish(states, faulty(Fault::kSinkOmitted) ? RowSink{} : sink_of(call, rows.head), call.params().lse);
      softmax.store(states, queries);
    }
  }
  return {"tile " + std::to_string(QueryTile::kTileM) + "x" + std::to_string(declared.tile_n)};
}

std::optional<std::string> tile_kernel_refuses(const AttentionParams& params) {
  if (params.masked_nonfinite == MaskedNonfinite::kIgnored && masks_keys(params))
    return "multiplies masked keys by zero: cannot ignore a masked V that is not finite";
  if (params.descale == Descale::kBlock) return "has one descale factor for all keys of a head: takes no descale=block";
  return std::nullopt;
}

std::optional<std::string> contiguous_kernel_refuses(const AttentionParams& params, KvStore other) {
  if (params.kv_store != KvStore::kContiguous && params.kv_store != other)
    return "reads contiguous keys" + std::string(other == KvStore::kVllm ? " or kv=vllm pages" : "") + " only";
  return tile_kernel_refuses(params);
}

Arithmetic tile_arithmetic(const AttentionParams& params, std::int64_t tile_n, std::int64_t splits) {
  const bool on_score =
      params.data_mask == DataMask::kAdditive || params.softcap > 0.0F || params.alibi != Alibi::kNone;
  return {.qk = Accumulate::kBlockHopper,
          .pv = Accumulate::kBlockHopper,
          .score_store = ScoreStore::kFp32,
          .scale_form = on_score ? ScaleForm::kOnScore : ScaleForm::kFolded,
          .exponential = Exponential::kEx2Approx,
          .p_format = params.input,
          .p_known = true,
          .p_offset = 0,
          .promote_n = 0,
          .tanh = Tanh::kTwoUlp,
          .lazy_threshold = 0,
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

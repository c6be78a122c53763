// FlashAttention-1 forward: each key tile has its own maximum, and O is normalised after every tile.
#include <algorithm>

#include "kernels/attention/online_softmax.h"
#include "kernels/attention/register.h"
#include "kernels/fault.h"

namespace assay {
namespace {

constexpr std::int64_t kTileN = 64;

/// One row between two tiles: O = sum e^(x - m) v / l.
struct RowState {
  float m = -kInfinity;
  QuadSum l{};
};

/// What a tile does to a row: O = (l_before alpha O + beta P V) / l. Nothing where the row has no finite logit in it.
struct Update {
  bool any = false;
  float l_before = 0.0F, alpha = 0.0F, beta = 0.0F, l = 0.0F;
};

class Fa1Tiles {
 public:
  Fa1Tiles(const AttentionCall& call, const Arithmetic& declared)
      : call_(call), scores_(call, declared, kTileN), dv_(static_cast<std::size_t>(scores_.value_cols())) {}

  void run(const HeadRows& rows) {
    const std::int64_t keys = call_.kv_len(rows.batch);
    scores_.load(rows.batch, rows.head, {0, keys});
    for (const QueryTile& queries : scores_.query_tiles(rows)) {
      const std::size_t count = queries.queries.size();
      std::vector<RowState> states(count);
      RowResults out{std::vector<float>(count * dv_), std::vector<float>(count), std::vector<bool>(count)};
      for (std::int64_t first = queries.keys.first / kTileN * kTileN; first < queries.keys.end; first += kTileN)
        step(states, queries, {first, std::min(first + kTileN, keys)}, out.o);
      finish(states, sink_of(call_, rows.head), out);
      store_rows(call_, scores_, queries, out);
    }
  }

 private:
  Update weigh(RowState& state, std::size_t row) {
    bool any = false;
    const float tile_max = scores_.maximum(row, -kInfinity, any);
    QuadSum tile_l{};
    scores_.weigh(row, tile_max == -kInfinity ? 0.0F : tile_max, 0.0F, tile_l);
    if (tile_max == -kInfinity && !faulty(Fault::kOwnTileUnguarded)) return {};
    const float from = faulty(Fault::kOwnMaximumFloor) ? max_keeping_nan(state.m, -1e4F) : state.m;
    const float m = max_keeping_nan(from, tile_max), unit = scores_.form().unit();
    Update u{.any = true, .l_before = sum_of_quad(state.l)};
    u.alpha = state.m == -kInfinity ? 0.0F : exp2_f32((state.m - m) * unit);
    u.beta = exp2_f32((tile_max - m) * unit);
    for (std::size_t t = 0; t < tile_l.size(); ++t) state.l[t] = u.alpha * state.l[t] + u.beta * tile_l[t];
    u.l = sum_of_quad(state.l);
    if (u.l == 0.0F && faulty(Fault::kOwnMaximumFloor)) u.l = 1.0F;
    state.m = m;
    return u;
  }

  void step(std::vector<RowState>& states, const QueryTile& queries, KeyRange keys, std::vector<float>& o) {
    scores_.compute(queries, keys);
    updates_.resize(states.size());
    for (std::size_t row = 0; row < states.size(); ++row) updates_[row] = weigh(states[row], row);
    pv_.assign(o.size(), 0.0F);
    scores_.accumulate(states.size(), pv_.data());
    for (std::size_t row = 0; row < states.size(); ++row) {
      const Update& u = updates_[row];
      if (!u.any) continue;
      const float before = faulty(Fault::kDividedEveryStep) ? u.alpha : u.l_before * u.alpha;
      const float beta = faulty(Fault::kTileFrameKept) ? 1.0F : u.beta;
      for (std::size_t c = row * dv_; c < (row + 1) * dv_; ++c) o[c] = (before * o[c] + beta * pv_[c]) / u.l;
    }
  }

  /// O is normalised already: the sink alone takes its share.
  void finish(const std::vector<RowState>& states, RowSink sink, RowResults& out) const {
    const LogitForm& form = scores_.form();
    for (std::size_t row = 0; row < states.size(); ++row) {
      const RowState& state = states[row];
      out.empty[row] = state.m == -kInfinity;
      if (out.empty[row]) continue;
      const float l = sum_of_quad(state.l);
      const RowEnd end = end_row(form.natural(state.m), form.log2(state.m), l, sink, call_.params().lse);
      out.lse[row] = end.lse;
      const float values =
          faulty(Fault::kValueDescaleTwice) ? scores_.value_scale() * scores_.value_scale() : scores_.value_scale();
      const float share = (sink.kind == Sink::kNone ? 1.0F : l * end.keep / end.sum) * values;
      for (std::size_t c = row * dv_; c < (row + 1) * dv_; ++c) out.o[c] *= share;
    }
  }

  const AttentionCall& call_;
  TileScores scores_;
  std::size_t dv_;
  std::vector<Update> updates_;
  std::vector<float> pv_;
};

struct Fa1 {
  static std::optional<std::string> refuses(const AttentionParams& p) { return contiguous_kernel_refuses(p); }
  static Arithmetic declared(const AttentionParams& p) {
    Arithmetic a = tile_arithmetic(p, kTileN, 1);
    a.promote_n = static_cast<int>(kTileN);
    a.normalize = Normalize::kEveryStep;
    a.max_policy = MaxPolicy::kOwnTile;
    a.tile_order = TileOrder::kForward;
    return a;
  }
  static RunFacts run(const AttentionCall& call) {
    Fa1Tiles tiles(call, declared(call.params()));
    for (const HeadRows& rows : call.rows()) tiles.run(rows);
    return {"tile " + std::to_string(QueryTile::kTileM) + "x" + std::to_string(kTileN)};
  }
};

const RegisterKernel kBf16{attention_kernel<Fa1, Format::kBf16>(
    {.name = "fa1_bf16", .summary = "FlashAttention-1 tiles, O normalised after every tile, bf16 inputs and P"})};
const RegisterKernel kFp16{attention_kernel<Fa1, Format::kFp16>(
    {.name = "fa1_fp16", .summary = "FlashAttention-1 tiles, O normalised after every tile, fp16 inputs and P"})};

}  // namespace
}  // namespace assay

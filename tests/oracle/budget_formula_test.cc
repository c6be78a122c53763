// The bound equals its formula: an independent long-hand evaluation of T0 (numerics.md 2.2 to 2.7) on plain rows, for
// several declared arithmetics. A dropped or misplaced term moves tau by more than the slack allowed here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cases/materialize.h"
#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-24, kTiny = 0x1p-149, kNormal = 0x1p-126;

double gamma(double n) { return n * kU / (1 - n * kU); }

/// One dense, unmasked head with one query row, read by hand.
struct Row {
  std::vector<double> x, y, a, bias;  ///< logits, before cap and bias, sum |q k| times the factor, biases
  std::vector<std::vector<double>> v;
  double operand_max = 0, factor = 0;
  double sink = -INFINITY;
  double value_scale = 1;
};

Row read_row(const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  const auto tensor = [&](std::string_view role) {
    for (const Tensor& t : problem.inputs)
      if (t.layout.role == role) return t.view();
    return TensorView{};
  };
  const auto number = [&](std::string_view role, std::int64_t i) {
    const TensorView t = tensor(role);
    return t.layout == nullptr ? 1.0 : t.value(i);
  };
  Row row;
  const double factor = static_cast<double>(p.scale) * number("q_scale", 0) * number("k_scale", 0);
  row.factor = factor;
  row.value_scale = number("v_scale", 0);
  if (p.sink != Sink::kNone) row.sink = tensor("sink").value(0);
  double q_max = 0, k_max = 0;
  for (std::int64_t j = 0; j < p.len_kv; ++j) {
    double s = 0, a = 0;
    for (std::int64_t c = 0; c < p.dim_qk; ++c) {
      const double q = tensor("q").value(c), k = tensor("k").value(j * p.dim_qk + c);
      s += q * k, a += std::abs(q * k);
      q_max = std::max(q_max, std::abs(q)), k_max = std::max(k_max, std::abs(k));
    }
    double bias = p.data_mask == DataMask::kAdditive ? tensor("mask").value(j) : 0.0;
    if (p.alibi == Alibi::kKey) bias += tensor("slopes").value(0) * static_cast<double>(j);
    row.a.push_back(factor * a), row.y.push_back(factor * s), row.bias.push_back(bias);
    const auto cap = static_cast<double>(p.softcap);
    row.x.push_back((cap > 0 ? cap * std::tanh(factor * s / cap) : factor * s) + bias);
    std::vector<double> v;
    for (std::int64_t c = 0; c < p.dim_v; ++c) v.push_back(row.value_scale * tensor("v").value(j * p.dim_v + c));
    row.v.push_back(v);
  }
  row.operand_max = q_max + k_max;
  return row;
}

struct Expected {
  std::vector<double> o;
  double lse = 0;
};

struct Maxima {
  double rises = 0;    ///< R: how often the maximum rises from tile to tile
  double largest = 0;  ///< largest |M_t|
  double tiles = 1;
};

Maxima maxima(const Row& row, const Arithmetic& a) {
  const int tiles = (static_cast<int>(row.x.size()) + a.tile_n - 1) / a.tile_n;
  double best = -INFINITY;
  Maxima out{.rises = -1};
  out.tiles = tiles;
  for (int i = 0; i < tiles; ++i) {
    const int t = a.tile_order == TileOrder::kForward ? i : tiles - 1 - i;
    double top = -INFINITY;
    for (int j = t * a.tile_n; j < std::min<int>((t + 1) * a.tile_n, static_cast<int>(row.x.size())); ++j)
      top = std::max(top, row.x[static_cast<std::size_t>(j)]);
    // Each tile's own maximum, or that of a split that begins here, may be subtracted.
    if (a.max_policy == MaxPolicy::kOwnTile || a.splits != 1) out.largest = std::max(out.largest, std::abs(top));
    if (top <= best) continue;
    best = top, ++out.rises;
    out.largest = std::max(out.largest, std::abs(top));
  }
  return out;
}

/// The most rises of a walk that begins at any tile: the splits' cuts are free.
double rises_from_anywhere(const Row& row, const Arithmetic& a) {
  double most = 0;
  const int n = static_cast<int>(row.x.size()), tiles = (n + a.tile_n - 1) / a.tile_n;
  for (int cut = 0; cut < tiles; ++cut) {
    Row part;
    const bool forward = a.tile_order == TileOrder::kForward;
    const int first = forward ? cut * a.tile_n : 0, end = forward ? n : std::min(n, (tiles - cut) * a.tile_n);
    part.x.assign(row.x.begin() + first, row.x.begin() + end);
    most = std::max(most, maxima(part, a).rises);
  }
  return most;
}

struct Unit {
  int k = 1;
  double error = 0, aligned = 0, kept = 0;
};
Unit unit_of(Accumulate kind, Format operands) {
  if (kind == Accumulate::kFp32) return {1, 0, 0, 0};
  switch (operands) {
    case Format::kE4m3: return {32, 33 * 0x1p-13 + 0x1p-13, 33 * 0x1p-13, 0x1p-13};
    case Format::kFp32: return {8, 9 * 0x1p-25 + 0x1p-23, 9 * 0x1p-25, 0x1p-23};
    default: return {16, 17 * 0x1p-25 + 0x1p-23, 17 * 0x1p-25, 0x1p-23};
  }
}

struct Chain {
  double relative = 0, absolute = 0, aligned = 0, blocks = 0;
};
Chain chain(Accumulate kind, Format operands, double terms) {
  const Unit u = unit_of(kind, operands);
  if (kind == Accumulate::kFp32) return {gamma(terms), terms * kTiny, 0, 0};
  const double blocks = std::ceil(terms / u.k);
  return {std::expm1(blocks * u.error), 2 * blocks * kNormal * u.kept, u.aligned, blocks};
}

Expected formula(const Row& row, const Arithmetic& a, const AttentionParams& p) {
  const auto n = static_cast<double>(row.x.size());
  const double m = *std::max_element(row.x.begin(), row.x.end()), big = std::abs(m), ln2 = std::log(2.0);
  const bool additive = p.data_mask == DataMask::kAdditive, alibi = p.alibi != Alibi::kNone,
             sunk = p.sink != Sink::kNone;
  const double top = sunk ? std::max(big, std::abs(row.sink)) : big, above = sunk ? std::max(0.0, row.sink - m) : 0.0;
  const bool tiles = a.max_policy != MaxPolicy::kGlobal && n > 1 && (n > a.tile_n || a.splits != 1);  // unknown cuts
  Maxima seen = tiles ? maxima(row, a) : Maxima{0, big};
  if (tiles && a.splits != 1) seen.rises = rises_from_anywhere(row, a);
  if (sunk) ++seen.rises;
  const double lazy = a.max_policy == MaxPolicy::kLazy ? a.lazy_threshold : 0;
  const double offset = a.p_offset * ln2;
  seen.largest = std::max(seen.largest + (tiles ? lazy * ln2 : 0), top);
  const double ex2 = 2.5 * 0x1p-23, r = seen.rises, cap = static_cast<double>(p.softcap);
  double keys = 0;
  for (double x : row.x) keys += std::exp(x - m);
  const double l = keys + (sunk ? std::exp(row.sink - m) : 0);
  std::vector<double> w, eps, o(row.v[0].size(), 0.0);
  const Chain qk = chain(a.qk, p.input, static_cast<double>(p.dim_qk));
  for (std::size_t j = 0; j < row.x.size(); ++j) {
    w.push_back(std::exp(row.x[j] - m) / l);
    const double depth = m - row.x[j], y = std::abs(row.y[j]);
    double e = qk.relative * row.a[j];  // score
    e += row.factor * qk.aligned * qk.blocks * info(p.input).min_normal * (row.operand_max + info(p.input).min_normal);
    e += 3 * kU * depth + 5 * kU * above + kU * offset;                                    // c^, y
    if (p.descale != Descale::kNone) e += 4 * kU * row.a[j];                               // factors
    if (a.scale_form == ScaleForm::kOnScore || additive || alibi || cap > 0) e += kU * y;  // fl(s scale)
    if (cap > 0) e += (4 * kU + (a.tanh == Tanh::kTwoUlp ? 4 * kU : 0x1p-11)) * std::min(y, cap);
    if (additive || alibi) {
      const double sum = big + depth, capped = cap > 0 ? std::min(y, cap) : y;
      e += kU * sum;  // + bias
      if (alibi)
        e += 3 * kU * (sum + capped);  // slope distance
      else if (a.scale_form != ScaleForm::kOnScore)
        e += 2 * kU * (sum + capped);  // mask log2 e
    }
    if (tiles) {
      const double shifts = a.p_offset == 0 ? 1 : 2;
      e += shifts * kU * (2 * top + depth + lazy * ln2) + 2 * kU * depth + 2 * kU * offset;  // shifts, alpha
    }
    e += (1 + r + (tiles && a.max_policy == MaxPolicy::kOwnTile ? 1 : 0)) * ex2;
    if (a.splits != 1)
      e += 0x1p-22 * std::max(ln2, std::log(n) + offset) + 5 * kU * (top + depth + std::log(n)) +
           3.2 * kU * (depth + std::log(n) + above) + ex2;
    eps.push_back(e);
    for (std::size_t c = 0; c < o.size(); ++c) o[c] += w[j] * row.v[j][c];
  }
  const double sink_p = sunk ? std::exp(row.sink - m) / l : 0;
  const double sink_eps = 4 * kU * std::abs(row.sink) + 4 * kU * top + 5 * kU * std::abs(row.sink - m) + (2 + r) * ex2;
  double psi_keys = 0, addends = n;
  for (std::size_t j = 0; j < w.size(); ++j) psi_keys += w[j] * std::expm1(eps[j]);
  const double psi_sink = sunk ? sink_p * std::expm1(sink_eps) : 0, psi = psi_keys + psi_sink;
  const bool each_tile = a.max_policy == MaxPolicy::kOwnTile || a.normalize == Normalize::kEveryStep;
  const double all_tiles = std::ceil(n / a.tile_n);
  if (a.row_sum_tree == RowSumTree::kQuad) {
    double lanes[4] = {};
    for (std::size_t j = 0; j < w.size(); ++j) ++lanes[j % 8 / 2];
    addends = *std::max_element(lanes, lanes + 4) + 2 + (each_tile ? all_tiles : 0);
  }
  addends += r + 2 + (sunk ? 2 : 0) + (a.max_policy == MaxPolicy::kOwnTile ? 1 : 0);
  const double unit = std::exp(above - offset);
  const double sum = gamma(addends) + n * kNormal * unit / l;
  const FormatInfo& f = info(a.p_format);
  const double u_p = a.p_format == Format::kFp32 ? 0 : f.unit_roundoff;
  const double eta = u_p == 0 ? 0 : f.min_subnormal / 2 * unit / l, normal = f.min_normal * unit / l;
  const double norm = (a.normalize == Normalize::kEveryStep ? 0
                       : a.normalize == Normalize::kDivide  ? 2 * kU
                                                            : 3 * kU) +
                      (p.descale != Descale::kNone ? 2 * kU : 0) + (sunk ? 3 * kU : 0);
  const double g = (1 + norm) / (1 - sum);
  const Format operands = a.p_format == Format::kFp32 ? p.input : a.p_format;
  Chain pv = chain(a.pv, operands, a.promote_n > 0 ? std::min<double>(n, a.promote_n) : n);
  double added = a.normalize == Normalize::kEveryStep ? 7 * kU * all_tiles : 0;
  if (a.promote_n > 0)
    added += gamma(std::ceil(n / a.promote_n)) * (1 + pv.relative), pv.absolute *= std::ceil(n / a.promote_n),
        pv.blocks *= std::ceil(n / a.promote_n);
  const double raised = info(operands).min_normal;
  Expected out;
  for (std::size_t c = 0; c < o.size(); ++c) {
    double weights = psi_sink * std::abs(o[c]), abs_p = 0, all = 0, floors = 0, v_max = 0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double v = row.v[j][c];
      weights += w[j] * std::expm1(eps[j]) * std::abs(v - o[c]);
      abs_p += w[j] * std::abs(v), all += std::abs(v), v_max = std::max(v_max, std::abs(v));
      if (w[j] < normal) floors += std::min(w[j], eta) * std::abs(v);
    }
    const double rounding = u_p * (abs_p + weights + psi * std::abs(o[c])) + floors + 2 * kNormal * unit / l * all;
    const double moved =
        (1 + 2 * u_p) *
        ((pv.relative + added + r * kU) * abs_p + (pv.absolute + r * kTiny) * unit / l +
         pv.aligned * raised * (row.value_scale + pv.blocks * unit / l * (v_max + raised * row.value_scale)));
    double tau = (weights + rounding + moved) / (1 - psi) * g + std::abs(o[c]) * (g - 1);
    if (a.splits != 1) tau += kU * abs_p + gamma(a.splits + 2.0) * (abs_p + std::abs(o[c]));
    out.o.push_back(tau + ((a.splits != 1 ? a.splits : 0) + 4) * kTiny);
  }
  const double share = p.sink == Sink::kOutOfLse ? l / keys : 1;
  double weights = p.sink == Sink::kInLse ? sink_p * std::expm1(sink_eps + kU * seen.largest) : 0;
  for (std::size_t j = 0; j < w.size(); ++j) weights += w[j] * share * std::expm1(eps[j] + kU * seen.largest);
  const double lse = std::abs(m + std::log(p.sink == Sink::kOutOfLse ? keys : l)),
               ln_l = std::log(keys) + offset + lazy * ln2 + above;
  out.lse = std::log1p(weights) + sum / (1 - sum) + 0x1p-22 * std::max(ln2, ln_l) + 3 * kU * top + kU * lse +
            2 * kU * ln_l + 2 * kU * offset;
  if (p.descale != Descale::kNone) out.lse += 3 * kU * top;
  if (a.splits != 1) out.lse += 0x1p-22 * std::max(ln2, std::log(n)) + 4 * kU * (lse + top);
  if (p.lse == LseBase::kTwo) out.lse = (out.lse + 4 * kU * lse) / ln2;
  return out;
}

Arithmetic naive() {
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
          .tile_n = 64,
          .splits = 1};
}

/// Variants that each switch on a part of the formula which rounding of P would hide.
std::vector<std::pair<std::string, Arithmetic>> variants() {
  std::vector<std::pair<std::string, Arithmetic>> all{{"naive", naive()}};
  Arithmetic a = naive();
  a.scale_form = ScaleForm::kFolded;
  all.emplace_back("folded", a);
  a.max_policy = MaxPolicy::kEveryTile;
  all.emplace_back("running maximum", a);
  a.tile_order = TileOrder::kBackward;
  a.row_sum_tree = RowSumTree::kQuad;
  a.normalize = Normalize::kReciprocal;
  all.emplace_back("backward, quad, reciprocal", a);
  a.qk = a.pv = Accumulate::kBlockHopper;
  all.emplace_back("block FMA", a);
  a.splits = 3;
  all.emplace_back("split", a);
  a.splits = 1;
  a.p_format = Format::kBf16;
  all.emplace_back("P in bf16", a);
  a.max_policy = MaxPolicy::kLazy, a.lazy_threshold = 3;
  all.emplace_back("lazy", a);
  a.max_policy = MaxPolicy::kOwnTile, a.normalize = Normalize::kEveryStep;
  all.emplace_back("own tile, every step", a);
  a.p_format = Format::kFp32, a.tanh = Tanh::kTwoUlp;
  all.emplace_back("own tile, P in fp32", a);
  return all;
}

constexpr double kLow = 1 - 1e-6;
constexpr double kHigh = 1.02;     // the bound's own slack is 2^-8, at most twice
constexpr double kMajorant = 1.2;  // and an eighth of tau is what the cheap sums over V may add

void expect_formula(const std::string& line, const std::string& name, const Arithmetic& arithmetic) {
  const Op& op = op_named("attention");
  const Problem problem = materialize(parse_case(line));
  const AttentionParams p = attention_params(problem.params);
  const Evaluation e = op.evaluate(problem, arithmetic, Level::kT0);
  ASSERT_EQ(e.bound.out_of_range[0], "") << name << " " << line;
  const Expected expected = formula(read_row(problem), arithmetic, p);
  for (std::size_t c = 0; c < expected.o.size(); ++c) {
    ASSERT_GE(e.bound.outputs[0].tau[c], kLow * expected.o[c]) << name << " " << line << " channel " << c;
    ASSERT_LE(e.bound.outputs[0].tau[c], kMajorant * expected.o[c]) << name << " " << line << " channel " << c;
  }
  ASSERT_GE(e.bound.outputs[1].tau[0], kLow * expected.lse) << name << " " << line;
  ASSERT_LE(e.bound.outputs[1].tau[0], kHigh * expected.lse) << name << " " << line;
}

TEST(BudgetFormula, TauIsTheFormulaOnPlainRows) {
  for (const char* line :
       {"attention skv=150 d=32 lse=e", "attention skv=150 d=32 lse=2 q=normal(6)@1",
        "attention skv=2 d=16 q=normal(9)@1", "attention skv=200 d=16 scale=1 q=probe@1 k=logit_offset(-3000,2)@2",
        "attention skv=200 d=16 scale=1 q=probe@1 k=rising(3,64)@2", "attention skv=300 d=16 v=normal(0.1,5)@3",
        "attention skv=150 d=32 mask=additive mask.data=bias(300)@4", "attention skv=1 d=8 v=subnormal@3",
        "attention skv=3 d=8 v=subnormal@3"})
    for (const auto& [name, arithmetic] : variants())
      expect_formula(line + std::string(" dtype=fp32"), name, arithmetic);
}

TEST(BudgetFormula, TauIsTheFormulaUnderTheConventions) {
  for (const char* line :
       {"attention skv=150 d=32 softcap=5 q=normal(4)@1", "attention skv=150 d=32 sink=in_lse sink.data=constant(1)",
        "attention skv=150 d=32 sink=out_of_lse sink.data=constant(9)", "attention skv=150 d=32 alibi=key",
        "attention skv=150 d=32 softcap=5 alibi=key mask=causal"})
    for (const auto& [name, arithmetic] : variants())
      expect_formula(line + std::string(" dtype=fp32"), name, arithmetic);
}

TEST(BudgetFormula, TauIsTheFormulaForEightBits) {
  Arithmetic a = naive();
  a.qk = a.pv = Accumulate::kBlockHopper;
  a.p_format = Format::kE4m3;
  a.max_policy = MaxPolicy::kEveryTile;
  a.scale_form = ScaleForm::kFolded;
  a.tile_n = 128;
  for (const int offset : {0, 8})
    for (const int promote : {0, 64, 128})
      for (const char* line :
           {"attention skv=150 d=64 dtype=e4m3", "attention skv=400 d=64 dtype=e4m3 q=normal(0.3)@1 v=normal(1,2)@3",
            "attention skv=400 d=128 dtype=e4m3 descale=tensor q_scale=constant(0.25) v_scale=constant(3)"}) {
        a.p_offset = offset, a.promote_n = promote;
        expect_formula(line, fmt::format("offset {} promotion {}", offset, promote), a);
      }
}

TEST(BudgetFormula, UndeclaredFieldsAddTheirWorstMember) {
  const Op& op = op_named("attention");
  const Problem problem = materialize(parse_case("attention skv=150 d=32 dtype=bf16 q=normal(3)@1"));
  const auto tau = [&](auto change) {
    Arithmetic a = naive();
    change(a);
    const Evaluation e = op.evaluate(problem, a, Level::kT0);
    return std::pair{e.bound.outputs[0].tau[0], e.bound.outputs[1].tau[0]};
  };
  const auto base = tau([](Arithmetic&) {});
  const double o = std::abs(op.evaluate(problem, naive(), Level::kT0).truth.outputs[0].mid[0]);
  EXPECT_GE(tau([](Arithmetic& a) { a.p_known = false; }).first, base.first + 0x1p-9 * o) << "P may be bf16";
  EXPECT_GE(tau([](Arithmetic& a) { a.score_store = ScoreStore::kUnknown; }).second, base.second + 0x1p-10)
      << "S may be bf16";
  EXPECT_GE(tau([](Arithmetic& a) { a.exponential = Exponential::kUnknown; }).second, base.second + 5e-5);
  EXPECT_GE(tau([](Arithmetic& a) { a.p_format = Format::kBf16, a.row_sum_of = RowSumOf::kUnknown; }).second,
            base.second + 0x1p-8);
  EXPECT_GE(tau([](Arithmetic& a) { a.subnormals = Subnormals::kUnknown; }).first, base.first + kNormal);
  EXPECT_GT(tau([](Arithmetic& a) { a.normalize = Normalize::kUnknown; }).first, base.first);
  EXPECT_GT(tau([](Arithmetic& a) { a.splits = 0; }).second, base.second);
}

TEST(BudgetFormula, AnInfiniteValueMayBecomeNanOnlyWhereItsWeightMayVanish) {
  const Op& op = op_named("attention");
  const auto also = [&](const char* dtype, double logit) {
    // Key 0 has the given logit, key 1 logit 0; v of key 0 is infinite in channel 0.
    const Problem problem =
        materialize(parse_case(fmt::format("attention skv=2 d=8 scale=1 dtype={} q=one_hot@1 k=constant(0) "
                                           "set=q[0,0,0,0]:1 set=k[0,0,0,0]:{} set=v[0,0,0,0]:inf",
                                           dtype, logit)));
    Arithmetic a = naive();
    a.p_format = format_from_name(dtype).value();
    return op.evaluate(problem, a, Level::kT0).bound.outputs[0].also[0];
  };
  EXPECT_EQ(also("fp16", -4), 0);
  EXPECT_EQ(also("fp16", -20), kNan);
  EXPECT_EQ(also("bf16", -20), 0);
  EXPECT_EQ(also("bf16", -100), kNan);
}

}  // namespace
}  // namespace assay

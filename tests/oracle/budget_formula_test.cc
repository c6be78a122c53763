// The bound equals its formula: an independent long-hand evaluation of T0 (numerics.md 2.2 to 2.7) on plain rows, for several
// declared arithmetics. A dropped or misplaced term moves tau by more than the slack allowed here.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cases/materialize.h"
#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-24, kTiny = 0x1p-149, kNormal = 0x1p-126;

double gamma(double n) { return n * kU / (1 - n * kU); }

/// One dense, unmasked head with one query row, read by hand.
struct Row {
  std::vector<double> x, a, s, bias;
  std::vector<std::vector<double>> v;
  double scale = 0;
};

Row read_row(const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  const auto tensor = [&](std::size_t i) { return problem.inputs[i].view(); };
  Row row;
  row.scale = static_cast<double>(p.scale);
  for (std::int64_t j = 0; j < p.len_kv; ++j) {
    double s = 0, a = 0;
    for (std::int64_t c = 0; c < p.dim_qk; ++c) {
      const double t = tensor(0).value(c) * tensor(1).value(j * p.dim_qk + c);
      s += t, a += std::abs(t);
    }
    row.s.push_back(s), row.a.push_back(a);
    row.bias.push_back(p.data_mask == DataMask::kAdditive ? tensor(3).value(j) : 0.0);
    row.x.push_back(row.scale * s + row.bias.back());
    std::vector<double> v;
    for (std::int64_t c = 0; c < p.dim_v; ++c) v.push_back(tensor(2).value(j * p.dim_v + c));
    row.v.push_back(v);
  }
  return row;
}

struct Expected {
  std::vector<double> o;
  double lse = 0;
};

struct Maxima {
  double rises = 0;    ///< R: how often the maximum rises from tile to tile
  double largest = 0;  ///< largest |M_t|
};

Maxima maxima(const Row& row, const Arithmetic& a) {
  const int tiles = (static_cast<int>(row.x.size()) + a.tile_n - 1) / a.tile_n;
  double best = -INFINITY;
  Maxima out{.rises = -1};
  for (int i = 0; i < tiles; ++i) {
    const int t = a.tile_order == TileOrder::kForward ? i : tiles - 1 - i;
    double top = -INFINITY;
    for (int j = t * a.tile_n; j < std::min<int>((t + 1) * a.tile_n, static_cast<int>(row.x.size())); ++j)
      top = std::max(top, row.x[static_cast<std::size_t>(j)]);
    if (top <= best) continue;
    best = top, ++out.rises;
    out.largest = std::max(out.largest, std::abs(top));
  }
  return out;
}

double accumulation(Accumulate kind, double terms) {
  if (kind == Accumulate::kFp32) return gamma(terms);
  const double blocks = std::ceil(terms / 16);
  return blocks * (17 * 0x1p-25 + 0x1p-23);
}

double floor_of(Accumulate kind, double terms) {
  return kind == Accumulate::kFp32 ? terms * kTiny : 2 * std::ceil(terms / 16) * kTiny;
}

Expected formula(const Row& row, const Arithmetic& a, const AttentionParams& p) {
  const auto n = static_cast<double>(row.x.size());
  const double m = *std::max_element(row.x.begin(), row.x.end()), big = std::abs(m);
  const bool additive = p.data_mask == DataMask::kAdditive;
  const bool tiles = a.max_policy != MaxPolicy::kGlobal && n > 1 && (n > a.tile_n || a.splits != 1);  // unknown cuts
  const Maxima seen = tiles ? maxima(row, a) : Maxima{0, big};
  const double ex2 = 2.5 * 0x1p-23, r = seen.rises;
  double l = 0;
  for (double x : row.x) l += std::exp(x - m);
  std::vector<double> w, eps, o(row.v[0].size(), 0.0);
  for (std::size_t j = 0; j < row.x.size(); ++j) {
    w.push_back(std::exp(row.x[j] - m) / l);
    const double depth = m - row.x[j], x = std::abs(row.x[j]);
    double e = std::abs(row.scale) * accumulation(a.qk, static_cast<double>(p.dim_qk)) * row.a[j];  // score
    e += 2 * kU * depth + kU * depth;                                                               // c^, y
    if (a.scale_form == ScaleForm::kOnScore || additive) e += kU * std::abs(row.scale * row.s[j]);  // fl(s scale)
    if (additive) e += kU * x;                                                                      // + bias
    if (tiles) e += kU * (std::max(x, big) + big) + 2 * kU * depth;                                 // shifts, alpha
    eps.push_back(e + (1 + r) * ex2);
    for (std::size_t c = 0; c < o.size(); ++c) o[c] += w[j] * row.v[j][c];
  }
  double psi = 0, chain = n;
  for (std::size_t j = 0; j < w.size(); ++j) psi += w[j] * std::expm1(eps[j]);
  if (a.row_sum_tree == RowSumTree::kQuad) {
    double lanes[4] = {};
    for (std::size_t j = 0; j < w.size(); ++j) ++lanes[j % 8 / 2];
    chain = *std::max_element(lanes, lanes + 4) + 2;
  }
  const double sum = gamma(chain + r + 2) + n * kNormal / l;
  const double u_p = a.p_format == Format::kFp32 ? 0 : info(a.p_format).unit_roundoff;
  const double eta = (a.p_format == Format::kFp32 ? 0 : info(a.p_format).min_subnormal / 2) + 2 * kNormal;
  const double norm = a.normalize == Normalize::kDivide ? 2 * kU : 3 * kU, g = (1 + norm) / (1 - sum);
  Expected out;
  for (std::size_t c = 0; c < o.size(); ++c) {
    double weights = 0, abs_p = 0, all = 0, hull = 0, merge = 0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double v = row.v[j][c], away = std::abs(v - o[c]), depth = m - row.x[j];
      weights += w[j] * std::expm1(eps[j]) * away;
      abs_p += w[j] * std::abs(v), all += std::abs(v), hull = std::max(hull, away);
      merge += w[j] * away * (sum + 0x1p-22 * std::max(std::log(2.0), std::log(n)) +
                              5 * kU * (std::max(std::abs(row.x[j]), big) + std::log(n)) + 3.2 * kU * (depth + std::log(n)) + ex2);
    }
    const double rounding = u_p * (abs_p + weights + psi * std::abs(o[c])) + eta / l * all;
    const double added = (1 + 2 * u_p) * (accumulation(a.pv, n) * abs_p + floor_of(a.pv, n) / l + r * (kU * abs_p + kTiny));
    const double core = a.splits == 1 ? weights : 2 * weights + 4 * psi * hull;
    double tau = (core + rounding + added) / (1 - psi) * g + std::abs(o[c]) * (g - 1);
    if (a.splits != 1) tau += merge + kU * abs_p + gamma(a.splits + 2.0) * (abs_p + std::abs(o[c]));
    out.o.push_back(tau + 4 * kTiny);
  }
  double weights = 0, merge = 0;
  for (std::size_t j = 0; j < w.size(); ++j) {
    weights += w[j] * std::expm1(eps[j] + kU * seen.largest);
    merge += w[j] * (sum + 0x1p-22 * std::max(std::log(2.0), std::log(n)) +
                     5 * kU * (std::max(std::abs(row.x[j]), big) + std::log(n)) + 3.2 * kU * (m - row.x[j] + std::log(n)) + ex2);
  }
  const double lse = std::abs(m + std::log(l));
  out.lse = std::log1p(weights) + sum / (1 - sum) + 0x1p-22 * std::max(std::log(2.0), std::log(l)) + 3 * kU * big + kU * lse +
            2 * kU * std::log(l);
  if (a.splits != 1) out.lse += merge + 0x1p-22 * std::max(std::log(2.0), std::log(n)) + 4 * kU * (lse + big);
  if (p.lse == LseBase::kTwo) out.lse = (out.lse + 4 * kU * lse) / std::log(2.0);
  return out;
}

Arithmetic naive() {
  return {.qk = Accumulate::kFp32, .pv = Accumulate::kFp32, .score_store = ScoreStore::kFp32, .scale_form = ScaleForm::kOnScore,
          .exponential = Exponential::kEx2Approx, .p_format = Format::kFp32, .p_known = true,
          .row_sum_of = RowSumOf::kUnroundedP, .row_sum_tree = RowSumTree::kSequential, .normalize = Normalize::kDivide,
          .subnormals = Subnormals::kKept, .max_policy = MaxPolicy::kGlobal, .tile_order = TileOrder::kForward, .tile_n = 64, .splits = 1};
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
  return all;
}

TEST(BudgetFormula, TauIsTheFormulaOnPlainRows) {
  const Op& op = op_named("attention");
  for (const char* line : {"attention skv=150 d=32 lse=e", "attention skv=150 d=32 lse=2 q=normal(6)@1", "attention skv=2 d=16 q=normal(9)@1",
                           "attention skv=200 d=16 scale=1 q=probe@1 k=logit_offset(-3000,2)@2",
                           "attention skv=200 d=16 scale=1 q=probe@1 k=rising(3,64)@2", "attention skv=300 d=16 v=normal(0.1,5)@3",
                           "attention skv=150 d=32 mask=additive mask.data=bias(300)@4", "attention skv=1 d=8 v=subnormal@3",
                           "attention skv=3 d=8 v=subnormal@3"}) {
    const Problem problem = materialize(parse_case(std::string(line) + " dtype=fp32"));
    const AttentionParams p = attention_params(problem.params);
    const Row row = read_row(problem);
    for (const auto& [name, arithmetic] : variants()) {
      const Evaluation e = op.evaluate(problem, arithmetic);
      ASSERT_EQ(e.bound.out_of_range[0], "") << name << " " << line;
      const Expected expected = formula(row, arithmetic, p);
      constexpr double kLow = 1 - 1e-6, kHigh = 1.02;  // the bound's own slack is 2^-8, at most twice
      for (std::size_t c = 0; c < expected.o.size(); ++c) {
        ASSERT_GE(e.bound.outputs[0].tau[c], kLow * expected.o[c]) << name << " " << line << " channel " << c;
        ASSERT_LE(e.bound.outputs[0].tau[c], kHigh * expected.o[c]) << name << " " << line << " channel " << c;
      }
      ASSERT_GE(e.bound.outputs[1].tau[0], kLow * expected.lse) << name << " " << line;
      ASSERT_LE(e.bound.outputs[1].tau[0], kHigh * expected.lse) << name << " " << line;
    }
  }
}

TEST(BudgetFormula, UndeclaredFieldsAddTheirWorstMember) {
  const Op& op = op_named("attention");
  const Problem problem = materialize(parse_case("attention skv=150 d=32 dtype=bf16 q=normal(3)@1"));
  const auto tau = [&](auto change) {
    Arithmetic a = naive();
    change(a);
    const Evaluation e = op.evaluate(problem, a);
    return std::pair{e.bound.outputs[0].tau[0], e.bound.outputs[1].tau[0]};
  };
  const auto base = tau([](Arithmetic&) {});
  const double o = std::abs(op.evaluate(problem, naive()).truth.outputs[0].mid[0]);
  EXPECT_GE(tau([](Arithmetic& a) { a.p_known = false; }).first, base.first + 0x1p-9 * o) << "P may be bf16";
  EXPECT_GE(tau([](Arithmetic& a) { a.score_store = ScoreStore::kUnknown; }).second, base.second + 0x1p-10) << "S may be bf16";
  EXPECT_GE(tau([](Arithmetic& a) { a.exponential = Exponential::kUnknown; }).second, base.second + 5e-5);
  EXPECT_GE(tau([](Arithmetic& a) { a.p_format = Format::kBf16, a.row_sum_of = RowSumOf::kUnknown; }).second, base.second + 0x1p-8);
  EXPECT_GE(tau([](Arithmetic& a) { a.subnormals = Subnormals::kUnknown; }).first, base.first + kNormal);
  EXPECT_GT(tau([](Arithmetic& a) { a.normalize = Normalize::kUnknown; }).first, base.first);
  EXPECT_GT(tau([](Arithmetic& a) { a.splits = 0; }).second, base.second);
}

TEST(BudgetFormula, AnInfiniteValueMayBecomeNanOnlyWhereItsWeightMayVanish) {
  const Op& op = op_named("attention");
  const auto also = [&](const char* dtype, double logit) {
    // Key 0 has the given logit, key 1 logit 0; v of key 0 is infinite in channel 0.
    const Problem problem = materialize(parse_case(fmt::format(
        "attention skv=2 d=8 scale=1 dtype={} q=one_hot@1 k=constant(0) set=q[0,0,0,0]:1 set=k[0,0,0,0]:{} set=v[0,0,0,0]:inf", dtype, logit)));
    Arithmetic a = naive();
    a.p_format = format_from_name(dtype).value();
    return op.evaluate(problem, a).bound.outputs[0].also[0];
  };
  EXPECT_EQ(also("fp16", -4), 0);
  EXPECT_EQ(also("fp16", -20), kNan);
  EXPECT_EQ(also("bf16", -20), 0);
  EXPECT_EQ(also("bf16", -100), kNan);
}

}  // namespace
}  // namespace assay

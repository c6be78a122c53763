// The class rules of row_truth.h for sinks, soft caps and scale factors, one small problem each, on both evaluators.
#include "tests/oracle/identity.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Items = std::initializer_list<std::pair<std::string, std::string>>;

class Rules : public Identity {
 protected:
  /// One query of 1, d = dv = 1, scale 1: the logits are k, before options.
  static Meaning keys(const std::vector<double>& k, const std::vector<double>& v, Items items = {}) {
    Meaning m;
    m.params =
        with(make_params({{"d", "1"}, {"dtype", "fp32"}, {"scale", "1"}, {"skv", std::to_string(k.size())}}), items);
    m.q = [](auto, auto, auto, auto) { return 1.0; };
    m.k = [k](auto, auto, auto j, auto) { return k[static_cast<std::size_t>(j)]; };
    m.v = [v](auto, auto, auto j, auto) { return v[static_cast<std::size_t>(j)]; };
    return m;
  }
  static Meaning sunk(Meaning m, const char* where, double sink) {
    m.params.set("sink", where);
    m.sink = [sink](auto, auto, auto, auto) { return sink; };
    return m;
  }
  static Meaning factors(Meaning m, double q, double k, double v) {
    m.params.set("descale", "tensor");
    const auto constant = [](double f) -> Entry { return [f](auto, auto, auto, auto) { return f; }; };
    m.q_scale = constant(q), m.k_scale = constant(k), m.v_scale = constant(v);
    return m;
  }
  void expect(const Meaning& m, int o, int lse) const {
    const Row row = solve(m).begin()->second;
    EXPECT_EQ(row.o.at(0).classes, o);
    EXPECT_EQ(row.lse.classes, lse);
  }
  double lse(const Meaning& m) const { return solve(m).begin()->second.lse.mid; }
  double o(const Meaning& m) const { return solve(m).begin()->second.o.at(0).mid; }
};
INSTANTIATE_TEST_SUITE_P(Evaluators, Rules, evaluators(), evaluator_name);

const Items kNoKey{{"mask", "bool"}, {"empty", "nan"}, {"empty_lse", "inf"}};

Meaning masked(Meaning m) {
  m.mask = [](auto, auto, auto, auto) { return 0.0; };
  return m;
}

TEST_P(Rules, AFiniteSinkAloneGivesZeroAndItsLogitOrTheDeclaredEmptyLse) {
  const Meaning empty = masked(keys({1, 2}, {3, 4}, kNoKey));
  expect(sunk(empty, "in_lse", -7.5), kZero, kNumber);
  EXPECT_DOUBLE_EQ(lse(sunk(empty, "in_lse", -7.5)), -7.5);
  Meaning two = sunk(empty, "in_lse", -7.5);
  two.params.set("lse", "2");
  EXPECT_DOUBLE_EQ(lse(two), -7.5 / std::log(2.0));
  expect(sunk(empty, "out_of_lse", -7.5), kZero, kPlusInf);
  expect(empty, kNan, kPlusInf);
}

TEST_P(Rules, AFiniteSinkBesideKeysOfMinusInfinityGivesZeroOrNan) {
  const Meaning dead = keys({-kInf, -kInf}, {3, 4}, {{"empty", "mean"}, {"empty_lse", "inf"}});
  expect(sunk(dead, "in_lse", 2), kZero | kNan, kNumber | kNan);
  EXPECT_DOUBLE_EQ(lse(sunk(dead, "in_lse", 2)), 2);
  expect(sunk(dead, "out_of_lse", 2), kZero | kNan, kMinusInf | kPlusInf | kNan);
}

TEST_P(Rules, AMaskedValueThatIsNotFiniteMayReachARowThatOnlyTheSinkKeepsAlive) {
  for (const bool propagates : {false, true}) {
    Meaning empty = masked(keys({1, 2}, {kInf, 4}, kNoKey));
    empty.params.set("masked_nonfinite", propagates ? "propagates" : "ignored");
    expect(sunk(empty, "in_lse", 0), propagates ? kZero | kNan : kZero, kNumber);
  }
}

TEST_P(Rules, ASinkOfPlusInfinityTakesAllWeight) {
  for (const char* where : {"in_lse", "out_of_lse"}) {
    const int lse = where == std::string("in_lse") ? kPlusInf | kNan : kNumber | kNan;
    expect(sunk(keys({1, 2}, {3, 4}), where, kInf), kZero | kNan, lse);
    expect(sunk(keys({1, 2}, {0, 0}), where, kInf), kZero | kNan, lse);
    expect(sunk(keys({1, 2}, {kInf, 4}), where, kInf), kNan, lse);
    expect(sunk(keys({1, 2}, {kNaN, 4}), where, kInf), kNan, lse);
  }
  const Meaning empty = masked(keys({1, 2}, {3, 4}, kNoKey));
  expect(sunk(empty, "in_lse", kInf), kZero | kNan, kPlusInf | kNan);
  expect(sunk(empty, "out_of_lse", kInf), kZero | kNan, kPlusInf | kNan);
}

TEST_P(Rules, ANanSinkGivesNan) {
  expect(sunk(keys({1, 2}, {3, 4}), "in_lse", kNaN), kNan, kNan);
  expect(sunk(keys({1, 2}, {3, 4}), "out_of_lse", kNaN), kNan, kNumber | kNan);
  EXPECT_NEAR(lse(sunk(keys({1, 2}, {3, 4}), "out_of_lse", kNaN)), 2 + std::log1p(std::exp(-1)), 1e-15);
  expect(sunk(masked(keys({1, 2}, {3, 4}, kNoKey)), "in_lse", kNaN), kNan, kNan);
}

TEST_P(Rules, ASinkDoesNotSaveARowWithAnInfiniteOrNanLogit) {
  for (const double sink : {1.0, kInf, -kInf}) {
    expect(sunk(keys({1, kInf}, {3, 4}), "in_lse", sink), kNan, kNan | kPlusInf);
    expect(sunk(keys({1, kNaN}, {3, 4}), "in_lse", sink), kNan, kNan);
  }
}

TEST_P(Rules, AnInfiniteScoreUnderASoftCapIsTheCapOrTheRowIsNan) {
  const Meaning high = keys({kInf, 0}, {3, 4}, {{"softcap", "2"}}), low = keys({-kInf, 0}, {3, 4}, {{"softcap", "2"}});
  expect(high, kNumber | kNan, kNumber | kNan);
  EXPECT_NEAR(lse(high), std::log(std::exp(2.0) + 1), 1e-15);
  EXPECT_NEAR(lse(low), std::log(std::exp(-2.0) + 1), 1e-15);
  EXPECT_NEAR(o(low), (3 * std::exp(-2.0) + 4) / (std::exp(-2.0) + 1), 1e-14);
  expect(keys({kNaN, 0}, {3, 4}, {{"softcap", "2"}}), kNan, kNan);
}

TEST_P(Rules, AMaskOfMinusInfinityStaysBehindTheSoftCap) {
  Meaning m = keys({1, 5}, {3, 4}, {{"softcap", "2"}, {"mask", "additive"}});
  m.mask = [](auto, auto, auto, auto j) { return j == 1 ? -kInf : 0.0; };
  expect(m, kNumber, kNumber);
  EXPECT_EQ(o(m), 3);
}

TEST_P(Rules, ScaleFactorsFollowIeeeAndInfiniteOnesMayEndInNan) {
  const Meaning m = keys({1, 2}, {3, 4});
  expect(factors(m, kNaN, 1, 1), kNan, kNan);
  expect(factors(m, kInf, 1, 1), kNan, kNan | kPlusInf);
  expect(factors(m, 1, -kInf, 1), kNan | kZero, kNan | kMinusInf);  // all logits -inf: the declared empty answer
  expect(factors(keys({0, 2}, {3, 4}), kInf, 1, 1), kNan, kNan);    // inf * 0
  expect(factors(m, kInf, 0, 1), kNan, kNan);
  expect(factors(keys({-1, -2}, {3, 4}), kInf, 1, 1), kNan | kZero, kNan | kMinusInf);
  Meaning capped = m;
  capped.params.set("softcap", "3");
  expect(factors(capped, kInf, 1, 1), kNumber | kNan, kNumber | kNan);
  EXPECT_NEAR(lse(factors(capped, kInf, 1, 1)), 3 + std::log(2.0), 1e-15);
  EXPECT_NEAR(o(factors(capped, kInf, 1, 1)), 3.5, 1e-15);
}

TEST_P(Rules, AnInfiniteFactorOfAnExactlyCancellingScoreIsNanAndOfATinyOneIsNot) {
  // s = 3e38 * 3e38 + 1 - 3e38 * 3e38: 1, which fp64 loses.
  Meaning m = keys({1}, {3}, {{"d", "3"}, {"dv", "1"}, {"softcap", "2"}});
  m.q = [](auto, auto, auto, auto c) { return c == 1 ? 1.0 : 3e38; };
  const auto with_middle = [&](double middle) {
    Meaning out = m;
    out.k = [middle](auto, auto, auto, auto c) { return c == 0 ? 3e38 : c == 1 ? middle : -3e38; };
    return factors(out, 1, kInf, 1);
  };
  expect(with_middle(1), kNumber | kNan, kNumber | kNan);
  EXPECT_NEAR(lse(with_middle(1)), 2, 1e-15);
  EXPECT_NEAR(lse(with_middle(-1)), -2, 1e-15);
  expect(with_middle(0), kNan, kNan);
}

TEST_P(Rules, FactorsOfValuesFollowIeeeAndInfiniteOnesMayMultiplyTheSum) {
  const Meaning m = keys({1, 2}, {3, 4});
  expect(factors(m, 1, 1, 0), kZero, kNumber);
  expect(factors(m, 1, 1, kNaN), kNan, kNumber);
  expect(factors(m, 1, 1, kInf), kPlusInf | kMinusInf | kNan, kNumber);
  expect(factors(keys({1, 2}, {3, kNaN}), 1, 1, kInf), kNan, kNumber);
  expect(factors(keys({1, 2}, {kInf, 4}), 1, 1, 0), kNan, kNumber);
  expect(factors(keys({1, 2}, {kInf, 4}), 1, 1, -2), kMinusInf, kNumber);
  expect(factors(keys({1, -kInf}, {3, kInf}), 1, 1, 2), kNumber | kNan, kNumber);
}

TEST_P(Rules, TheMeanOfAnEmptyRowIsThatOfTheScaledValues) {
  Meaning m = factors(masked(keys({1, 2, 3}, {3, 4, -1}, {{"mask", "bool"}, {"empty", "mean"}})), 1, 1, 0.5);
  expect(m, kNumber, kMinusInf);
  EXPECT_DOUBLE_EQ(o(m), 1);
  m.v_scale = [](auto, auto, auto, auto) { return 0.0; };
  expect(m, kZero, kMinusInf);
}

TEST_P(Rules, AlibiFollowsIeeeToo) {
  const auto sloped = [](double slope, const char* form) {
    Meaning m = keys({1, 2}, {3, 4}, {{"alibi", form}});
    m.slopes = [slope](auto, auto, auto, auto) { return slope; };
    return m;
  };
  expect(sloped(kNaN, "key"), kNan, kNan);
  expect(sloped(kInf, "key"), kNan, kNan);       // inf * 0 at key 0
  expect(sloped(kInf, "distance"), kNan, kNan);  // at the query's own position
  expect(sloped(3e38, "key"), kNumber, kNumber);
  EXPECT_EQ(o(sloped(3e38, "key")), 4);
}

}  // namespace
}  // namespace assay

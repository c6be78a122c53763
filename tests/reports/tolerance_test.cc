// The numbers of `assay tolerance` against brute force: spreads, positions, the rule's sets, and what the rule lets
// pass.
#include "reports/tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cases/materialize.h"
#include "failure_catalog/judges/allclose.h"

namespace assay {
namespace {

ToleranceReport report_of(const std::string& line, const std::optional<Rule>& rule) {
  const Case c = parse_case(line);
  ToleranceReport report = tolerance_report(op_named(c.op), materialize(c), {}, Level::kT0, rule);
  report.case_line = print_case(c);
  return report;
}

Evaluation evaluation_of(const std::string& line) {
  const Case c = parse_case(line);
  return op_named(c.op).evaluate(materialize(c), {}, Level::kT0);
}

TEST(Spread, LeavesOutWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values{3, std::nan(""), 1, inf, 2};
  const Spread s = spread_of(values);
  EXPECT_EQ(s.count, 3);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.at_min, 2);
  EXPECT_EQ(s.median, 2);
  EXPECT_EQ(s.max, 3);
  EXPECT_EQ(s.at_max, 0);
  EXPECT_EQ(spread_of({}).at_max, -1);
}

TEST(IndexOf, InvertsEveryOutputLayout) {
  for (const char* line :
       {"attention b=2 hq=3 sq=5 skv=7 d=4", "attention b=2 hq=3 sq=5 skv=7 d=4 layout=bshd pad_dim=2 offset=3",
        "attention b=2 hq=3 sq=5 skv=7 d=4 layout=bhds", "attention b=2 hq=1 sq=1 skv=7 d=4 batch=packed q_lens=1,0"}) {
    const Case c = parse_case(line);
    for (const TensorLayout& layout : op_named(c.op).outputs(c.params)) {
      std::vector<std::int64_t> index(layout.shape.size(), 0);
      for (std::int64_t n = 0; n < layout.count(); ++n) {
        std::int64_t element = layout.offset;
        for (std::size_t axis = 0; axis < index.size(); ++axis) element += index[axis] * layout.strides[axis];
        EXPECT_EQ(index_of(layout, element), index) << line;
        for (std::size_t axis = index.size(); axis-- > 0;) {
          if (++index[axis] < layout.shape[axis]) break;
          index[axis] = 0;
        }
      }
    }
  }
}

/// The sets of the rule hold exactly the codes that judges/allclose passes.
TEST(RuleLevel, HoldsTheCodesThatAllclosePasses) {
  const Truth truth = evaluation_of("attention sq=3 skv=40 d=16 dtype=fp16").truth;
  int passed = 0, failed = 0;
  for (const Rule rule : {Rule{1e-2, 1e-2}, Rule{0, 1e-3}, Rule{1e-3, 0}, Rule{0, 0}}) {
    const JudgedLevel level = rule_level(truth, rule);
    for (std::size_t k = 0; k < truth.outputs.size(); ++k) {
      const OutputTruth& t = truth.outputs[k];
      for (std::size_t i = 0; i < t.element.size(); ++i) {
        OutputTruth one = t;
        one.element = {0}, one.row = {0}, one.mid = {t.mid[i]}, one.radius = {t.radius[i]},
        one.classes = {t.classes[i]};
        one.layout.storage = 1, one.layout.offset = 0;
        for (int steps = -40; steps <= 40; ++steps) {
          const double value = t.mid[i] + steps * 0.09 * (rule.atol + rule.rtol * std::abs(t.mid[i]) + 1e-7) / 3;
          const std::uint64_t code = encode(t.layout.format, value);
          Tensor y{.layout = one.layout, .bytes = std::vector<std::byte>(8)};
          store_code(y.bytes.data(), t.layout.format, 0, code);
          const bool passes = allclose(one, y, rule.atol, rule.rtol).passes();
          ASSERT_EQ(accepts(level.outputs[k].sets[i], code), passes) << rule.atol << " " << rule.rtol << " " << value;
          (passes ? passed : failed) += 1;
        }
      }
    }
  }
  EXPECT_GT(passed, 1000);
  EXPECT_GT(failed, 1000);
}

TEST(ToleranceReport, TermsSumToTau) {
  for (const char* line : {"attention sq=3 skv=90", "attention sq=2 skv=300 mask=causal dtype=fp16 lse=2",
                           "attention sq=2 skv=70 dtype=fp32 lse=none"}) {
    const ToleranceReport report = report_of(line, std::nullopt);
    for (const OutputReport& output : report.outputs) {
      ASSERT_GE(output.terms.size(), 2U) << line;
      double share = 0;
      for (const TermReport& term : output.terms)
        if (term.name != "output") share += term.share;
      EXPECT_NEAR(share, 1, 0.25) << line << " " << output.layout.role << ": medians of the shares";
      EXPECT_EQ(output.terms.back().name, "output");
      EXPECT_LT(output.radius_share, 0x1p-9) << line;
    }
  }
}

TEST(ToleranceReport, ComparesARuleWithTheBound) {
  const std::string line = "attention sq=3 skv=160";
  const Evaluation e = evaluation_of(line);
  const Rule rule{1e-2, 1e-2};
  const ToleranceReport report = report_of(line, rule);
  ASSERT_TRUE(report.rule.has_value());
  for (std::size_t k = 0; k < e.truth.outputs.size(); ++k) {
    const OutputTruth& t = e.truth.outputs[k];
    double loosest = 0;
    std::int64_t outside = 0;
    for (std::size_t i = 0; i < t.mid.size(); ++i) {
      const double r = static_cast<double>(static_cast<float>(t.mid[i])), width = rule.atol + rule.rtol * std::abs(r);
      loosest = std::max(loosest, width / e.bound.outputs[k].tau[i]);
      const double reach = e.bound.outputs[k].tau[i] + t.radius[i];
      outside += std::abs(round_to(t.layout.format, t.mid[i] + reach) - r) > width ||
                 std::abs(round_to(t.layout.format, t.mid[i] - reach) - r) > width;
    }
    EXPECT_NEAR(report.rule->outputs[k].looseness.at(0).max, loosest, 1e-9 * loosest);
    EXPECT_EQ(report.rule->outputs[k].legal_outside, outside);
  }
  const auto wrong = [&](const std::string& name) {
    return *std::find_if(report.rule->wrong.begin(), report.rule->wrong.end(),
                         [&](const WrongReport& w) { return w.name == name; });
  };
  EXPECT_TRUE(wrong("negated").bound_rejects[0]);
  EXPECT_FALSE(wrong("negated").rule_passes[0]);
  EXPECT_FALSE(wrong("gain, size 1").rule_passes[0]);
  EXPECT_TRUE(wrong("gain, size 1").rule_passes[1]) << "the LSE does not change";
  EXPECT_EQ(report.levels.back(), "atol 0.01 rtol 0.01") << "the rule has floors too";
  const RuleReport everything = *report_of(line, Rule{1e6, 0}).rule;
  for (const WrongReport& w : everything.wrong)
    for (const bool passes : w.rule_passes) EXPECT_TRUE(passes) << w.name;
}

TEST(ToleranceText, FitsATerminalAndNamesEveryFault) {
  for (const char* line : {"attention hq=2 sq=5 skv=130 mask=causal", "attention sq=2 skv=5 batch=padded kv_lens=0",
                           "attention sq=2 skv=3 dtype=fp16 v=constant(0)"}) {
    const ToleranceReport report = report_of(line, Rule{1e-2, 1e-2});
    const std::string text = tolerance_text(report);
    std::istringstream lines(text);
    for (std::string one; std::getline(lines, one);) {
      if (one.starts_with("case ")) continue;
      EXPECT_LE(one.size(), 100U) << one;
    }
    for (const FaultFloors& fault : report.faults) EXPECT_NE(text.find(fault.fault.name), std::string::npos);
  }
}

TEST(ToleranceJson, HasWhatTheTextHas) {
  const ToleranceReport report = report_of("attention hq=2 sq=5 skv=130 mask=causal", Rule{1e-2, 1e-2});
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(tolerance_json(report).dump());
  EXPECT_EQ(json.at("outputs").size(), 2U);
  EXPECT_EQ(json.at("detection_floors").size(), report.faults.size());
  EXPECT_EQ(json.at("detection_floors").at(0).at("floors").at(0).at("outputs").at(0).at("size").get<double>(),
            report.faults[0].floors[0][0].size);
  EXPECT_EQ(json.at("tolerance").at("wrong_outputs").size(), report.rule->wrong.size());
  EXPECT_FALSE(json.at("assumptions").empty());
}

}  // namespace
}  // namespace assay

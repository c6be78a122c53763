// Attention kernels against a plain fp64 loop, and the conventions that have one exact answer.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "kernels/runner.h"
#include "tests/kernels/scenario.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct RowAnswer {
  bool empty = false;
  std::vector<double> o;
  double lse = 0;
};

bool sees(const Scenario& s, std::int64_t b, std::int64_t i, std::int64_t j) {
  const std::int64_t p = i + (s.p.align == Align::kTopLeft ? 0 : s.len(false, b) - s.len(true, b));
  if (s.p.causal && j > p) return false;
  if (s.p.window_right != -1 && j > p + s.p.window_right) return false;
  if (s.p.window_left == -1) return true;
  return s.p.window_ends == WindowEnds::kInclusive ? j >= p - s.p.window_left : j > p - s.p.window_left;
}

RowAnswer plain_row(Scenario& s, std::int64_t b, std::int64_t h, std::int64_t i) {
  const std::int64_t g = h * s.p.heads_kv / s.p.heads_q;
  const std::int64_t keys = s.len(false, b);
  std::vector<double> x(static_cast<std::size_t>(keys), -kInf);
  double m = -kInf;
  for (std::int64_t j = 0; j < keys; ++j) {
    double dot = 0;
    for (std::int64_t c = 0; c < s.p.dim_qk; ++c) dot += s.value("q", b, h, i, c) * s.value("k", b, g, j, c);
    double& logit = x[static_cast<std::size_t>(j)];
    logit = dot * static_cast<double>(s.p.scale);
    if (s.p.data_mask != DataMask::kNone) {
      const Tensor& mask = s.input("mask");
      const double entry = mask.view().value(mask.view().element(b, h, i, j));
      if (s.p.data_mask == DataMask::kAdditive)
        logit += entry;
      else if (entry == 0)
        logit = -kInf;
    }
    if (!sees(s, b, i, j)) logit = -kInf;
    m = std::max(m, logit);
  }
  RowAnswer answer;
  answer.empty = m == -kInf;
  answer.o.assign(static_cast<std::size_t>(s.p.dim_v), 0.0);
  double l = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    const double w = answer.empty ? 1.0 : std::exp(x[static_cast<std::size_t>(j)] - m);
    l += w;
    for (std::int64_t c = 0; c < s.p.dim_v; ++c) answer.o[static_cast<std::size_t>(c)] += w * s.value("v", b, g, j, c);
  }
  for (double& o : answer.o) o = l > 0 ? o / l : 0;
  answer.lse = (m + std::log(l)) * (s.p.lse == LseBase::kTwo ? 1 / std::log(2.0) : 1);
  if (!answer.empty) return answer;
  answer.lse = s.p.empty_lse == EmptyLse::kMinusInf ? -kInf : kInf;
  if (s.p.empty_output != EmptyOutput::kMean)
    answer.o.assign(answer.o.size(), s.p.empty_output == EmptyOutput::kZero ? 0.0 : kNan);
  return answer;
}

bool near(double value, double wanted, double tolerance) {
  if (std::isnan(wanted)) return std::isnan(value);
  if (std::isinf(wanted)) return value == wanted;
  return std::abs(value - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

/// Rows that differ from the plain loop, in words. The tolerance fits the formats for logits of ordinary size.
std::string differences(Scenario& s, const std::vector<Tensor>& outputs, double extra = 0) {
  const double tolerance = extra + (s.p.input == Format::kBf16 || s.p.output == Format::kBf16   ? 1.5e-2
                                    : s.p.input == Format::kFp16 || s.p.output == Format::kFp16 ? 2e-3
                                                                                                : 1e-5);
  std::ostringstream text;
  for (std::int64_t b = 0; b < s.p.batch; ++b)
    for (std::int64_t h = 0; h < s.p.heads_q; ++h)
      for (std::int64_t i = 0; i < s.len(true, b); ++i) {
        const RowAnswer answer = plain_row(s, b, h, i);
        for (std::int64_t c = 0; c < s.p.dim_v; ++c) {
          const double o = outputs[0].view().value(s.at(outputs[0].layout, b, h, i, c));
          if (!near(o, answer.o[static_cast<std::size_t>(c)], tolerance))
            text << "o[" << b << ',' << h << ',' << i << ',' << c << "] = " << o << " not "
                 << answer.o[static_cast<std::size_t>(c)] << '\n';
        }
        if (s.p.lse == LseBase::kNone) continue;
        const double lse = outputs[1].view().value(s.at(outputs[1].layout, b, h, i, -1));
        if (!near(lse, answer.lse, 3e-5))
          text << "lse[" << b << ',' << h << ',' << i << "] = " << lse << " not " << answer.lse << '\n';
      }
  return text.str().substr(0, 600);
}

RunOutcome run(const std::string& kernel, const Scenario& s) {
  return in_process_runner()->run(kernel, s.params, s.inputs, s.outputs);
}

const std::vector<std::string> kKernels{"naive_fp32", "naive_bf16", "naive_fp16", "fa2_bf16",
                                        "fa2_fp16",   "split_bf16", "split_fp16"};
std::string dtype_of(const std::string& kernel) { return " dtype=" + kernel.substr(kernel.find('_') + 1); }

class EveryKernel : public testing::TestWithParam<std::string> {};

TEST_P(EveryKernel, IsNearAPlainLoopUnderEveryConvention) {
  for (const std::string text : {
           "sq=3 skv=5 d=8",
           "b=2 hq=4 hkv=2 sq=70 skv=70 d=32 mask=causal",
           "hq=6 hkv=2 sq=5 skv=300 d=24 dv=40 mask=causal",
           "sq=200 skv=130 d=16 mask=causal empty=nan empty_lse=inf",
           "sq=40 skv=10 d=16 mask=causal empty=mean",
           "sq=20 skv=33 d=16 mask=causal align=tl lse=2",
           "sq=33 skv=20 d=16 mask=causal align=tl lse=none",
           "sq=150 skv=150 d=16 window=7,3",
           "sq=150 skv=140 d=16 window=7,-1 window_ends=left_exclusive mask=causal",
           "sq=30 skv=300 d=16 window=-1,0",
           "sq=9 skv=9 d=16 window=0,0 window_ends=left_exclusive",
           "b=2 hq=2 hkv=1 sq=9 skv=150 d=16 mask=bool",
           "hq=2 sq=9 skv=150 d=16 mask=additive",
           "hq=2 sq=150 skv=150 d=16 mask=causal+additive scale=-0.5 lse=2",
           "hq=2 sq=20 skv=20 d=16 mask=causal+bool empty=mean",
           "sq=4 skv=600 d=80 scale=-0.25",
           "sq=4 skv=100 d=80 scale=0 lse=2",
           "sq=4 skv=100 d=16 scale=3",
           "b=4 hq=2 sq=40 skv=700 d=16 batch=packed q_lens=1,40,0,7 kv_lens=700,3,9,0 mask=causal",
           "b=3 hq=2 hkv=1 sq=10 skv=300 d=16 batch=padded q_lens=10,3,1 kv_lens=0,300,17 mask=causal pad_rows=2",
           "b=2 hq=2 sq=10 skv=30 d=16 layout=bshd pad_rows=3 pad_dim=5",
           "sq=2 skv=70 d=128 dv=256 out=fp32",
           "sq=0 skv=5 d=8",
           "sq=3 skv=0 d=8 empty=mean empty_lse=inf",
           "hq=2 sq=1 skv=1 d=1",
       }) {
    Scenario s(text + dtype_of(GetParam()));
    const RunOutcome outcome = run(GetParam(), s);
    ASSERT_EQ(outcome.status, RunStatus::kOk) << text << ": " << outcome.reason;
    EXPECT_FALSE(outcome.guard_broken) << text;
    EXPECT_FALSE(outcome.inputs_changed) << text;
    EXPECT_EQ(differences(s, outcome.outputs), "") << text;
  }
}

TEST_P(EveryKernel, ComputesListedRowsToTheSameBitsAsAllRows) {
  const std::string text = "hq=2 hkv=1 sq=200 skv=230 d=32 mask=causal window=100,-1" + dtype_of(GetParam());
  const Scenario all(text);
  const Scenario some(text + " rows=20 rows_seed=3");
  ASSERT_EQ(some.inputs.back().layout.role, "rows");
  const RunOutcome full = run(GetParam(), all);
  const RunOutcome part = run(GetParam(), some);
  ASSERT_EQ(part.status, RunStatus::kOk) << part.reason;
  const TensorView rows = some.inputs.back().view();
  for (std::int64_t r = 0; r < 20; ++r) {
    const auto at = [&](std::int64_t c) { return static_cast<std::int64_t>(rows.value(rows.element(r, c))); };
    for (std::int64_t c = 0; c < 32; ++c) {
      const std::int64_t e = all.at(all.outputs[0], at(0), at(1), at(2), c);
      EXPECT_EQ(part.outputs[0].view().code(e), full.outputs[0].view().code(e));
    }
    const std::int64_t e = all.at(all.outputs[1], at(0), at(1), at(2), -1);
    EXPECT_EQ(part.outputs[1].view().code(e), full.outputs[1].view().code(e));
  }
}

TEST_P(EveryKernel, MakesARowWithANanOrPlusInfScoreNan) {
  for (const double special : {kNan, kInf}) {
    for (const std::int64_t key : {std::int64_t{0}, std::int64_t{150}, std::int64_t{299}}) {
      Scenario s("sq=2 skv=300 d=16" + dtype_of(GetParam()));
      s.set("q", 0, 0, 1, 3, 1.0);
      s.set("q", 0, 0, 0, 3, 0.0);  // row 0: 0 * inf is NaN too
      s.set("k", 0, 0, key, 3, special);
      const RunOutcome outcome = run(GetParam(), s);
      for (std::int64_t i = 0; i < 2; ++i) {
        for (std::int64_t c = 0; c < 16; ++c)
          EXPECT_TRUE(std::isnan(outcome.outputs[0].view().value(s.at(s.outputs[0], 0, 0, i, c))));
        const double lse = outcome.outputs[1].view().value(i);
        EXPECT_TRUE(std::isnan(lse) || (i == 1 && lse == kInf)) << lse;
      }
    }
  }
}

TEST_P(EveryKernel, GivesAMinusInfScoreWeightZero) {
  Scenario s("sq=1 skv=200 d=16 scale=1" + dtype_of(GetParam()));
  s.set("q", 0, 0, 0, 3, -1.0);
  s.set("k", 0, 0, 199, 3, kInf);
  const RunOutcome outcome = run(GetParam(), s);
  EXPECT_EQ(differences(s, outcome.outputs), "");
}

TEST_P(EveryKernel, SurvivesTilesAndRowsWhoseBiasIsMinusInf) {
  Scenario s("sq=2 skv=600 d=16 mask=additive" + dtype_of(GetParam()));
  Tensor& mask = s.input("mask");
  for (std::int64_t j = 0; j < 600; ++j) {
    if (j < 64 || j >= 128) mask.output().set_code(j, encode(Format::kFp32, -kInf));
    mask.output().set_code(600 + j, encode(Format::kFp32, -kInf));
  }
  const RunOutcome outcome = run(GetParam(), s);
  EXPECT_EQ(differences(s, outcome.outputs), "");
}

TEST_P(EveryKernel, GivesOneKeysValueExactly) {
  Scenario s("sq=3 skv=1 d=16 scale=2" + dtype_of(GetParam()));
  s.scale_all("q", 100);
  const RunOutcome outcome = run(GetParam(), s);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t c = 0; c < 16; ++c)
      EXPECT_EQ(outcome.outputs[0].view().value(s.at(s.outputs[0], 0, 0, i, c)), s.value("v", 0, 0, 0, c));
}

TEST_P(EveryKernel, SurvivesLogitsFarBelowZero) {
  Scenario s("sq=2 skv=300 d=16 scale=1 mask=causal" + dtype_of(GetParam()));
  for (std::int64_t i = 0; i < 2; ++i) s.set("q", 0, 0, i, 0, -240);
  for (std::int64_t j = 0; j < 300; ++j) s.set("k", 0, 0, j, 0, 256);
  const RunOutcome outcome = run(GetParam(), s);
  EXPECT_EQ(differences(s, outcome.outputs, 61440 * 0x1p-23), "");  // logits near -61440, rounded to fp32
}

TEST_P(EveryKernel, KeepsSubnormalValues) {
  Scenario s("sq=1 skv=1 d=16" + dtype_of(GetParam()));
  const double smallest = info(s.p.input).min_subnormal;
  for (std::int64_t c = 0; c < 16; ++c) s.set("v", 0, 0, 0, c, smallest * static_cast<double>(c));
  const RunOutcome outcome = run(GetParam(), s);
  for (std::int64_t c = 0; c < 16; ++c)
    EXPECT_EQ(outcome.outputs[0].view().value(c), smallest * static_cast<double>(c));
}

TEST_P(EveryKernel, DeclaresEveryField) {
  for (const std::string text : {"sq=3 skv=5000", "sq=3 skv=0", "sq=3 skv=5 mask=additive d=128"}) {
    const Kernel* kernel = find_kernel(GetParam());
    ASSERT_NE(kernel, nullptr);
    const Arithmetic a = kernel->declared(parse(text + dtype_of(GetParam())));
    EXPECT_NE(a.qk, Accumulate::kUnknown);
    EXPECT_NE(a.pv, Accumulate::kUnknown);
    EXPECT_NE(a.score_store, ScoreStore::kUnknown);
    EXPECT_NE(a.scale_form, ScaleForm::kUnknown);
    EXPECT_NE(a.exponential, Exponential::kUnknown);
    EXPECT_TRUE(a.p_known);
    EXPECT_NE(a.row_sum_of, RowSumOf::kUnknown);
    EXPECT_NE(a.row_sum_tree, RowSumTree::kUnknown);
    EXPECT_NE(a.normalize, Normalize::kUnknown);
    EXPECT_NE(a.subnormals, Subnormals::kUnknown);
    EXPECT_NE(a.max_policy, MaxPolicy::kUnknown);
    EXPECT_NE(a.tile_order, TileOrder::kUnknown);
    EXPECT_GT(a.tile_n, 0);
    EXPECT_GT(a.splits, 0);
  }
}

TEST_P(EveryKernel, RefusesOtherInputFormats) {
  const std::string other = GetParam().ends_with("bf16") ? "fp32" : "bf16";
  const Scenario s("sq=1 skv=1 dtype=" + other);
  const RunOutcome outcome = run(GetParam(), s);
  EXPECT_EQ(outcome.status, RunStatus::kSkipped);
  EXPECT_NE(outcome.reason.find("inputs only"), std::string::npos) << outcome.reason;
}

INSTANTIATE_TEST_SUITE_P(Attention, EveryKernel, testing::ValuesIn(kKernels),
                         [](const auto& kernel) { return kernel.param; });

TEST(NaiveKernel, IgnoresAMaskedValueThatIsNotFinite) {
  Scenario s("sq=2 skv=9 d=8 dtype=bf16 mask=causal masked_nonfinite=ignored");
  s.set("v", 0, 0, 8, 2, kNan);
  s.set("k", 0, 0, 8, 2, kInf);
  const RunOutcome outcome = run("naive_bf16", s);
  for (std::int64_t c = 0; c < 8; ++c) EXPECT_FALSE(std::isnan(outcome.outputs[0].view().value(c)));
  EXPECT_TRUE(std::isnan(outcome.outputs[0].view().value(8 + 2)));
  for (const char* kernel : {"fa2_bf16", "split_bf16"}) EXPECT_EQ(run(kernel, s).status, RunStatus::kSkipped);
}

TEST(SplitKernel, ReportsItsSplitsAndKeepsEmptyOnesOut) {
  // Causal row 0 of 400 sees keys in the first of two splits only.
  Scenario s("sq=400 skv=400 d=16 dtype=fp16 mask=causal rows=2");
  const RunOutcome outcome = run("split_fp16", s);
  EXPECT_EQ(outcome.declared.splits, 2);
  EXPECT_EQ(outcome.facts.variant, "2 splits, tile 64");
  for (std::int64_t c = 0; c < 16; ++c) EXPECT_EQ(outcome.outputs[0].view().value(c), s.value("v", 0, 0, 0, c));
}

TEST(Kernels, AreCalledWithLengthsThatFitOrCrashInWords) {
  Scenario s("b=2 sq=3 skv=5 d=8 dtype=bf16 batch=packed");
  Tensor& starts = s.input("cu_seqlens_kv");
  starts.output().set_code(2, 11);
  const RunOutcome outcome = run("fa2_bf16", s);
  EXPECT_EQ(outcome.status, RunStatus::kCrashed);
  EXPECT_NE(outcome.reason.find("cu_seqlens_kv"), std::string::npos) << outcome.reason;
}

}  // namespace
}  // namespace assay

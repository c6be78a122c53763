// Known-wrong outputs of a case's options, and certified digits under them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cases/materialize.h"
#include "oracle/op.h"

namespace assay {
namespace {

/// A kernel that declares everything, fp32 throughout.
Arithmetic plain() {
  Arithmetic a;
  a.qk = a.pv = Accumulate::kFp32;
  a.score_store = ScoreStore::kFp32;
  a.scale_form = ScaleForm::kOnScore;
  a.exponential = Exponential::kEx2Approx;
  a.p_known = true;
  a.tanh = Tanh::kTwoUlp;
  a.normalize = Normalize::kDivide;
  a.subnormals = Subnormals::kKept;
  a.max_policy = MaxPolicy::kGlobal;
  a.splits = 1;
  return a;
}

KnownWrong wrong_of(const std::string& line, const std::string& name) {
  const Op& op = op_named("attention");
  const Problem problem = materialize(parse_case("attention " + line));
  const Evaluation evaluation = op.evaluate(problem, plain(), Level::kT0);
  for (const KnownWrong& wrong : op.known_wrong(problem, evaluation))
    if (wrong.name == name) return wrong;
  return {};
}

TEST(KnownWrong, AnOptionLeftOutIsRejectedWhereItMattersAndNotWhereItDoesNot) {
  struct Row {
    const char* matters;
    const char* does_not;
    const char* name;
  };
  const Row rows[] = {
      {"sq=2 skv=50 q=normal(4)@1 softcap=2", "sq=2 skv=50 softcap=3e38", "soft cap left out"},
      {"sq=2 skv=50 alibi=key slopes.data=constant(0.5)", "sq=2 skv=50 alibi=key slopes.data=constant(0)",
       "ALiBi left out"},
      {"sq=2 skv=50 sink=in_lse sink.data=constant(3)", "sq=2 skv=50 sink=in_lse sink.data=constant(-300)",
       "sink left out"},
      {"sq=2 skv=50 sink=out_of_lse sink.data=constant(3)", "sq=2 skv=50 sink=out_of_lse set=sink[0]:-inf",
       "sink left out"},
      {"sq=2 skv=50 dtype=e4m3 descale=tensor", "sq=2 skv=50 descale=tensor q_scale=ones k_scale=ones v_scale=ones",
       "scale factors left out"},
  };
  for (const Row& row : rows) {
    const KnownWrong seen = wrong_of(row.matters, row.name), unseen = wrong_of(row.does_not, row.name);
    EXPECT_TRUE(seen.applicable && seen.rejected) << row.matters;
    EXPECT_TRUE(unseen.applicable && !unseen.rejected) << row.does_not;
    EXPECT_TRUE(wrong_of("sq=2 skv=50", row.name).name.empty()) << row.name;
  }
}

TEST(KnownWrong, ALostKeyIsRejectedInEveryStore) {
  for (const char* store :
       {"kv=vllm page=4", "kv=vllm_x page=16", "kv=nhd page=1", "kv=hnd page=64", "prefix=16", "layout=bhds",
        "v_from=k", "descale=block scale_block=8", "mask=list list=20", "segments=1"})
    EXPECT_TRUE(wrong_of(std::string("sq=2 skv=24 d=16 ") + store, "last key lost").rejected) << store;
}

TEST(Digits, AreCertifiedUnderSinksAndSoftCapsAndEmptyForClasses) {
  const Op& op = op_named("attention");
  const auto lse_digits = [&](const std::string& line) {
    return op.digits(materialize(parse_case("attention " + line)), 1, 0, 20);
  };
  // One key of logit 1 with a sink of 0: log(1 + e); capped at 2: 2 tanh(1/2).
  const std::string one = "d=1 scale=1 q=ones k=ones ";
  EXPECT_EQ(lse_digits(one + "sink=in_lse sink.data=constant(0)").substr(0, 20), "1.313261687518222834");
  EXPECT_EQ(lse_digits(one + "sink=out_of_lse sink.data=constant(0)").substr(0, 1), "1");
  EXPECT_EQ(lse_digits(one + "softcap=2").substr(0, 20), "0.924234314520019517");
  EXPECT_EQ(lse_digits(one + "sink=in_lse set=sink[0]:inf"), "");
  EXPECT_EQ(lse_digits("sq=2 skv=1 mask=causal sink=in_lse sink.data=constant(0.75)").substr(0, 4), "0.75");
}

}  // namespace
}  // namespace assay

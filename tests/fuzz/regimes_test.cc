// Regimes say where a case's rows lie, under the structure that the kernel declares.
#include "fuzz/regimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "cases/case.h"
#include "cases/materialize.h"
#include "fuzz/signal.h"
#include "oracle/measure.h"

namespace assay {
namespace {

Arithmetic tiles_of(int tile, int splits = 1) {
  Arithmetic declared;
  declared.tile_n = tile, declared.splits = splits;
  return declared;
}

std::set<std::string> reached(const std::string& line, const Arithmetic& declared = tiles_of(64)) {
  const Case c = parse_case(line);
  const Op& op = op_named(c.op);
  const Problem problem = materialize(c);
  const Evaluation evaluation = op.evaluate(problem, declared, Level::kT0);
  const std::vector<std::string> names = regime_names(op, regimes_of(op, problem, declared, evaluation, {}));
  return {names.begin(), names.end()};
}

TEST(Regimes, TellWhereTheMaximumLiesAndHowItGotThere) {
  const std::set<std::string> rising = reached("attention skv=150 d=16 q=probe k=rising(4,64)");
  EXPECT_TRUE(rising.contains("tile of the largest logit: last, not full"));
  EXPECT_TRUE(rising.contains("rises of the running maximum: 2..3"));
  EXPECT_TRUE(rising.contains("tiles of a sequence: 3"));
  const std::set<std::string> falling = reached("attention skv=150 d=16 q=probe k=falling(4,64)");
  EXPECT_TRUE(falling.contains("tile of the largest logit: first"));
  EXPECT_TRUE(falling.contains("rises of the running maximum: 0"));
  EXPECT_FALSE(falling.contains("rises of the running maximum: 2..3"));
}

TEST(Regimes, CountTilesByTheDeclaredStructure) {
  const std::string line = "attention skv=65 d=16";
  EXPECT_TRUE(reached(line, tiles_of(64)).contains("keys behind the last full tile: 1"));
  EXPECT_TRUE(reached(line, tiles_of(32)).contains("tiles of a sequence: 3"));
  EXPECT_TRUE(reached(line, tiles_of(66)).contains("keys behind the last full tile: all but one"));
  EXPECT_TRUE(reached(line, tiles_of(64, 4)).contains("split without a key: some"));
  EXPECT_TRUE(reached(line, tiles_of(16, 4)).contains("split without a key: some")) << "5 tiles in splits of 2";
  EXPECT_TRUE(reached("attention skv=64 d=16", tiles_of(16, 4)).contains("split without a key: none"));
}

TEST(Regimes, SeeEmptyRowsAndTiles) {
  const std::set<std::string> causal = reached("attention sq=3 skv=2 d=16 mask=causal");
  EXPECT_TRUE(causal.contains("terms of a row: 0"));
  EXPECT_TRUE(causal.contains("queries over keys: more"));
  EXPECT_TRUE(reached("attention skv=200 d=16 window=10,0").contains("tile without a key: first"));
  EXPECT_FALSE(reached("attention skv=200 d=16").contains("tile without a key: first"));
}

TEST(Regimes, SeePagesFactorsAndValues) {
  EXPECT_TRUE(reached("attention skv=33 d=16 kv=vllm page=16").contains("keys on the last page: 1"));
  EXPECT_TRUE(reached("attention skv=32 d=16 kv=vllm page=16").contains("keys on the last page: full"));
  EXPECT_TRUE(reached("attention skv=32 d=16").contains("keys on the last page: no pages"));
  EXPECT_TRUE(reached("attention skv=8 d=16 scale=-0.5").contains("factor of q k: negative"));
  EXPECT_TRUE(reached("attention skv=8 d=16 scale=0").contains("factor of q k: 0"));
  EXPECT_TRUE(reached("attention skv=8 d=16 set=v[0,0,0,0]:inf").contains("largest |v| with weight: not finite"));
  EXPECT_TRUE(reached("attention skv=8 d=16 v=constant(0)").contains("largest |v| with weight: 0"));
  EXPECT_TRUE(reached("attention skv=8 d=16 q=constant(0)").contains("keys that share the largest logit: all"));
  EXPECT_TRUE(reached("attention skv=40 d=16 q=probe k=logit_offset(-1000)").contains("largest logit: -1e3..-88"));
}

TEST(Regimes, SeeWhatTheFormatOfPLoses) {
  Arithmetic e4m3 = tiles_of(64);
  e4m3.p_format = Format::kE4m3, e4m3.p_known = true;
  const std::string line = "attention skv=64 d=16 q=probe k=falling(4,16)";
  EXPECT_TRUE(reached(line, e4m3).contains("P in its format: some lost"));
  EXPECT_TRUE(reached(line).contains("P in its format: not rounded"));
  EXPECT_TRUE(reached("attention skv=8 d=16 q=constant(0)", e4m3).contains("P in its format: normal"));
  e4m3.p_offset = 8, e4m3.max_policy = MaxPolicy::kLazy, e4m3.lazy_threshold = 8;
  EXPECT_TRUE(reached("attention skv=128 d=16 q=probe k=rising(1,64)", e4m3).contains("P in its format: some beyond it"));
}

TEST(Regimes, HaveAxesForEveryOp) {
  for (const Op* op : all_ops()) {
    const std::set<std::string> names = reached(std::string(op->name));
    EXPECT_GE(names.size(), 4U) << op->name;
    for (const RegimeAxis& axis : regime_axes(*op)) EXPECT_LE(axis.levels.size(), 32U) << axis.name;
  }
}

TEST(Signal, SetsBytesThatLibFuzzerReads) {
  signal_clear();
  EXPECT_EQ(signal_count(), 0U);
  signal_feature(1);
  signal_feature(2);
  signal_feature(1);
  EXPECT_EQ(signal_count(), 2U);
  signal_clear();
}

TEST(Signal, ALargerShareOfTheBoundHasAllFeaturesOfASmallerOne) {
  const auto features = [](double used, std::uint64_t salt) {
    Measurement m;
    m.outputs.resize(1);
    m.outputs[0].role = "o", m.outputs[0].worst.used = used;
    signal_use(salt, m);
    return signal_count();
  };
  signal_clear();
  const std::size_t small = features(0x1p-10, 1), large = features(0.75, 1);
  EXPECT_GT(large, small);
  EXPECT_EQ(features(0x1p-12, 1), large) << "nothing new below what was reached";
  EXPECT_GT(features(0x1p-12, 2), large) << "another kernel has features of its own";
  signal_clear();
}

}  // namespace
}  // namespace assay

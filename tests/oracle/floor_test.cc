// Planted faults are the truths of problems that have them; floors are where measurements begin to see them.
#include "oracle/floor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cases/materialize.h"
#include "kernels/kernel.h"
#include "oracle/measure.h"
#include "tests/oracle/problems.h"

namespace assay {
namespace {

constexpr std::size_t kDroppedKey = 0, kGhostKey = 1, kScaleError = 2, kMaskShift = 3, kGain = 4, kLostTile = 5;
constexpr int kCases = 20;

const Op& attention() { return op_named("attention"); }

/// A number with mean 0 and variance 1, near enough to normal.
double bell(Dice& dice) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += dice.real(-0.5, 0.5);
  return sum;
}

Problem problem_of(Params params, std::uint64_t seed, double amplitude = 1) {
  params = attention().canonical(params);
  Dice dice(seed);
  return make_problem(params, [&](const TensorLayout& layout) -> std::uint64_t {
    if (layout.format == Format::kUint8) return 1;
    return encode(layout.format, amplitude * bell(dice));
  });
}

Params case_params(Dice& dice, bool with_edge) {
  Params p = make_params({{"d", dice.pick<std::string>({"16", "32"})}});
  p.set("dtype", dice.pick<std::string>({"bf16", "fp16", "fp32"}));
  p.set("sq", std::to_string(dice.between(2, 5)));
  p.set("skv", std::to_string(dice.between(70, 300)));
  p.set("hq", std::to_string(dice.between(1, 2)));
  if (dice.one_in(2)) p.set("lse", "2");
  if (with_edge) {
    p.set("mask", "causal");
    if (dice.one_in(2)) p.set("align", "tl");
    if (dice.one_in(3)) p.set("window", "40,0");
  }
  return p;
}

Arithmetic declared() {
  return {.qk = Accumulate::kBlockHopper,
          .pv = Accumulate::kBlockHopper,
          .score_store = ScoreStore::kFp32,
          .exponential = Exponential::kEx2Approx,
          .p_format = Format::kFp32,
          .p_known = true,
          .row_sum_of = RowSumOf::kUnroundedP};
}

/// The planted values rounded to the output formats; the rounded truth where the fault has no value.
std::vector<Tensor> faulty_outputs(const Op& op, const Problem& problem, const Evaluation& evaluation,
                                   std::size_t fault, double size) {
  const PlantedOutputs planted = op.plant(problem, fault, size);
  std::vector<Tensor> outputs;
  for (std::size_t k = 0; k < evaluation.truth.outputs.size(); ++k) {
    const OutputTruth& truth = evaluation.truth.outputs[k];
    Tensor t{.layout = truth.layout,
             .bytes = std::vector<std::byte>(static_cast<std::size_t>(truth.layout.storage_bytes()))};
    for (std::size_t i = 0; i < truth.element.size(); ++i) {
      const double value = std::isnan(planted[k][i]) ? truth.mid[i] : planted[k][i];
      store_code(t.bytes.data(), t.layout.format, truth.element[i], encode(t.layout.format, value));
    }
    outputs.push_back(std::move(t));
  }
  return outputs;
}

void expect_planted_is_truth_of(const Problem& problem, const Problem& faulty, std::size_t fault, double size) {
  const PlantedOutputs planted = attention().plant(problem, fault, size);
  const Truth truth = attention().evaluate(faulty, {}, Level::kT0).truth;
  ASSERT_EQ(planted.size(), truth.outputs.size());
  for (std::size_t k = 0; k < planted.size(); ++k) {
    ASSERT_EQ(planted[k].size(), truth.outputs[k].mid.size());
    int compared = 0;
    for (std::size_t i = 0; i < planted[k].size(); ++i) {
      if (std::isnan(planted[k][i])) continue;  // a row without an edge
      ASSERT_NEAR(planted[k][i], truth.outputs[k].mid[i], 1e-11)
          << "fault " << fault << ", output " << k << ", element " << i;
      ++compared;
    }
    EXPECT_GT(compared, 0);
  }
}

/// Without the keys that the fault touches, row by row, by a boolean mask.
Problem masked_at_sites(const Problem& problem, std::size_t fault) {
  Problem faulty = problem;
  Tensor& mask = input(faulty, "mask");
  const Truth truth = attention().evaluate(problem, {}, Level::kT0).truth;
  for (std::size_t r = 0; r < truth.rows.size(); ++r) {
    const FaultSite site = attention().fault_site(problem, fault, r);
    int first = 0, last = 0;
    if (std::sscanf(site.what.c_str(), "keys %d to %d", &first, &last) != 2) {
      EXPECT_EQ(std::sscanf(site.what.c_str(), "key %d", &first), 1) << site.what;
      last = first;
    }
    const RowFacts& row = truth.rows[r];
    for (int key = first; key <= last; ++key)
      mask.output().set_code(mask.output().element(row.batch, row.head, row.query, key), 0);
  }
  return faulty;
}

/// "sq=3 skv=9 ..." as parameters.
Params params_of(const std::string& text) {
  Params params;
  std::istringstream words(text);
  for (std::string word; words >> word;) params.set(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  return params;
}

/// Options that change logits, values, denominators or where things lie.
const std::vector<std::string> kOptions{"",
                                        "softcap=2",
                                        "alibi=diagonal",
                                        "sink=in_lse",
                                        "sink=out_of_lse lse=2",
                                        "descale=head",
                                        "descale=block scale_block=32 dtype=fp16",
                                        "v_from=k",
                                        "prefix=16",
                                        "kv=vllm page=16"};

TEST(PlantedFault, LostKeysAreMaskedKeys) {
  for (const std::string& option : kOptions) {
    SCOPED_TRACE(option);
    const Problem problem = problem_of(params_of("hq=2 sq=3 skv=150 mask=bool " + option), 1, 0.7);
    for (const std::size_t fault : {kDroppedKey, kLostTile})
      expect_planted_is_truth_of(problem, masked_at_sites(problem, fault), fault, 1);
  }
}

TEST(PlantedFault, AGhostIsAKeyAndAValueOfZeros) {
  for (const std::string option : {"", "softcap=2", "sink=in_lse", "sink=out_of_lse lse=2", "descale=head"}) {
    SCOPED_TRACE(option);
    Problem problem = problem_of(params_of("sq=3 skv=40 align=tl " + option), 2),
            faulty = problem_of(params_of("sq=3 skv=41 align=tl " + option), 2);
    for (Tensor& from : problem.inputs) {
      Tensor& to = input(faulty, from.layout.role);
      std::fill(to.bytes.begin(), to.bytes.end(), std::byte{0});
      std::copy(from.bytes.begin(), from.bytes.end(), to.bytes.begin());
    }
    expect_planted_is_truth_of(problem, faulty, kGhostKey, 1);
  }
}

TEST(PlantedFault, AScaleErrorIsAnotherScale) {
  for (const std::string& option : kOptions) {
    SCOPED_TRACE(option);
    const auto problem = [&](const char* scale) {
      return problem_of(params_of(std::string("sq=3 skv=90 scale=") + scale + " " + option), 3, 0.7);
    };
    expect_planted_is_truth_of(problem("0.125"), problem("0.15625"), kScaleError, 0.25);
  }
}

TEST(PlantedFault, AShiftedMaskIsAWiderWindow) {
  for (const std::string& option : kOptions) {
    SCOPED_TRACE(option);
    const auto problem = [&](const char* edges) {
      return problem_of(params_of(std::string("sq=9 skv=60 align=tl ") + edges + " " + option), 4, 0.7);
    };
    expect_planted_is_truth_of(problem("mask=causal"), problem("window=-1,1"), kMaskShift, 1);
    expect_planted_is_truth_of(problem("window=3,-1"), problem("window=4,-1"), kMaskShift, 1);
  }
}

TEST(PlantedFault, AShiftedMaskDoesNotUncoverWhatAnotherMaskHides) {
  Problem problem = problem_of(params_of("sq=4 skv=9 align=tl mask=causal+bool"), 9);
  const auto planted_rows = [&] {
    int rows = 0;
    const PlantedOutputs planted = attention().plant(problem, kMaskShift, 1);
    if (!planted.empty())
      for (const double lse : planted[1]) rows += !std::isnan(lse);
    return rows;
  };
  EXPECT_EQ(planted_rows(), 4);
  Tensor& mask = input(problem, "mask");
  mask.output().set_code(mask.output().element(0, 0, 1, 2), 0);
  EXPECT_EQ(planted_rows(), 3) << "key 2 of query 1, just beyond its edge, is masked by data as well";
}

TEST(PlantedFault, AGainScalesOAndLeavesTheLseAlone) {
  const Problem problem = problem_of(make_params({{"sq", "2"}, {"skv", "70"}}), 6);
  const Truth truth = attention().evaluate(problem, {}, Level::kT0).truth;
  const PlantedOutputs planted = attention().plant(problem, kGain, 0.5);
  for (std::size_t i = 0; i < planted[0].size(); ++i) EXPECT_NEAR(planted[0][i], 1.5 * truth.outputs[0].mid[i], 1e-12);
  for (const double lse : planted[1]) EXPECT_TRUE(std::isnan(lse));
}

/// Twice the T0 floor of a fault is rejected by a measurement and a tenth is not, output by output; returns how many
/// are visible.
int expect_floor_holds(const Op& op, const Problem& problem, const Arithmetic& arithmetic, std::size_t fault,
                       const std::string& where) {
  const Evaluation evaluation = op.evaluate(problem, arithmetic, Level::kT0);
  const std::vector<JudgedLevel> levels{judged_level(evaluation, Level::kT0)};
  const FaultFloors found = detection_floors(op, *fault_planter(op, problem), fault, evaluation.truth, levels);
  int visible = 0;
  for (std::size_t k = 0; k < found.floors[0].size(); ++k) {
    const Floor& floor = found.floors[0][k];
    const auto rejected = [&](double size) {
      return measure(evaluation, faulty_outputs(op, problem, evaluation, fault, size)).outputs[k].rejected > 0;
    };
    SCOPED_TRACE(std::string(op.name) + " " + std::string(found.fault.name) + " " + where + " output " +
                 std::to_string(k));
    if (floor.state == Floor::State::kNotApplicable) continue;
    if (floor.state == Floor::State::kNotVisible) {
      EXPECT_FALSE(rejected(found.fault.largest));
      continue;
    }
    ++visible;
    EXPECT_TRUE(rejected(std::min(2 * floor.size, found.fault.largest))) << "twice " << floor.size;
    EXPECT_FALSE(rejected(floor.size / 10)) << "a tenth of " << floor.size;
    EXPECT_LE(floor.size, 1.01 * floor.accepted);
  }
  return visible;
}

TEST(DetectionFloor, IsWhereMeasurementsBeginToSeeTheFault) {
  const std::vector<PlantedFault> faults = attention().planted_faults();
  for (std::size_t fault = 0; fault < faults.size(); ++fault) {
    int visible = 0;
    for (int n = 0; n < kCases; ++n) {
      Dice dice(100 * fault + static_cast<std::uint64_t>(n));
      const Problem problem = problem_of(case_params(dice, fault == kMaskShift), dice.bits(), dice.real(0.3, 2));
      visible += expect_floor_holds(attention(), problem, dice.one_in(2) ? Arithmetic{} : declared(), fault,
                                    "case " + std::to_string(n));
    }
    EXPECT_GE(visible, kCases) << faults[fault].name << " was hardly ever visible";
  }
}

TEST(DetectionFloor, HoldsForTheOtherOps) {
  for (const char* line :
       {"softmax rows=2 n=150 lse=e x=normal(2)@", "softmax rows=2 n=150 dtype=fp32 steps=64 scale=0.5 x=normal@",
        "merge rows=3 parts=4 dv=16 lse_parts=normal(2)@",
        "merge rows=2 parts=3 dv=16 dtype=fp16 base=2 lse_parts=uniform(-3,3)@"}) {
    for (int n = 0; n < kCases / 2; ++n) {
      const Case c = parse_case(line + std::to_string(n));
      const Op& op = op_named(c.op);
      const Problem problem = materialize(c);
      int visible = 0;
      for (std::size_t fault = 0; fault < op.planted_faults().size(); ++fault)
        visible += expect_floor_holds(op, problem, {}, fault, "case " + print_case(c));
      EXPECT_GE(visible, 2) << print_case(c);
    }
  }
}

/// A kernel with the declared roundings and the fault: what the level replays, moved by the fault.
std::vector<Tensor> faulty_replay(const Problem& problem, const Evaluation& evaluation, const JudgedLevel& level,
                                  std::size_t fault, double size) {
  const PlantedOutputs unplanted = attention().plant(problem, fault, 0),
                       planted = attention().plant(problem, fault, size);
  std::vector<Tensor> outputs;
  for (std::size_t k = 0; k < level.outputs.size(); ++k) {
    const OutputTruth& truth = evaluation.truth.outputs[k];
    Tensor t{.layout = truth.layout,
             .bytes = std::vector<std::byte>(static_cast<std::size_t>(truth.layout.storage_bytes()))};
    for (std::size_t i = 0; i < truth.element.size(); ++i) {
      const double moved = planted[k][i] - unplanted[k][i];
      store_code(t.bytes.data(), t.layout.format, truth.element[i],
                 encode(t.layout.format, level.outputs[k].centre[i] + (std::isnan(moved) ? 0 : moved)));
    }
    outputs.push_back(std::move(t));
  }
  return outputs;
}

/// T1 under the declaration of a kernel that names its structure: the same, and mostly far smaller in o.
TEST(DetectionFloor, IsSmallerUnderADeclaredStructure) {
  const Kernel& fa2 = *find_kernel("fa2_bf16");
  int smaller = 0, compared = 0;
  for (int n = 0; n < kCases; ++n) {
    Dice dice(static_cast<std::uint64_t>(n));
    Params params = case_params(dice, true);
    params.set("dtype", "bf16");
    const Problem problem = problem_of(params, dice.bits());
    const Evaluation evaluation = attention().evaluate(problem, fa2.declared(problem.params), Level::kT1);
    ASSERT_FALSE(evaluation.bound.tiers.empty());
    const std::vector<JudgedLevel> levels{judged_level(evaluation, Level::kT0), judged_level(evaluation, Level::kT1)};
    const std::vector<FaultFloors> all = detection_floors(attention(), problem, evaluation.truth, levels);
    for (std::size_t fault = 0; fault < all.size(); ++fault) {
      const Floor &t0 = all[fault].floors[0][0], &t1 = all[fault].floors[1][0];
      if (t1.state != Floor::State::kVisible) continue;
      const auto rejected = [&](double size) {
        const Measurement m = measure(evaluation, faulty_replay(problem, evaluation, levels[1], fault, size));
        return m.outputs[0].rejected > 0 || m.outputs[0].tiers.at(0).rejected > 0;
      };
      EXPECT_TRUE(rejected(std::min(2 * t1.size, all[fault].fault.largest))) << all[fault].fault.name << " case " << n;
      EXPECT_FALSE(rejected(t1.size / 10)) << all[fault].fault.name << " case " << n;
      ++compared;
      smaller += t0.state == Floor::State::kNotVisible || 2 * t1.size < t0.size;
    }
  }
  EXPECT_GT(compared, 3 * kCases);
  EXPECT_GT(2 * smaller, compared);
}

TEST(DetectionFloor, SaysWhenAFaultCannotBeSeenOrCannotBe) {
  // Logits of 60 and more: 2^20 keys of logit 0 add 1e-20 of the weight.
  Problem problem = problem_of(make_params({{"sq", "1"}, {"skv", "8"}, {"d", "16"}, {"scale", "1"}}), 7);
  for (const char* role : {"q", "k"})
    for (std::int64_t e = 0; e < input(problem, role).layout.storage; ++e)
      store_code(input(problem, role).bytes.data(), Format::kBf16, e, encode(Format::kBf16, 2));
  const Evaluation evaluation = attention().evaluate(problem, declared(), Level::kT0);
  const std::vector<JudgedLevel> levels{judged_level(evaluation, Level::kT0)};
  const std::vector<FaultFloors> floors = detection_floors(attention(), problem, evaluation.truth, levels);
  EXPECT_EQ(floors[kGhostKey].floors[0][0].state, Floor::State::kNotVisible);
  EXPECT_EQ(floors[kGhostKey].floors[0][1].state, Floor::State::kNotVisible);
  EXPECT_EQ(floors[kMaskShift].floors[0][0].state, Floor::State::kNotApplicable) << "no mask edge";
  EXPECT_EQ(floors[kGain].floors[0][0].state, Floor::State::kVisible);
  EXPECT_EQ(floors[kGain].floors[0][1].state, Floor::State::kNotApplicable) << "a gain leaves the LSE alone";
}

TEST(DetectionFloor, OfARowsOnlyKeyIsItsWholeLoss) {
  const Problem problem = problem_of(make_params({{"sq", "1"}, {"skv", "1"}}), 8);
  const Evaluation evaluation = attention().evaluate(problem, declared(), Level::kT0);
  const std::vector<JudgedLevel> levels{judged_level(evaluation, Level::kT0)};
  const std::vector<FaultFloors> floors = detection_floors(attention(), problem, evaluation.truth, levels);
  EXPECT_EQ(floors[kDroppedKey].floors[0][0].size, 1) << "o does not depend on the weight of the only key";
  EXPECT_LT(floors[kDroppedKey].floors[0][1].size, 1e-4);
}

// An op whose one output is 1 under no fault, with tau 2^-10 in fp32, and moves along a given curve.
double cube(double size) { return size * size * size; }
double step(double size) { return size < 0.3 ? 0 : 1e300; }
double bump(double size) { return size < 0.5 ? size / 8 : 0; }
double tiny(double size) { return size * 0x1p60; }
template <double (*curve)(double)>
PlantedOutputs plant_curve(const Problem&, std::size_t, double size) {
  return {{1 - curve(size)}};
}

double floor_of_curve(PlantedOutputs (*plant)(const Problem&, std::size_t, double)) {
  Op op{};
  op.planted_faults = [] { return std::vector<PlantedFault>{{"curve", "", 1}}; };
  op.plant = plant;
  Evaluation e;
  e.truth.outputs.push_back(
      {.layout = {}, .element = {0}, .row = {0}, .mid = {1}, .radius = {0}, .classes = {kNumber}});
  e.bound.outputs.push_back({.tau = {0x1p-10}, .also = {0}});
  const std::vector<JudgedLevel> levels{judged_level(e, Level::kT0)};
  const Floor floor = detection_floors(op, {}, e.truth, levels)[0].floors[0][0];
  return floor.state == Floor::State::kVisible ? floor.size : std::numeric_limits<double>::infinity();
}

TEST(DetectionFloor, IsFoundOnEveryKindOfCurve) {
  EXPECT_NEAR(floor_of_curve(plant_curve<cube>), std::cbrt(0x1p-10), 2e-3);
  EXPECT_NEAR(floor_of_curve(plant_curve<step>), 0.3, 4e-3);
  EXPECT_NEAR(floor_of_curve(plant_curve<bump>), 0x1p-7, 1e-4) << "accepted again at the largest size";
  EXPECT_NEAR(floor_of_curve(plant_curve<tiny>), 0x1p-70, 0x1p-76);
}

TEST(JudgedLevel, CentresOnTheReplayAndKeepsBothSets) {
  Evaluation e;
  e.truth.outputs.push_back(
      {.layout = {}, .element = {0, 1}, .row = {0, 0}, .mid = {1, 1}, .radius = {0, 0}, .classes = {kNumber, kNumber}});
  e.bound.outputs.push_back({.tau = {0x1p-4, 0x1p-4}, .also = {0, 0}});
  e.bound.tiers.push_back(
      {.level = Level::kT1,
       .outputs = {{.mid = {1.0625, 1}, .tau = {0x1p-6, std::numeric_limits<double>::infinity()}}}});
  EXPECT_EQ(judged_level(e, Level::kT0).outputs[0].centre, (std::vector<double>{1, 1}));
  const JudgedOutput t1 = judged_level(e, Level::kT1).outputs[0];
  EXPECT_EQ(t1.centre, (std::vector<double>{1.0625, 1}));
  const auto accepts_value = [](const Acceptance& set, double value) {
    return accepts(set, encode(set.format, value));
  };
  EXPECT_TRUE(accepts_value(t1.sets[0], 1.0625));
  EXPECT_FALSE(accepts_value(t1.sets[0], 1.0626)) << "outside T0";
  EXPECT_FALSE(accepts_value(t1.sets[0], 1.046)) << "outside T1";
  EXPECT_TRUE(accepts_value(t1.sets[1], 0.938)) << "T1 says nothing there";
}

}  // namespace
}  // namespace assay

// Builds the probes of numerics.md 2.14 for a number of keys, plants the three faults and runs them.
#include "fuzz/floors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "cases/materialize.h"
#include "cases/walk.h"
#include "oracle/accept.h"
#include "oracle/error.h"
#include "oracle/floor.h"
#include "oracle/measure.h"
#include "oracle/ops/attention/lost_keys.h"

namespace assay {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kScaleFault = 1e-4;
constexpr std::int64_t kSupport = 256;

/// One probe under one kernel's declaration.
struct Bench {
  Bench(const std::string& line, const std::string& name, Runner& its_runner, Level highest)
      : c(parse_case(line)), problem(materialize(c)), op(op_named(c.op)), kernel(name), runner(its_runner) {
    const RunOutcome own = runner.run(kernel, problem.params, problem.inputs, problem.outputs);
    if (own.status == RunStatus::kSkipped) throw InputError(fmt::format("{} refuses {}: {}", kernel, line, own.reason));
    declared = own.declared;
    evaluation = op.evaluate(problem, declared, highest);
    level = evaluation.bound.tiers.empty() ? Level::kT0 : evaluation.bound.tiers.back().level;
    judged = judged_level(evaluation, level);
    report.keys = attention_keys();
    report.kernel = kernel;
    report.case_line = print_case(c);
    report.level = level;
    report.elements = static_cast<std::int64_t>(evaluation.truth.outputs[0].element.size());
    report.single = single_valued(evaluation, 0);
    report.false_alarms = own.status == RunStatus::kOk ? rejected(own.outputs, 0) + rejected(own.outputs, 1) : -1;
    for (const OutputTruth& output : evaluation.truth.outputs)
      report.outputs.push_back({.role = output.layout.role, .proven = false, .smallest = kNone});
  }

  std::int64_t attention_keys() const { return std::stoll(*c.params.find("skv")); }

  std::int64_t rejected(const std::vector<Tensor>& outputs, std::size_t output) const {
    if (output >= evaluation.truth.outputs.size()) return 0;
    const OutputTruth& truth = evaluation.truth.outputs[output];
    std::int64_t n = 0;
    for (std::size_t i = 0; i < truth.element.size(); ++i)
      n += accepted(evaluation, output, i, outputs[output].view().code(truth.element[i])) ? 0 : 1;
    return n;
  }

  /// Judges one run of a kernel on (other) inputs against this problem's sets.
  void run(const std::string& name, const Problem& given, FloorRuns& into) {
    const RunOutcome outcome = runner.run(name, given.params, given.inputs, given.outputs);
    if (outcome.status != RunStatus::kOk) return;
    ++into.runs;
    into.rejected_o += rejected(outcome.outputs, 0) > 0;
    into.rejected_lse += rejected(outcome.outputs, 1) > 0;
  }

  void run_mutant(const std::string& suffix) {
    FloorRuns runs{.what = kernel + "_" + suffix};
    const std::vector<KernelIdentity> known = runner.kernels();
    if (std::none_of(known.begin(), known.end(), [&](const KernelIdentity& k) { return k.name == runs.what; })) return;
    run(runs.what, problem, runs);
    report.runs.push_back(runs);
  }

  Case c;
  Problem problem;
  const Op& op;
  std::string kernel;
  Runner& runner;
  Arithmetic declared;
  Evaluation evaluation;
  Level level = Level::kT0;
  JudgedLevel judged;
  FaultFloor report;
};

/// The problem with key `key` far below the row's other keys, so that the kernel cannot see it.
Problem without_key(const Problem& problem, std::int64_t key) {
  Problem out = problem;
  for (const InputSpec& spec : op_named("attention").inputs(problem.params)) {
    if (spec.layout.role != "k") continue;
    const auto tensor =
        std::find_if(out.inputs.begin(), out.inputs.end(), [](const Tensor& t) { return t.layout.role == "k"; });
    const std::uint64_t off = encode(spec.layout.format, -256);
    for_each_row(spec, [&](const Row& row, const RowValues& at) {
      if (row.position != key) return;
      at.each([&](std::int64_t, std::int64_t element, std::int64_t) {
        store_code(tensor->bytes.data(), spec.layout.format, element, off);
      });
    });
  }
  return out;
}

Tensor& queries(Problem& problem) {
  return *std::find_if(problem.inputs.begin(), problem.inputs.end(),
                       [](const Tensor& t) { return t.layout.role == "q"; });
}

/// Makes query `query` of `all` the only one of `alone`.
void take_query(Problem& all, std::int64_t query, Problem& alone) {
  const Tensor& from = queries(all);
  Tensor& to = queries(alone);
  for (std::int64_t c = 0; c < to.layout.shape[3]; ++c)
    to.output().set_code(to.view().element(0, 0, 0, c), from.view().code(from.view().element(0, 0, query, c)));
}

/// The edges of tiles, splits and the sequence, and a few keys between them.
std::vector<std::int64_t> sampled_positions(std::int64_t keys) {
  return {0,        1,          63,         64,         127,       128,      255,     256, keys / 2 - 1,
          keys / 2, keys - 257, keys - 129, keys - 128, keys - 65, keys - 2, keys - 1};
}

FaultFloor dropped_key(std::int64_t keys, const std::string& kernel, Runner& runner, Level highest) {
  const std::int64_t rows = keys / kSupport;
  const auto line = [&](std::int64_t queries) {
    return fmt::format("attention sq={} skv={} d=128 scale=1 q=cover_row k=cover_key({}) v=integers@1", queries, keys,
                       rows);
  };
  Bench bench(line(rows), kernel, runner, highest);
  FaultFloor& report = bench.report;
  report.fault = "dropped key";
  std::vector<std::int64_t> rows_of_key(static_cast<std::size_t>(keys), 0);
  for (FloorOfOutput& output : report.outputs) output.smallest = 0;
  for (const LostKeys& row : visible_losses(bench.problem, bench.evaluation.truth, bench.judged, 0x1p-12))
    for (std::size_t i = 0; i < row.keys.size(); ++i) {
      ++rows_of_key[static_cast<std::size_t>(row.keys[i])];
      for (std::size_t k = 0; k < report.outputs.size(); ++k) {
        FloorOfOutput& output = report.outputs[k];
        const double least = k == 0 ? row.least_in_o[i] : row.least_in_lse[i];
        output.positions += least <= 1;
        output.smallest = std::max(output.smallest, least);
      }
    }
  for (FloorOfOutput& output : report.outputs) {
    output.proven = output.positions == keys;
    if (!output.proven) output.smallest = kNone;
  }
  report.covered = std::count(rows_of_key.begin(), rows_of_key.end(), 1);

  // Runs: of the row that holds the key, alone.
  FloorRuns runs{.what = "key hidden from " + kernel};
  Bench row(line(1), kernel, runner, highest);
  for (const std::int64_t key : sampled_positions(keys)) {
    take_query(bench.problem, key % rows, row.problem);
    row.evaluation = row.op.evaluate(row.problem, row.declared, highest);
    row.run(kernel, without_key(row.problem, key), runs);
  }
  report.runs.push_back(runs);
  bench.run_mutant("last_key_dropped");
  return report;
}

/// Floors of one of the op's planted faults.
void plant(Bench& bench, std::string_view fault, double whole) {
  const std::vector<PlantedFault> faults = bench.op.planted_faults();
  const auto at = std::find_if(faults.begin(), faults.end(), [&](const PlantedFault& f) { return f.name == fault; });
  const std::unique_ptr<FaultPlanter> planter = fault_planter(bench.op, bench.problem);
  const FaultFloors found = detection_floors(bench.op, *planter, static_cast<std::size_t>(at - faults.begin()),
                                             bench.evaluation.truth, {&bench.judged, 1});
  for (std::size_t k = 0; k < bench.report.outputs.size(); ++k) {
    const Floor& floor = found.floors[0][k];
    if (floor.state != Floor::State::kVisible) continue;
    bench.report.outputs[k].smallest = floor.size;
    bench.report.outputs[k].proven = floor.size <= whole;
  }
}

FaultFloor ghost_key(std::int64_t keys, const std::string& kernel, Runner& runner, Level highest) {
  const std::int64_t rows = keys / kSupport;
  // One key short of whole tiles: a ghost of the mutant needs padding.
  Bench bench(fmt::format("attention sq={0} skv={1} d=128 scale=1 q=cover_row k=cover_key({0},1,-20) v=integers@1",
                          rows, keys - 1),
              kernel, runner, highest);
  bench.report.fault = "ghost key";
  bench.report.keys = keys;
  plant(bench, "ghost key", 1);
  bench.run_mutant("padded_key_leaks");
  return bench.report;
}

FaultFloor scale_by_lse(std::int64_t keys, const std::string& kernel, Runner& runner, Level highest) {
  Bench bench(fmt::format("attention sq=8 skv={} d=128 scale=1 window=0,0 q=probe@1 k=logit_offset(64,0)@2 "
                          "v=integers(1,8)@1",
                          keys),
              kernel, runner, highest);
  bench.report.fault = "scale off by 1e-4, one key";
  plant(bench, "scale error", kScaleFault);
  bench.run_mutant("scale_off_1e-4");
  return bench.report;
}

/// Whether a perfect kernel whose scale is off by `size` leaves the sets: its roundings of P are those of the logits it
/// has.
bool scale_shows(const Bench& bench, double size) {
  Problem off = bench.problem;
  const float scale = static_cast<float>(1 + size);
  for (auto& [key, value] : off.params.items)
    if (key == "scale") value = fmt::format("{}", scale);
  const JudgedLevel replayed = judged_level(bench.op.evaluate(off, bench.declared, bench.level), bench.level);
  const JudgedOutput &sets = bench.judged.outputs[0], &values = replayed.outputs[0];
  for (std::size_t i = 0; i < sets.sets.size(); ++i)
    if (std::isfinite(values.centre[i]) && !accepts(sets.sets[i], encode(sets.sets[i].format, values.centre[i])))
      return true;
  return false;
}

FaultFloor scale_without_lse(std::int64_t keys, const std::string& kernel, Runner& runner, Level highest) {
  const bool fp16 = kernel.ends_with("fp16");
  Bench bench(fmt::format("attention sq=1 skv={} d=128 scale=1 lse=none{} q=probe@1 k=weight_edges(256,{})@2 "
                          "v=edge_values",
                          keys, fp16 ? " dtype=fp16" : "", fp16 ? 10 : 7),
              kernel, runner, highest);
  bench.report.fault = "scale off by 1e-4, without LSE";
  FloorOfOutput& o = bench.report.outputs[0];
  o.proven = scale_shows(bench, kScaleFault) && scale_shows(bench, -kScaleFault);
  // The end of a descent in which both signs show.
  for (double size = 0.1; size > 1e-7; size /= 1.25) {
    if (!scale_shows(bench, size) || !scale_shows(bench, -size)) break;
    o.smallest = size;
  }
  bench.run_mutant("scale_off_1e-4");
  return bench.report;
}

}  // namespace

std::int64_t single_valued(const Evaluation& evaluation, std::size_t output) {
  const JudgedLevel level = judged_level(evaluation, Level::kT2);
  std::int64_t single = 0;
  for (const Acceptance& set : level.outputs[output].sets)
    single += set.classes == kNumber && encode(set.format, set.low) == encode(set.format, set.high);
  return single;
}

std::vector<FaultFloor> probe_floors(std::int64_t keys, const std::string& kernel, Runner& runner, Level level) {
  return {dropped_key(keys, kernel, runner, level), ghost_key(keys, kernel, runner, level),
          scale_by_lse(keys, kernel, runner, level), scale_without_lse(keys, kernel, runner, level)};
}

}  // namespace assay

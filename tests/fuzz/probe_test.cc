// Exact probes: one accepted value per element, every key position covered, correct kernels clean, and each planted
// fault rejected by the probe that is meant for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cases/materialize.h"
#include "cases/recipes.h"
#include "fuzz/floors.h"
#include "fuzz/kill_level.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "kernels/kernel.h"
#include "kernels/worker.h"
#include "oracle/floor.h"
#include "oracle/ops/attention/attention.h"
#include "oracle/ops/attention/lost_keys.h"
#include "oracle/ops/attention/problem.h"

namespace assay {
namespace {

/// The suite, read once.
const std::vector<Case>& probes() {
  static const std::vector<Case> cases = suite_cases("probe");
  return cases;
}

std::string recipe(const Case& c, std::string_view role) {
  for (const auto& [name, source] : c.sources)
    if (name == role) return print_source(source);
  return {};
}

std::string text_of(const Record& record) {
  return record.kernel + " on " + record.case_line + ": " + record.verdict.level + " " + record.verdict.evidence +
         record.verdict.reason;
}

Tensor& input(Problem& problem, std::string_view role) {
  return *std::find_if(problem.inputs.begin(), problem.inputs.end(),
                       [&](const Tensor& t) { return t.layout.role == role; });
}

/// Elements of the kernel's outputs on `given` that the sets of `problem` reject.
std::int64_t rejections(const Problem& problem, const Problem& given, std::string_view kernel, Runner& runner) {
  const RunOutcome run = runner.run(kernel, given.params, given.inputs, given.outputs);
  EXPECT_EQ(run.status, RunStatus::kOk) << kernel << ": " << run.reason;
  if (run.status != RunStatus::kOk) return -1;
  const Evaluation evaluation = op_named("attention").evaluate(problem, run.declared, Level::kT1);
  std::int64_t n = 0;
  for (std::size_t k = 0; k < evaluation.truth.outputs.size(); ++k) {
    const OutputTruth& truth = evaluation.truth.outputs[k];
    for (std::size_t i = 0; i < truth.element.size(); ++i)
      n += accepted(evaluation, k, i, run.outputs[k].view().code(truth.element[i])) ? 0 : 1;
  }
  return n;
}

std::vector<std::string> host_kernels_for(const Case& c, Runner& runner) {
  std::vector<std::string> names;
  for (const KernelIdentity& kernel : runner.kernels())
    if (takes(kernel, c)) names.push_back(kernel.name);
  return names;
}

/// Probes whose sets are wider by their nature: weights off an edge are no powers of two, and in 8 bits scores other
/// than 0 may be off by their 13-bit sums, which moves all weights.
bool wider(const Case& c) {
  const bool narrow = info(op_named(c.op).input_format(c.params)).storage_bits == 8;
  const std::string k = recipe(c, "k");
  return k.starts_with("weight_edges") || (narrow && (k.starts_with("tile_powers") || k.find(",-20") != k.npos));
}

// A set of more than one value is left by the one chain of 13-bit sums of fa3_e4m3_single, and where T1 does not apply
// although P is rounded: to index lists and block factors.
TEST(Probes, AcceptOneValuePerElementWhereTheKernelDeclaresItsTiles) {
  std::map<std::string, int> judged;
  for (const Case& c : probes()) {
    if (wider(c)) continue;
    const Problem problem = materialize(c);
    const Op& op = op_named(c.op);
    std::vector<Arithmetic> seen;
    int single_for = 0;
    for (const std::string& name : host_kernels_for(c, *in_process_runner())) {
      const Kernel& kernel = *find_kernel(name);
      if (kernel.unsupported(c.params) || name == "fa3_e4m3_single") continue;
      const Arithmetic declared = kernel.declared(c.params);
      if (std::find(seen.begin(), seen.end(), declared) != seen.end()) continue;
      seen.push_back(declared);
      const Evaluation evaluation = op.evaluate(problem, declared, Level::kT1);
      const OutputTruth& o = evaluation.truth.outputs[0];
      if (info(o.layout.format).storage_bits > 16) continue;
      if (evaluation.bound.tiers.empty() && c.op == "attention" && declared.p_format != Format::kFp32) continue;
      ++single_for;
      ++judged[name];
      EXPECT_EQ(single_valued(evaluation, 0), static_cast<std::int64_t>(o.element.size()))
          << name << " on " << print_case(c);
    }
    if (c.params.find("dtype") == nullptr || *c.params.find("dtype") != "fp32") {
      EXPECT_GE(single_for, 1) << print_case(c);
    }
  }
  for (const char* kernel : {"naive_bf16", "fa1_bf16", "fa2_bf16", "fa4_bf16", "split_bf16", "fa2_fp16", "fa3_e4m3",
                             "paged_vllm_bf16", "paged_flashinfer_bf16", "paged_split_bf16"})
    EXPECT_GE(judged[kernel], 1) << kernel;
}

TEST(Probes, HaveAnExactlyRepresentableAnswerUnlessTheirWeightsAreOffAnEdgeOrMustVanish) {
  for (const Case& c : probes()) {
    if (c.op != "attention") continue;
    const std::string k = recipe(c, "k");
    if (k.starts_with("weight_edges") || k.find("12)") != k.npos) continue;
    const Problem problem = materialize(c);
    const Evaluation evaluation = op_named(c.op).evaluate(problem, {}, Level::kT0);
    const OutputTruth& o = evaluation.truth.outputs[0];
    for (std::size_t i = 0; i < o.mid.size(); ++i) {
      const double rounded = decode(o.layout.format, encode(o.layout.format, o.mid[i]));
      // Powers of two by fl32(ln 2) are off by 3e-9 each.
      ASSERT_NEAR(rounded, o.mid[i], 2 * o.radius[i] + 3e-8 * std::abs(o.mid[i])) << print_case(c) << " element " << i;
    }
  }
}

TEST(Probes, CorrectKernelsAreCleanOrDecline) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  std::map<std::string, int> clean;
  for (const Case& c : probes())
    for (const std::string& name : host_kernels_for(c, *runner)) {
      const Record record = run_case(c, name, *runner);
      EXPECT_TRUE(record.verdict.kind == CaseVerdict::kClean || record.verdict.kind == CaseVerdict::kSkipped)
          << text_of(record);
      clean[name] += record.verdict.kind == CaseVerdict::kClean;
    }
  for (const KernelIdentity& kernel : runner->kernels())
    if (kernel.op == "attention") {
      EXPECT_GE(clean[kernel.name], 1) << kernel.name;
    }
}

// The covering probes' promise, by program: every key of a head in one row's support, and its loss rejected in o alone.
TEST(Probes, CoverEveryKeyPositionOnceAndProveEach) {
  int covering = 0;
  for (const Case& c : probes()) {
    if (!recipe(c, "k").starts_with("cover_key") || wider(c)) continue;
    const Problem problem = materialize(c);
    const auto kernels = host_kernels_for(c, *in_process_runner());
    const auto name = std::find_if(kernels.begin(), kernels.end(), [&](const std::string& k) {
      return !find_kernel(k)->unsupported(c.params) && k != "naive_fp32";
    });
    if (name == kernels.end()) continue;
    const Evaluation evaluation =
        op_named("attention").evaluate(problem, find_kernel(*name)->declared(c.params), Level::kT1);
    const AttentionProblem reader(problem);
    const std::vector<LostKeys> rows =
        visible_losses(problem, evaluation.truth, judged_level(evaluation, Level::kT1), 1);
    std::map<std::pair<std::int64_t, std::int64_t>, std::multiset<std::int32_t>> keys;
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t i = 0; i < rows[r].keys.size(); ++i) {
        keys[{reader.rows()[r].batch, reader.rows()[r].head}].insert(rows[r].keys[i]);
        const bool alone = rows[r].keys.size() == 1;  // the loss of a row's only key leaves no softmax
        EXPECT_TRUE(rows[r].least_in_o[i] <= 1 || alone)
            << *name << " on " << print_case(c) << ": key " << rows[r].keys[i];
      }
    for (const auto& [head, of_head] : keys) {
      EXPECT_EQ(static_cast<std::int64_t>(of_head.size()), reader.kv_len(head.first)) << print_case(c);
      EXPECT_EQ((std::set<std::int32_t>{of_head.begin(), of_head.end()}).size(), of_head.size()) << print_case(c);
    }
    ++covering;
  }
  EXPECT_GE(covering, 20);
}

// A kernel that cannot see a key: its K lies so far below the others' that its weight is zero.
TEST(Probes, AKeyHiddenAtAnyPositionIsRejected) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  for (const char* line :
       {"attention sq=4 skv=128 d=64 scale=1 lse=none q=cover_row k=cover_key(4) v=integers(1,8)@1",
        "attention sq=2 skv=128 d=64 scale=1 lse=none dtype=e4m3 q=cover_row k=cover_key(2,64) v=integers(1,4)@1"}) {
    const Problem problem = materialize(parse_case(line));
    const std::string kernel = problem.params.find("dtype") ? "fa3_e4m3" : "fa2_bf16";
    EXPECT_EQ(rejections(problem, problem, kernel, *runner), 0);
    for (std::int64_t key = 0; key < 128; ++key) {
      Problem given = problem;
      Tensor& k = input(given, "k");
      for (std::int64_t c = 0; c < 64; ++c)
        k.output().set_code(k.view().element(0, 0, key, c), encode(k.layout.format, -256));
      EXPECT_GT(rejections(problem, given, kernel, *runner), 0) << line << ": key " << key;
    }
  }
}

/// Swaps two runs of `count` consecutive elements of a tensor.
void swap_elements(Tensor& t, std::int64_t a, std::int64_t b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t code = t.view().code(a + i);
    t.output().set_code(a + i, t.view().code(b + i));
    t.output().set_code(b + i, code);
  }
}

TEST(Probes, AWrongPageHeadOrSegmentIsRejected) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  int pages = 0, heads = 0, segments = 0;
  for (const Case& c : probes()) {
    if (c.op != "attention") continue;
    const AttentionParams p = attention_params(c.params);
    const Problem problem = materialize(c);
    Problem given = problem;
    if (p.kv_store == KvStore::kVllm || p.kv_store == KvStore::kVllmX) {
      Tensor& table = input(given, "block_table");  // the first page becomes one of the other sequence
      table.output().set_code(0, table.view().code(table.view().element(1, 0)));
      EXPECT_GT(rejections(problem, given, "paged_vllm_bf16", *runner), 0) << print_case(c);
      ++pages;
    } else if (p.kv_store == KvStore::kNhd || p.kv_store == KvStore::kHnd) {
      Tensor& list = input(given, "kv_indices");
      list.output().set_code(0, list.view().code(1));
      EXPECT_GT(rejections(problem, given, "paged_flashinfer_bf16", *runner), 0) << print_case(c);
      ++pages;
    } else if (p.heads_kv > 1 && p.heads_q > p.heads_kv) {
      for (const char* role : {"k", "v"}) {
        Tensor& t = input(given, role);
        const std::int64_t head = t.layout.strides[1];
        swap_elements(t, 0, head, head);
      }
      EXPECT_GT(rejections(problem, given, "fa2_bf16", *runner), 0) << print_case(c);
      ++heads;
    } else if (p.segments) {
      Tensor& ids = input(given, "seg_kv");
      ids.output().set_code(15,
                            ids.view().code(ids.view().element(0, p.len_kv - 1)));  // one key joins the last segment
      EXPECT_GT(rejections(problem, given, "fa2_bf16", *runner), 0) << print_case(c);
      ++segments;
    }
  }
  EXPECT_GE(pages, 4);
  EXPECT_GE(heads, 2);
  EXPECT_GE(segments, 2);
}

/// A mutant and the recipe of k, or another word, in the lines of the probes meant for it; all of them that the
/// mutant's fault reaches must reject it.
struct Meant {
  std::string mutant, word;
  int at_least = 1;  ///< probes that reject
};

/// What the outputs are held against, once for each declared arithmetic.
struct Judged {
  Arithmetic declared;
  Evaluation evaluation;
};

const Evaluation& evaluated(const Problem& problem, const Arithmetic& declared, std::vector<Judged>& known) {
  for (const Judged& judged : known)
    if (judged.declared == declared) return judged.evaluation;
  known.push_back({declared, op_named("attention").evaluate(problem, declared, Level::kT1)});
  return known.back().evaluation;
}

TEST(Probes, EachPlantedFaultIsRejectedByTheProbesMeantForIt) {
  const std::unique_ptr<Runner> runner = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}});
  const std::vector<Meant> all{
      {"fa2_bf16_last_key_dropped", "k=cover_key", 5},
      {"split_bf16_last_key_dropped", "k=cover_key", 5},
      {"fa2_bf16_key_of_128_dropped", "k=cover_key", 5},
      {"fa3_e4m3_key_of_128_dropped", "k=cover_key", 2},
      {"split_bf16_split_lost", "k=cover_key(4) v=integers@1"},
      {"fa2_bf16_padded_key_leaks", ",-20)"},
      {"split_bf16_padded_key_leaks", ",-20)"},
      {"fa2_bf16_scale_off_1e-4", "k=logit_offset(64,0)"},
      {"split_bf16_scale_off_1e-4", "k=logit_offset(64,0)"},
      {"fa2_bf16_scale_off_1e-4", "k=weight_edges", 2},  // these have no LSE
      {"split_bf16_scale_off_1e-4", "k=weight_edges", 2},
      {"fa2_bf16_mask_shifted_by_one", "window=", 2},
      {"fa2_bf16_mask_shifted_by_one", "k=diagonal", 3},
      {"fa2_bf16_accumulator_not_rescaled", "k=tile_powers", 2},
      {"split_bf16_partial_lse_in_bf16", "k=tile_powers(256)"},
      {"fa3_e4m3_lazy_maximum", "k=tile_powers"},
  };
  std::map<const Meant*, int> found;
  std::map<const Meant*, std::string> missed;
  for (const Case& c : probes()) {
    const std::string line = print_case(c);
    std::optional<Problem> problem;
    std::vector<Judged> judged;
    for (const Meant& meant : all) {
      if (line.find(meant.word) == line.npos) continue;
      if (!problem) problem = materialize(c);
      const RunOutcome run = runner->run(meant.mutant, problem->params, problem->inputs, problem->outputs);
      if (run.status != RunStatus::kOk) continue;
      if (kill_level(evaluated(*problem, run.declared, judged), run))
        ++found[&meant];
      else
        missed[&meant] += "\n  " + line;
    }
  }
  for (const Meant& meant : all)
    EXPECT_GE(found[&meant], meant.at_least) << meant.mutant << " passes" << missed[&meant];
}

}  // namespace
}  // namespace assay

// Weight tomography: no difference on correct kernels, the exact key sets of mutants, and whose keys were used.
#include "failure_catalog/tomography.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cases/materialize.h"
#include "failure_catalog/scene.h"
#include "fuzz/kernel_experiment.h"
#include "kernels/worker.h"

namespace assay {
namespace {

KernelRun run_of(Runner& runner, const std::string& kernel) {
  return [&runner, kernel](const Problem& p) -> std::optional<std::vector<Tensor>> {
    RunOutcome run = runner.run(kernel, p.params, p.inputs, p.outputs);
    if (run.status != RunStatus::kOk) return std::nullopt;
    return std::move(run.outputs);
  };
}

Problem problem_of(const std::string& line) { return materialize(parse_case(line)); }

Tomography of(const std::string& line, const std::string& kernel, Runner& runner) {
  const Problem problem = problem_of(line);
  EXPECT_EQ(no_tomography(problem, "attention"), std::nullopt) << line;
  const std::optional<Tomography> found = weight_tomography(problem, run_of(runner, kernel));
  EXPECT_TRUE(found) << kernel << " on " << line;
  return found.value_or(Tomography{});
}

std::string texts(const Tomography& t) {
  std::string all;
  for (const KeyDifference& difference : key_differences(t)) all += describe(difference, t) + "\n";
  return all;
}

std::unique_ptr<Runner> mutants() { return worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}}); }

TEST(Tomography, FindsNoDifferenceOnCorrectKernelsUnderMasksLengthsAndLayouts) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  const std::vector<std::pair<const char*, const char*>> cases{
      {"attention hq=4 hkv=2 sq=20 skv=150 d=64 mask=causal", "fa2_bf16"},
      {"attention hq=2 sq=20 skv=150 d=32 window=8,8 layout=bshd pad_rows=2", "fa1_bf16"},
      {"attention b=2 hq=2 sq=9 skv=70 d=64 batch=packed q_lens=9,4 kv_lens=70,65", "fa4_bf16"},
      {"attention b=2 hq=2 hkv=1 sq=3 skv=70 d=64 kv=vllm page=16 page_seed=3 table_pad=huge kv_lens=70,37",
       "paged_vllm_bf16"},
      {"attention b=2 hq=2 sq=3 skv=90 d=64 kv=hnd page=16 page_seed=3 kv_lens=70,90", "paged_flashinfer_bf16"},
      {"attention b=2 hq=2 sq=3 skv=90 d=64 prefix=32", "cascade_bf16"},
      {"attention sq=5 skv=700 d=64 sink=in_lse", "split_bf16"},
      {"attention sq=6 skv=80 d=64 mask=bool mask.data=keep(0.5)@9 dtype=fp16", "fa2_fp16"},
      {"attention sq=6 skv=300 d=64 dtype=e4m3 descale=head", "fa3_e4m3"},
      {"attention sq=6 skv=80 d=64 mask=bool mask.data=empty_rows(3)@9", "naive_bf16"}};
  for (const auto& [line, kernel] : cases) {
    const Tomography t = of(line, kernel, *runner);
    EXPECT_EQ(texts(t), "") << kernel << " on " << line;
    EXPECT_TRUE(foreign_origins(t, attention_params(parse_case(line).params)).empty()) << line;
    EXPECT_EQ(t.rows.empty(), false);
    for (const RowWeights& row : t.rows) EXPECT_LT(std::abs(row.total - 1), 0.1) << line;
  }
}

TEST(Tomography, NamesTheLastKeyOfEachSequence) {
  const std::unique_ptr<Runner> runner = mutants();
  const Tomography t = of("attention b=2 hq=2 sq=5 skv=150 d=64 batch=padded q_lens=5,3 kv_lens=150,100",
                          "fa2_bf16_last_key_dropped", *runner);
  for (const RowWeights& row : t.rows) {
    const auto last = static_cast<std::int64_t>(row.expected.size()) - 1;
    EXPECT_EQ(row.missing, (std::vector<KeyRun>{{last, last}}));
    EXPECT_TRUE(row.extra.empty());
    // The others share its weight.
    EXPECT_NEAR(row.factor, 1 / (1 - static_cast<double>(row.expected.back())), 0.004);
  }
  const std::string text = texts(t);
  EXPECT_NE(text.find("rows 0..4 (b 0 h 0..1): key 149 missing, weights of the others within 0."), text.npos) << text;
  EXPECT_NE(text.find("rows 0..2 (b 1 h 0..1): key 99 missing"), text.npos) << text;
}

TEST(Tomography, NamesEveryKeyThatIsMissingFromTiles) {
  const std::unique_ptr<Runner> runner = mutants();
  const Tomography t = of("attention hq=2 sq=3 skv=400 d=64", "fa2_bf16_key_of_128_dropped", *runner);
  for (const RowWeights& row : t.rows)
    EXPECT_EQ(row.missing, (std::vector<KeyRun>{{127, 127}, {255, 255}, {383, 383}}));
  EXPECT_NE(texts(t).find("rows 0..2 (all 2 heads): keys 127, 255, 383 missing"), std::string::npos) << texts(t);
}

TEST(Tomography, NamesTheKeyBehindTheDiagonal) {
  const std::unique_ptr<Runner> runner = mutants();
  const Tomography t = of("attention sq=20 skv=50 d=64 mask=causal", "fa2_bf16_mask_shifted_by_one", *runner);
  for (const RowWeights& row : t.rows) {
    const std::int64_t behind = row.row.query + 31;
    EXPECT_EQ(row.extra, behind < 50 ? (std::vector<KeyRun>{{behind, behind}}) : std::vector<KeyRun>{});
    EXPECT_TRUE(row.missing.empty());
  }
  EXPECT_NE(texts(t).find("rows 0..18 (b 0 h 0): key diagonal +1 extra"), std::string::npos) << texts(t);
}

TEST(Tomography, SeesAGhostInTheSumOfTheWeights) {
  const std::unique_ptr<Runner> runner = mutants();
  const Tomography t = of("attention sq=2 skv=15 d=64 scale=0", "fa2_bf16_padded_key_leaks", *runner);
  for (const RowWeights& row : t.rows) {
    EXPECT_TRUE(row.right_keys());
    EXPECT_NEAR(row.total, 15.0 / 16, 0.004);
  }
}

// A wrong head map or page table, planted by giving the kernel tensors with heads or table entries exchanged.
TEST(Tomography, SaysWhoseKeysWereUsed) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  const std::string line = "attention hq=4 hkv=2 sq=3 skv=60 d=64";
  const Problem problem = problem_of(line);
  const KernelRun exchanged = [&](const Problem& p) {
    Problem given = p;
    for (Tensor& t : given.inputs)
      if (t.layout.role == "k" || t.layout.role == "v") {
        const auto half = static_cast<std::ptrdiff_t>(t.bytes.size() / 2);
        std::rotate(t.bytes.begin(), t.bytes.begin() + half, t.bytes.end());
      }
    return run_of(*runner, "fa2_bf16")(given);
  };
  const std::optional<Tomography> t = weight_tomography(problem, exchanged);
  ASSERT_TRUE(t);
  const std::vector<std::string> origins = foreign_origins(*t, attention_params(problem.params));
  ASSERT_EQ(origins.size(), 4U);
  EXPECT_EQ(origins[0], "b 0 h 0: weight from kv head 1 of sequence 0 (its own: kv head 0 of sequence 0)");
  EXPECT_FALSE(texts(*t).empty());  // right keys, other weights
  for (const RowWeights& row : t->rows) EXPECT_TRUE(row.right_keys());
}

// What the classifier asks for where modes of key sets and of weights explain an output equally well.
TEST(Tomography, AnswersAFailingScene) {
  const std::unique_ptr<Runner> runner = mutants();
  const auto evidence = [&](const std::string& line, const std::string& kernel, bool can_ask) {
    const Case c = parse_case(line);
    const Problem problem = materialize(c);
    const RunOutcome run = runner->run(kernel, problem.params, problem.inputs, problem.outputs);
    const Evaluation evaluation = op_named(c.op).evaluate(problem, run.declared, Level::kT1);
    const Measurement measured = measure(evaluation, run.outputs);
    KernelExperiment experiment(*runner, kernel, problem);
    return key_evidence(
        Scene(c, problem, run.declared, evaluation, measured, run.outputs, can_ask ? &experiment : nullptr));
  };
  const std::string line = "attention sq=3 skv=200 d=64";
  const auto dropped = evidence(line, "fa2_bf16_key_of_128_dropped", true);
  ASSERT_TRUE(dropped);
  EXPECT_TRUE(dropped->wrong_keys);
  EXPECT_FALSE(dropped->right_keys);
  EXPECT_EQ(dropped->text.find("weight tomography (4 runs): rows 0..2 (b 0 h 0): key 127 missing"), 0U)
      << dropped->text;
  const auto scaled = evidence(line, "fa2_bf16_scale_off_1e-3", true);
  ASSERT_TRUE(scaled);
  EXPECT_TRUE(scaled->right_keys);
  EXPECT_FALSE(scaled->wrong_keys);
  EXPECT_FALSE(evidence(line, "fa2_bf16_scale_off_1e-3", false));
  EXPECT_FALSE(evidence("attention sq=3 skv=2000 d=64", "fa2_bf16_scale_off_1e-3", true));  // 32 runs are too many
}

TEST(Tomography, SaysWhyACaseHasNone) {
  EXPECT_TRUE(no_tomography(problem_of("softmax"), "softmax"));
  EXPECT_TRUE(no_tomography(problem_of("attention sq=2 skv=9 d=64 v_from=k"), "attention"));
  EXPECT_FALSE(weight_tomography(problem_of("attention sq=2 skv=9 d=64"), [](const Problem&) { return std::nullopt; }));
}

}  // namespace
}  // namespace assay

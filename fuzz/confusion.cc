// Drawing cases, running kernels without a name, counting the names that the classifier gives.
#include "fuzz/confusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>

#include "cases/file_source.h"
#include "failure_catalog/mode.h"
#include "fuzz/draw.h"
#include "fuzz/mutate.h"
#include "fuzz/pairwise.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "oracle/error.h"

namespace assay {
namespace {

constexpr const char* kBlank = "kernel";

/// One kernel of another runner under a blank name.
class Blanked final : public Runner {
 public:
  Blanked(Runner& runner, const KernelIdentity& kernel) : runner_(runner), kernel_(kernel) {}
  std::vector<KernelIdentity> kernels() override {
    return {{.name = kBlank,
             .op = kernel_.op,
             .summary = {},
             .expects = {},
             .device = kernel_.device,
             .dtypes = kernel_.dtypes}};
  }
  RunOutcome run(std::string_view, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override {
    return runner_.run(kernel_.name, params, inputs, outputs);
  }
  void set_fill(int fill) override { runner_.set_fill(fill); }
  void restart() override { runner_.restart(); }

 private:
  Runner& runner_;
  const KernelIdentity& kernel_;
};

std::vector<Case> witnesses() {
  std::vector<Case> all;
  for (const Mode* mode : all_modes()) {
    std::ifstream in(find_data_file("failure_catalog/" + std::string(mode->name) + "/witness.case"));
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && line.front() != '#') all.push_back(parse_case(line));
  }
  return all;
}

/// A witness with fresh seeds and up to three changes.
std::optional<Case> changed_witness(const std::vector<Case>& witnesses, Draw& draw) {
  const MutationLimits limits;
  Case c = witnesses[draw(witnesses.size())];
  for (auto& [role, source] : c.sources)
    if (source.recipe != "file") source.seed = 1000 + draw(1U << 20U);
  const Choose choose = [&](std::size_t n) { return draw(n); };
  for (std::size_t left = draw(4); left > 0; --left)
    if (std::optional<Case> next = mutated(c, witnesses[draw(witnesses.size())], choose, limits)) c = std::move(*next);
  return legal_case(std::move(c), limits);
}

/// Normal inputs of any standard deviation up to 4 in shapes without features.
Case plain_case(Draw& draw) {
  constexpr std::array<std::size_t, 5> kDims{16, 32, 64, 80, 128};
  constexpr std::array<const char*, 5> kDtypes{"bf16", "bf16", "fp16", "fp32", "e4m3"};
  const auto one_to = [&](std::size_t n) { return 1 + draw(n); };
  const std::size_t group = one_to(3), heads_kv = one_to(3), batch = one_to(3), queries = one_to(40);
  const std::size_t keys = one_to(draw(4) == 0 ? 20 : 600), dim = kDims[draw(kDims.size())];
  const char *mask = draw(2) == 0 ? "none" : "causal", *dtype = kDtypes[draw(kDtypes.size())];
  const std::size_t deviation = one_to(4), seed = draw(1U << 20U);
  return parse_case(fmt::format(
      "attention b={} hq={} hkv={} sq={} skv={} d={} mask={} dtype={} q=normal({})@{} k=normal@{} v=normal@{}", batch,
      group * heads_kv, heads_kv, queries, keys, dim, mask, dtype, deviation, seed, seed + 1, seed + 2));
}

std::optional<Case> drawn_case(const std::vector<Case>& witnesses, Draw& draw) {
  try {
    std::optional<Case> c;
    switch (draw(3)) {
      case 0: c = plain_case(draw); break;
      case 1: c = parse_case(chosen_line([&](std::size_t n) { return draw(n); })); break;
      default:
        if (!witnesses.empty()) c = changed_witness(witnesses, draw);
    }
    if (c && std::find(witnesses.begin(), witnesses.end(), *c) != witnesses.end()) return std::nullopt;
    return c;
  } catch (const InputError&) {
    return std::nullopt;  // a changed witness whose parameters no longer fit together
  }
}

/// Nothing for a changed witness whose values are none: a key that a list names twice, say.
std::optional<Record> judged(const Case& c, Runner& runner) {
  try {
    return run_case(c, kBlank, runner, Level::kT1, {.runs = 2});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

struct OfKernel {
  int failures = 0;
  std::map<std::string, int> named;
  std::vector<Confused> confused;
};

OfKernel draw_failures(const KernelIdentity& kernel, const std::vector<Case>& witnesses,
                       const ConfusionOptions& options, Runner& runner) {
  constexpr int kLinesPerRun = 200;  // most lines are of another op or format
  OfKernel result;
  Draw draw(options.seed, kernel.name);
  Blanked blank(runner, kernel);
  int runs = 0;
  for (int lines = 0;
       lines < kLinesPerRun * options.tries && runs < options.tries && result.failures < options.failures; ++lines) {
    if (options.deadline.passed()) break;
    const std::optional<Case> c = drawn_case(witnesses, draw);
    if (!c || !takes(kernel, *c)) continue;
    const std::optional<Record> record = judged(*c, blank);
    if (!record || record->verdict.kind == CaseVerdict::kSkipped) continue;
    const Verdict& verdict = record->verdict;
    ++runs;
    if (verdict.kind != CaseVerdict::kFinding && verdict.kind != CaseVerdict::kUnclassified) continue;
    ++result.failures;
    ++result.named[verdict.mode];
    if (verdict.mode == kernel.expects) continue;
    result.confused.push_back(
        {kernel.name, kernel.expects, verdict.mode,
         std::find(verdict.rivals.begin(), verdict.rivals.end(), kernel.expects) != verdict.rivals.end(),
         record->case_line, verdict.evidence});
  }
  return result;
}

}  // namespace

Confusion confusion(const std::vector<KernelIdentity>& faulty, const ConfusionOptions& options,
                    const OpenRunner& open) {
  std::vector<KernelIdentity> kernels;
  for (const KernelIdentity& kernel : faulty)
    if (!kernel.expects.empty()) kernels.push_back(kernel);
  const std::vector<Case> all_witnesses = witnesses();
  std::vector<OfKernel> found(kernels.size());
  Confusion all;
  all.left_out = in_parallel(kernels.size(), options.jobs, open, options.deadline, [&](std::size_t i, Runner& runner) {
    found[i] = draw_failures(kernels[i], all_witnesses, options, runner);
  });
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    for (const auto& [mode, count] : found[i].named) all.named[kernels[i].expects][mode] += count;
    all.failures += found[i].failures;
    if (found[i].failures < options.failures) all.quiet[kernels[i].name] = found[i].failures;
    all.first += found[i].failures - static_cast<int>(found[i].confused.size());
    for (Confused& confused : found[i].confused) {
      all.rival += confused.rival;
      all.unclassified += confused.named.empty();
      all.confused.push_back(std::move(confused));
    }
  }
  return all;
}

}  // namespace assay

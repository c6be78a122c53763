// Modes of weights and precision on cases drawn at run time from a fixed generator, none of them a witness: the planted
// mode is named first nearly always, and correct kernels are clean on the same cases.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "failure_catalog/mode.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "kernels/kernel.h"
#include "kernels/worker.h"

namespace assay {
namespace {

const std::set<std::string> kModes{"logit_scale", "value_scale",           "logit_transform",     "merge_weight",
                                   "state_frame", "numerator_denominator", "narrow_accumulation", "function_error"};

/// splitmix64.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  std::int64_t among(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  std::string one_of(const std::vector<std::string>& all) { return all[bits() % all.size()]; }
  std::string seed() { return std::to_string(among(1, 1'000'000)); }

 private:
  std::uint64_t state_;
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// A case that the fault can show in: shapes, seeds and options are drawn, the option it needs is there.
std::string attention_line(Draw& draw, const std::string& mutant, const std::string& base, Format input) {
  const std::string format(info(input).name);
  const bool narrow = bytes_per_element(input) == 1, paged = base.starts_with("paged"), split = has(base, "split");
  const std::int64_t group = draw.among(1, 3), hkv = draw.among(1, 3), sq = draw.among(2, 24);
  std::int64_t skv = draw.among(130, 700);
  if (split && skv < 300) skv += 300;
  const std::string d = draw.one_of(narrow ? std::vector<std::string>{"32", "64", "96"}
                                           : std::vector<std::string>{"24", "40", "64", "72", "128"});
  std::string line =
      fmt::format("attention hq={} hkv={} sq={} skv={} d={} dtype={}", group * hkv, hkv, sq, skv, d, format);
  if (has(mutant, "scale_of_padded")) line.replace(line.find(" d=") + 3, d.size(), draw.one_of({"24", "40", "72"}));
  if (has(mutant, "descale") || has(mutant, "cast_before")) line += " descale=head";
  if (has(mutant, "softcap") || has(mutant, "tanh")) line += " softcap=" + draw.one_of({"1.5", "2", "4"});
  if (has(mutant, "after_mask"))
    line += " mask=causal";
  else if (has(mutant, "mask_scaled"))
    line += " mask=additive mask.data=bias(" + draw.one_of({"1", "2"}) + ")@" + draw.seed();
  else
    line += draw.one_of({"", "", " mask=causal", " window=200,20", " mask=bool mask.data=keep(0.7)@" + draw.seed()});
  if (has(mutant, "slopes"))
    line = "attention hq=6 hkv=3" + line.substr(line.find(" sq=")) +
           " alibi=" + draw.one_of({"distance", "key", "last"}) + " slopes.data=slopes(1)";
  else if (has(mutant, "alibi"))
    line += " alibi=" + draw.one_of({"distance", "diagonal", "last"});
  if (has(mutant, "sink")) line += " sink=" + draw.one_of({"in_lse", "out_of_lse"});
  if (has(mutant, "constant")) line += " scale=" + draw.one_of({"0.3", "0.05", "1"});
  if (has(mutant, "lse_not_stored"))
    line += " lse=none";
  else if (draw.among(0, 3) == 0)
    line += " lse=2";
  if (has(mutant, "empty_part")) {
    line = fmt::format("attention b=3 hq=2 sq=2 skv=900 batch=padded q_lens=2,1,2 kv_lens={},{},{}",
                       draw.among(500, 900), draw.among(1, 100), draw.among(1, 400));
  }
  if (base.starts_with("cascade")) line += fmt::format(" prefix={}", draw.among(20, 120));
  if (base == "paged_vllm_bf16" || base == "paged_split_bf16") line += " kv=vllm page=16 page_seed=" + draw.seed();
  if (base == "paged_flashinfer_bf16") line += " kv=nhd page=16 page_seed=" + draw.seed();
  const std::string spread = narrow ? draw.one_of({"1", "2"}) : draw.one_of({"1", "1", "2"});
  std::string keys = "normal";
  if (has(mutant, "tile_maximum"))
    return line + " q=probe@1 k=falling(" + draw.one_of({"95", "120"}) + ",64)@" + draw.seed() + " v=normal@" +
           draw.seed();
  (void)paged;
  return line + " q=normal(" + spread + ")@" + draw.seed() + " k=" + keys + "@" + draw.seed() + " v=normal" +
         (narrow && has(mutant, "promotion") ? "(1,2)" : "") + "@" + draw.seed();
}

std::string line_of(Draw& draw, const std::string& mutant, const Kernel& base) {
  const std::string format(info(base.formats[0]).name);
  if (base.op == "softmax")
    return fmt::format("softmax rows={} n={} dtype={} lse={} scale={} x=normal({})@{}", draw.among(2, 12),
                       draw.among(150, 1500), format, draw.one_of({"e", "2"}), draw.one_of({"1", "0.7"}),
                       draw.one_of({"1", "3"}), draw.seed());
  if (base.op == "merge")
    return fmt::format(
        "merge parts={} rows={} dv={} dtype={} out={} base={} o_parts=normal@{} lse_parts=normal({},{})@{}",
        draw.among(3, 9), draw.among(4, 20), draw.one_of({"16", "64"}), format, draw.one_of({"bf16", format}),
        draw.one_of({"e", "2"}), draw.seed(), draw.one_of({"0.3", "2"}), draw.one_of({"0", "6"}), draw.seed());
  return attention_line(draw, mutant, std::string(base.name), base.formats[0]);
}

std::string name_of(const Record& record) {
  if (record.verdict.kind == CaseVerdict::kFinding) return record.verdict.mode;
  if (record.verdict.kind == CaseVerdict::kUnclassified) return "unclassified";
  return {};
}

/// ASSAY_DRAWS: cases per mutant. ASSAY_MUTANT: only those whose name holds it.
struct Settings {
  int draws = 1;
  std::string only;
  Settings() {
    if (const char* text = std::getenv("ASSAY_DRAWS")) draws = std::atoi(text);
    if (const char* text = std::getenv("ASSAY_MUTANT")) only = text;
  }
};

TEST(WeightModes, NameThePlantedFaultFirstOnFreshCases) {
  const Settings settings;
  const std::unique_ptr<Runner> runner =
      worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}, .deadline = std::chrono::minutes(2)});
  const std::unique_ptr<Runner> correct = in_process_runner();
  std::map<std::pair<std::string, std::string>, int> confusion;
  int failing = 0, named = 0;
  for (const KernelIdentity& mutant : runner->kernels()) {
    if (!kModes.contains(mutant.expects) || mutant.device) continue;
    if (!has(mutant.name, settings.only)) continue;
    const Kernel* base = nullptr;
    for (const Kernel* kernel : all_kernels())
      if (mutant.name.starts_with(std::string(kernel->name) + "_") &&
          (base == nullptr || kernel->name.size() > base->name.size()))
        base = kernel;
    ASSERT_NE(base, nullptr) << mutant.name;
    std::uint64_t seed = 77;
    for (const char c : mutant.name) seed = seed * 131 + static_cast<unsigned char>(c);
    Draw draw(seed);
    int seen = 0;
    for (int n = 0; n < 6 * settings.draws && seen < settings.draws; ++n) {
      const Case c = parse_case(line_of(draw, mutant.name, *base));
      const Record record = run_case(c, mutant.name, *runner);
      const std::string name = name_of(record);
      if (name.empty()) {
        if (settings.draws > 2)
          std::printf("%s passes (%s%s): %s\n", mutant.name.c_str(),
                      std::string(verdict_name(record.verdict.kind)).c_str(), record.verdict.reason.c_str(),
                      record.case_line.c_str());
        continue;
      }
      ++failing, ++seen;
      ++confusion[{mutant.expects, name}];
      if (name == mutant.expects)
        ++named;
      else
        std::printf("%s is named %s on\n  %s\n  %s\n", mutant.name.c_str(), name.c_str(), record.case_line.c_str(),
                    record.verdict.evidence.c_str());
      if (n == 0) {
        const Record clean = run_case(c, std::string(base->name), *correct);
        EXPECT_EQ(clean.verdict.kind, CaseVerdict::kClean)
            << base->name << " on " << clean.case_line << clean.verdict.evidence;
        EXPECT_TRUE(clean.warnings.empty()) << base->name << " on " << clean.case_line << clean.warnings[0];
      }
    }
    EXPECT_GT(seen, 0) << mutant.name << " is never seen to fail";
  }
  for (const auto& [pair, count] : confusion)
    if (pair.first != pair.second) std::printf("%3d  %s named %s\n", count, pair.first.c_str(), pair.second.c_str());
  std::printf("%d of %d failing cases have the planted mode first\n", named, failing);
  EXPECT_GE(named, 0.95 * failing);
}

}  // namespace
}  // namespace assay

// Names of faults on drawn cases, and of ten faults in a kernel that shares nothing with ours.
#include "fuzz/confusion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "failure_catalog/mode.h"
#include "fuzz/pipeline.h"
#include "kernels/worker.h"
#include "plugin/runner.h"

namespace assay {
namespace {

std::unique_ptr<Runner> open_plugin() {
  return std::make_unique<PluginRunner>(std::string(ASSAY_PLUGINS) + "/faulty_attention_plugin.so",
                                        WorkerOptions{.command = {ASSAY_PROGRAM, "worker"}});
}

TEST(Confusion, NamesTenFaultsOfAnIndependentKernel) {
  std::vector<KernelIdentity> faulty;
  for (KernelIdentity& kernel : open_plugin()->kernels()) {
    kernel.expects = kernel.name.substr(std::string("own_").size());
    if (kernel.expects != "sound") faulty.push_back(kernel);
  }
  ASSERT_EQ(faulty.size(), 10U);
  const Confusion found = confusion(faulty, {.failures = 3, .tries = 300, .jobs = 2}, open_plugin);
  for (const KernelIdentity& kernel : faulty) {
    ASSERT_TRUE(found.named.contains(kernel.expects)) << kernel.name << " never fails";
    if (find_mode(kernel.expects) == nullptr) continue;  // the catalogue does not have it yet
    int all = 0, own = 0;
    for (const auto& [mode, count] : found.named.at(kernel.expects)) {
      all += count;
      own += mode == kernel.expects ? count : 0;
    }
    EXPECT_GT(2 * own, all) << kernel.name;
  }
  for (const Confused& one : found.confused)
    if (find_mode(one.planted) != nullptr)
      std::printf("%s: %s instead of %s: %s: %s\n", one.kernel.c_str(), one.named.c_str(), one.planted.c_str(),
                  one.case_line.c_str(), one.evidence.c_str());
}

// Every row of a causal mask loses the end of its own keys, not that of its sequence.
TEST(Confusion, NamesTheLostLastTileOfCausalRows) {
  const std::unique_ptr<Runner> runner = open_plugin();
  const Record record =
      run_case(parse_case("attention sq=90 skv=90 d=16 mask=causal dtype=fp32 q=normal@1 k=normal@2 v=normal@3"),
               "own_dropped_keys", *runner);
  EXPECT_EQ(record.verdict.mode, "dropped_keys") << record.verdict.evidence;
  EXPECT_TRUE(record.verdict.evidence.starts_with("the last tile of 32 keys that a row sees is missing"))
      << record.verdict.evidence;
}

TEST(Confusion, TheSoundKernelBehindThemNeverFails) {
  std::vector<KernelIdentity> sound;
  for (KernelIdentity& kernel : open_plugin()->kernels())
    if (kernel.name == "own_sound") sound.push_back(kernel);
  ASSERT_EQ(sound.size(), 1U);
  sound[0].expects = "nothing";
  const Confusion found = confusion(sound, {.failures = 1, .tries = 20}, open_plugin);
  EXPECT_EQ(found.failures, 0) << (found.confused.empty()
                                       ? ""
                                       : found.confused[0].case_line + ": " + found.confused[0].evidence);
  EXPECT_EQ(found.quiet.at("own_sound"), 0);
}

TEST(Confusion, CountsPlantedModesOfMutantsUnderBlankNames) {
  const OpenRunner open = [] { return worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}}); };
  std::vector<KernelIdentity> mutants;
  for (const KernelIdentity& kernel : open()->kernels())
    if (kernel.name == "fa2_bf16_nan_empty_extent" || kernel.name == "fa2_bf16_subnormal_flush")
      mutants.push_back(kernel);
  ASSERT_EQ(mutants.size(), 2U);
  const Confusion one = confusion(mutants, {.failures = 1, .seed = 5}, open),
                  again = confusion(mutants, {.failures = 1, .seed = 5, .jobs = 2}, open);
  EXPECT_EQ(one.failures, 2);
  EXPECT_EQ(one.named, again.named);
  EXPECT_EQ(one.first + static_cast<int>(one.confused.size()), one.failures);
  EXPECT_GE(one.named.at("nan_empty_extent").count("nan_empty_extent"), 1U);
}

}  // namespace
}  // namespace assay

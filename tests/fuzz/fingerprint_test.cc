// Fingerprints: correct kernels do what they declare, and mutants differ in the trait that their fault bends.
#include "fuzz/fingerprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kernels/worker.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::map<std::string, Trait> traits_of(const std::string& kernel, Runner& runner) {
  const std::vector<KernelIdentity> all = runner.kernels();
  const auto at = std::find_if(all.begin(), all.end(), [&](const KernelIdentity& k) { return k.name == kernel; });
  EXPECT_NE(at, all.end()) << kernel;
  std::map<std::string, Trait> traits;
  for (const Trait& trait : fingerprint(runner, *at)) traits[trait.name] = trait;
  return traits;
}

TEST(Fingerprint, OfCorrectKernelsIsWhatTheyDeclare) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  for (const KernelIdentity& kernel : runner->kernels()) {
    if (kernel.op != "attention") continue;
    for (const auto& [name, trait] : traits_of(kernel.name, *runner)) {
      EXPECT_TRUE(trait.agrees) << kernel.name << ": " << name << " is " << trait.measured << ", not "
                                << trait.expected;
      EXPECT_FALSE(trait.measured.empty()) << kernel.name << " " << name;
    }
  }
}

TEST(Fingerprint, TellsKernelsApart) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  auto naive = traits_of("naive_bf16", *runner), tiles = traits_of("fa2_bf16", *runner);
  EXPECT_EQ(naive["P V"].measured, "one key at a time, first to last");
  EXPECT_EQ(tiles["P V"].measured, "blocks of 16 keys, first to last");
  EXPECT_EQ(tiles["P"].measured, "rounded to bf16");
  EXPECT_NE(naive["P"].measured, tiles["P"].measured);
  EXPECT_EQ(tiles["causal"].measured, "row 0 uses keys 0..4");
  EXPECT_EQ(tiles["causal from the top left"].measured, "row 0 uses keys 0..0");
  EXPECT_EQ(tiles["empty row"].measured, "o 0, LSE -inf");
  EXPECT_EQ(tiles["LSE base"].measured, "e");
  EXPECT_EQ(tiles["repeated runs"].measured, "same bits");
  for (const char* name : {"alone or in a batch", "one query or many", "one head or many"})
    EXPECT_EQ(tiles[name].measured, "same bits") << name;
}

TEST(Fingerprint, ShowsWhatAFaultBends) {
  const std::unique_ptr<Runner> runner = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}});
  EXPECT_EQ(traits_of("fa2_bf16_subnormal_flush", *runner)["subnormal V"].measured, "flushed to zero");
  EXPECT_FALSE(traits_of("fa2_bf16_mask_shifted_by_one", *runner)["causal"].agrees);
  EXPECT_FALSE(traits_of("fa2_bf16_nan_empty_extent", *runner)["empty row"].agrees);
  EXPECT_FALSE(traits_of("fa2_bf16_p_truncated", *runner)["P"].agrees);
}

TEST(Fingerprint, IsOfAttentionOnly) {
  const std::unique_ptr<Runner> runner = in_process_runner();
  for (const KernelIdentity& kernel : runner->kernels())
    if (kernel.op != "attention") {
      EXPECT_THROW(fingerprint(*runner, kernel), InputError);
    }
}

}  // namespace
}  // namespace assay

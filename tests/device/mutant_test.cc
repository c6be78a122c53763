// Faults planted in the device kernels: each changes the outputs of a case that it can touch, and of none that it
// cannot. Without a device the runs are skipped.
#include <gtest/gtest.h>

#include <string>

#include "cases/materialize.h"
#include "fuzz/pipeline.h"
#include "fuzz/repeat.h"
#include "kernels/worker.h"

namespace assay {
namespace {

struct Reach {
  std::string mutant, differs;
  std::string agrees;  ///< empty: nowhere
};

/// The kernel walks tiles from the last to the first: a maximum that falls from key to key rises on its way.
const std::vector<Reach>& reaches() {
  static const std::vector<Reach> all{
      {"scale_off", "sq=3 skv=300", "sq=3 skv=300 scale=0"},
      {"last_key_dropped", "sq=3 skv=2", "sq=3 skv=1"},
      {"mask_shifted", "sq=9 skv=9 mask=causal", "sq=9 skv=9"},
      {"ghost_key", "sq=3 skv=255", "sq=3 skv=256"},
      {"wrong_kv_head", "hq=4 hkv=2 sq=3 skv=20", "hq=2 hkv=2 sq=3 skv=20"},
      {"tail_tile_skipped", "sq=3 skv=300", "sq=3 skv=256"},
      {"false_max", "sq=4 skv=130 q=probe@1 k=logit_offset(-60000)@2 v=normal@3 scale=1", "sq=3 skv=300"},
      {"accumulator_not_rescaled", "sq=4 skv=300 q=probe@1 k=falling(4,64)@2 v=normal@3", "sq=3 skv=128"},
      {"sum_not_rescaled", "sq=4 skv=300 q=probe@1 k=falling(4,64)@2 v=normal@3", "sq=3 skv=128"},
      {"alpha_in_bf16", "sq=20 skv=1000", "sq=3 skv=128"},
      {"p_truncated", "sq=3 skv=300", "sq=3 skv=1"},
      {"sum_in_bf16", "sq=3 skv=1000", "sq=3 skv=1"},
      {"lse_base", "sq=3 skv=300", "sq=3 skv=300 lse=2"},
      {"unwritten_row", "sq=3 skv=300", "sq=1 skv=300"},
  };
  return all;
}

/// Empty outputs where the machine has no device.
std::vector<Tensor> outputs_of(Runner& runner, const std::string& kernel, const std::string& params) {
  const Problem problem = materialize(parse_case("attention " + params));
  const RunOutcome run = runner.run(kernel, problem.params, problem.inputs, problem.outputs);
  EXPECT_TRUE(run.status == RunStatus::kOk || run.status == RunStatus::kSkipped)
      << kernel << ' ' << params << ": " << run.reason;
  return run.outputs;
}

TEST(DeviceMutant, ChangesWhatItTouchesAndNothingElse) {
  const std::unique_ptr<Runner> runner = worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}});
  for (const Reach& reach : reaches()) {
    const std::string mutant = "fa2_cuda_bf16_" + reach.mutant;
    const std::vector<Tensor> sound = outputs_of(*runner, "fa2_cuda_bf16", reach.differs);
    if (sound.empty()) GTEST_SKIP() << "no device";
    EXPECT_TRUE(bit_difference(sound, outputs_of(*runner, mutant, reach.differs)).has_value()) << mutant;
    EXPECT_FALSE(
        bit_difference(outputs_of(*runner, "fa2_cuda_bf16", reach.agrees), outputs_of(*runner, mutant, reach.agrees))
            .has_value())
        << mutant << " on " << reach.agrees;
  }
}

TEST(DeviceMutant, EveryOneOfAttentionIsHere) {
  int listed = 0;
  for (const KernelIdentity& kernel : worker_runner({{ASSAY_MUTANTS_PROGRAM, "worker"}})->kernels())
    listed += kernel.mutant && kernel.device && kernel.op == "attention";
  EXPECT_EQ(listed, static_cast<int>(reaches().size()));
}

}  // namespace
}  // namespace assay

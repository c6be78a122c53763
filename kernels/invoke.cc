// One kernel call whose exceptions become an outcome.
#include "kernels/invoke.h"

#include <exception>

namespace assay {

RunOutcome invoke(const Kernel& kernel, const Params& params, std::span<const TensorView> inputs,
                  std::span<const OutputView> outputs) {
  RunOutcome outcome;
  try {
    if (const std::optional<std::string> reason = kernel.unsupported(params)) {
      outcome.status = RunStatus::kSkipped;
      outcome.reason = *reason;
      return outcome;
    }
    outcome.declared = kernel.declared(params);
    outcome.facts = kernel.run(Call{params, inputs, outputs});
  } catch (const std::exception& error) {
    outcome.status = RunStatus::kCrashed;
    outcome.reason = std::string("exception: ") + error.what();
  } catch (...) {
    outcome.status = RunStatus::kCrashed;
    outcome.reason = "exception of unknown type";
  }
  return outcome;
}

std::vector<KernelIdentity> linked_kernels() {
  std::vector<KernelIdentity> identities;
  for (const Kernel* kernel : all_kernels())
    identities.push_back({std::string(kernel->name), std::string(kernel->op), std::string(kernel->summary),
                          std::string(kernel->expects), kernel->mutant});
  return identities;
}

}  // namespace assay

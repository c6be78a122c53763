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

namespace {

KernelIdentity identity_of(const Kernel& kernel) {
  KernelIdentity identity{.name = std::string(kernel.name),
                          .op = std::string(kernel.op),
                          .summary = std::string(kernel.summary),
                          .expects = std::string(kernel.expects),
                          .mutant = kernel.mutant,
                          .dtypes = {}};
  for (const Format format : kernel.formats) identity.dtypes.emplace_back(info(format).name);
  return identity;
}

}  // namespace

std::vector<KernelIdentity> linked_kernels() {
  std::vector<KernelIdentity> identities;
  for (const Kernel* kernel : all_kernels()) identities.push_back(identity_of(*kernel));
  return identities;
}

}  // namespace assay

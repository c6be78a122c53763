// One kernel call whose exceptions become an outcome.
#include "kernels/invoke.h"

#include <exception>

#include "kernels/run_error.h"

namespace assay {

RunOutcome invoke(const Kernel& kernel, const Call& call) {
  RunOutcome outcome;
  try {
    if (const std::optional<std::string> reason = kernel.unsupported(call.params)) {
      outcome.status = RunStatus::kSkipped;
      outcome.reason = *reason;
      return outcome;
    }
    outcome.declared = kernel.declared(call.params);
    outcome.facts = kernel.run(call);
  } catch (const CannotRun& reason) {
    outcome.status = RunStatus::kSkipped;
    outcome.reason = reason.what();
  } catch (const InvariantsBroken& error) {
    outcome.broken = error.findings();
  } catch (const ProcessSpoiled& error) {
    outcome.status = RunStatus::kCrashed;
    outcome.reason = error.what();
    outcome.spoiled = true;
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
                          .device = kernel.device,
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

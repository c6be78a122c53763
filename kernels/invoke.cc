// One kernel call whose exceptions become an outcome.
#include "kernels/invoke.h"

#include <exception>

#include "kernels/launch_check.h"
#include "kernels/run_error.h"

namespace assay {
namespace {

template <class View>
void check_launch(std::span<const View> tensors) {
  for (const View& tensor : tensors)
    if (const auto fault = launch_fault(*tensor.layout, tensor.storage)) throw CannotRun("not launched: " + *fault);
}

}  // namespace

RunOutcome invoke(const Kernel& kernel, const Call& call) {
  Arithmetic declared;
  const auto run = [&](const Call& c) {
    if (const std::optional<std::string> reason = kernel.unsupported(c.params)) throw CannotRun(*reason);
    declared = kernel.declared(c.params);
    return kernel.run(c);
  };
  RunOutcome outcome = invoke(run, call);
  outcome.declared = declared;
  return outcome;
}

RunOutcome invoke(const std::function<RunFacts(const Call&)>& run, const Call& call) {
  RunOutcome outcome;
  try {
    check_launch(call.inputs);
    check_launch(call.outputs);
    outcome.facts = run(call);
  } catch (const CannotRun& reason) {
    outcome.status = RunStatus::kSkipped;
    outcome.reason = reason.what();
  } catch (const RunFailed& error) {
    outcome.status = RunStatus::kCrashed;
    outcome.reason = error.what();
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
                          .dtypes = {},
                          .plugin = {},
                          .base = std::string(kernel.base),
                          .fault = std::string(kernel.fault),
                          .report = std::string(kernel.report)};
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

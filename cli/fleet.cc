// Finds the worker programs and sends each run to the one that has the kernel.
#include "cli/fleet.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "kernels/worker.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::filesystem::path program(bool mutants) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  if (!mutants) return self;
  const char* named = std::getenv("ASSAY_MUTANTS");
  return named != nullptr ? named : (self.parent_path() / "assay_mutants").string();
}

class Fleet final : public Runner {
 public:
  explicit Fleet(std::chrono::milliseconds deadline) {
    own_ = worker_runner({.command = worker_command(false), .deadline = deadline});
    if (std::filesystem::exists(program(true)))
      mutants_ = worker_runner({.command = worker_command(true), .deadline = deadline});
  }

  std::vector<KernelIdentity> kernels() override {
    std::vector<KernelIdentity> all = own_->kernels();
    if (mutants_)
      for (KernelIdentity& identity : mutants_->kernels())
        if (identity.mutant) all.push_back(std::move(identity));
    return all;
  }

  DeviceInfo device() override { return own_->device(); }

  void set_fill(int fill) override {
    own_->set_fill(fill);
    if (mutants_) mutants_->set_fill(fill);
  }

  void restart() override {
    own_->restart();
    if (mutants_) mutants_->restart();
  }

  RunOutcome run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override {
    if (known_.empty()) known_ = kernels();
    const auto at = std::find_if(known_.begin(), known_.end(), [&](const auto& k) { return k.name == kernel; });
    if (at == known_.end()) throw InputError("kernel " + std::string(kernel) + ": there is none of that name");
    return (at->mutant ? *mutants_ : *own_).run(kernel, params, inputs, outputs);
  }

 private:
  std::unique_ptr<Runner> own_, mutants_;
  std::vector<KernelIdentity> known_;
};

}  // namespace

std::vector<std::string> worker_command(bool mutants) {
  const std::filesystem::path path = program(mutants);
  if (!std::filesystem::exists(path)) throw EnvironmentError("there is no mutant program " + path.string());
  return {path.string(), "worker"};
}

std::unique_ptr<Runner> open_fleet(std::chrono::milliseconds deadline) { return std::make_unique<Fleet>(deadline); }

std::vector<KernelIdentity> choose_kernels(Runner& fleet, const std::vector<std::string>& names) {
  const std::vector<KernelIdentity> all = fleet.kernels();
  std::vector<KernelIdentity> chosen;
  for (const std::string& name : names) {
    bool found = false;
    for (const KernelIdentity& kernel : all) {
      const bool wanted = name == "correct" ? !kernel.mutant : name == "mutants" ? kernel.mutant : kernel.name == name;
      if (!wanted) continue;
      found = true;
      const bool known =
          std::any_of(chosen.begin(), chosen.end(), [&](const auto& k) { return k.name == kernel.name; });
      if (!known) chosen.push_back(kernel);
    }
    if (!found) throw InputError("kernel '" + name + "' is unknown; `assay list kernels` shows them");
  }
  return chosen;
}

}  // namespace assay

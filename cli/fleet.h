// Fleet: the workers behind one command: the program's own kernels, the mutants of the program beside it, and plug-ins.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "kernels/runner.h"
#include "plugin/runner.h"

namespace assay {

/// A plug-in that ended, or hung, before it said which kernels it has.
struct LostPlugin {
  std::string file;
  PluginGone how;
};

class Fleet final : public Runner {
 public:
  Fleet(std::chrono::milliseconds deadline, const std::vector<std::string>& plugins);

  /// Throws InputError for a plug-in that is none, whose manifest is wrong, or whose kernel has the name of another.
  std::vector<KernelIdentity> kernels() override;
  std::string op_of(std::string_view kernel) override;
  RunOutcome run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override;
  DeviceInfo device() override;
  void set_fill(int fill) override;
  void restart() override;
  /// What became of the plug-ins that `kernels` had nothing from.
  const std::vector<LostPlugin>& lost() const { return lost_; }
  /// The manifest's word on a plug-in's kernel, or null for any other name.
  const PluginKernel* plugin_kernel(std::string_view name);

 private:
  void meet();

  std::unique_ptr<Runner> own_, mutants_;
  std::vector<std::unique_ptr<PluginRunner>> plugins_;
  std::vector<KernelIdentity> known_;
  std::vector<LostPlugin> lost_;
};

/// argv of the worker program of this program's own kernels, or of the mutants. Throws EnvironmentError if there is no
/// mutant program.
std::vector<std::string> worker_command(bool mutants);

/// Kernels of this program in a worker of its own; if the mutant program stands beside it, its mutants in another;
/// every plug-in in one more. Environment variable ASSAY_MUTANTS names another mutant program.
std::unique_ptr<Fleet> open_fleet(std::chrono::milliseconds deadline, const std::vector<std::string>& plugins = {});

/// Resolves names on the command line: kernel names, `correct` (all kernels of the program that are no mutants),
/// `mutants`, `plugins` (all kernels of plug-ins). Throws InputError for a name that no worker has, unless a plug-in is
/// lost that may have had it.
std::vector<KernelIdentity> choose_kernels(Fleet& fleet, const std::vector<std::string>& names);

/// One kernel by name. Throws InputError if no worker has it, PluginGone if a lost plug-in may have had it.
KernelIdentity kernel_named(Fleet& fleet, const std::string& name);

/// The arithmetic that a kernel declares for a case, without running it. `option` stands in errors: "--kernel". Throws
/// InputError if there is no such kernel, or if it does not take the case.
Arithmetic declared_by(const std::string& kernel, const std::vector<std::string>& plugins, const std::string& op,
                       const Params& params, const std::string& option);

/// `--plugin FILE`, repeatable.
void add_plugin_option(Verb& verb, std::vector<std::string>& plugins);

/// The command that repeats a record of a plug-in's kernel; empty for the program's own, whose command the views know.
std::string plugin_repro(const KernelIdentity& kernel, const std::string& case_line);

}  // namespace assay

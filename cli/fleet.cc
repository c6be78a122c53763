// Finds the worker programs and sends each run to the one that has the kernel.
#include "cli/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "kernels/kernel.h"
#include "kernels/worker.h"
#include "oracle/error.h"
#include "oracle/op.h"
#include "reports/view.h"

namespace assay {
namespace {

std::filesystem::path program(bool mutants) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  if (!mutants) return self;
  const char* named = std::getenv("ASSAY_MUTANTS");
  return named != nullptr ? named : (self.parent_path() / "assay_mutants").string();
}

}  // namespace

std::vector<std::string> worker_command(bool mutants) {
  const std::filesystem::path path = program(mutants);
  if (!std::filesystem::exists(path)) throw EnvironmentError("there is no mutant program " + path.string());
  return {path.string(), "worker"};
}

Fleet::Fleet(std::chrono::milliseconds deadline, const std::vector<std::string>& plugins) {
  const WorkerOptions own{.command = worker_command(false), .deadline = deadline};
  own_ = worker_runner(own);
  if (std::filesystem::exists(program(true)))
    mutants_ = worker_runner({.command = worker_command(true), .deadline = deadline});
  for (const std::string& file : plugins) plugins_.push_back(std::make_unique<PluginRunner>(file, own));
}

void Fleet::meet() {
  if (!known_.empty()) return;
  std::vector<KernelIdentity> all = own_->kernels();
  if (mutants_)
    for (KernelIdentity& identity : mutants_->kernels())
      if (identity.mutant) all.push_back(std::move(identity));
  lost_.clear();
  for (const auto& plugin : plugins_) {
    try {
      for (KernelIdentity& identity : plugin->kernels()) {
        const auto same = std::find_if(all.begin(), all.end(), [&](const auto& k) { return k.name == identity.name; });
        if (same != all.end())
          throw InputError(fmt::format("{}: manifest: the kernel name {} is taken by {}", plugin->file(), identity.name,
                                       same->plugin.empty() ? "a kernel of assay" : same->plugin));
        all.push_back(std::move(identity));
      }
    } catch (const PluginGone& how) {
      lost_.push_back({plugin->file(), how});
    }
  }
  known_ = std::move(all);
}

std::vector<KernelIdentity> Fleet::kernels() {
  meet();
  return known_;
}

std::string Fleet::op_of(std::string_view kernel) {
  meet();
  const auto at = std::find_if(known_.begin(), known_.end(), [&](const auto& k) { return k.name == kernel; });
  return at == known_.end() ? std::string() : at->op;
}

RunOutcome Fleet::run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                      const std::vector<TensorLayout>& outputs) {
  meet();
  const auto at = std::find_if(known_.begin(), known_.end(), [&](const auto& k) { return k.name == kernel; });
  if (at == known_.end()) throw InputError("kernel " + std::string(kernel) + ": there is none of that name");
  for (const auto& plugin : plugins_)
    if (plugin->file() == at->plugin) return plugin->run(kernel, params, inputs, outputs);
  return (at->mutant ? *mutants_ : *own_).run(kernel, params, inputs, outputs);
}

DeviceInfo Fleet::device() { return own_->device(); }

void Fleet::set_fill(int fill) {
  own_->set_fill(fill);
  if (mutants_) mutants_->set_fill(fill);
  for (const auto& plugin : plugins_) plugin->set_fill(fill);
}

void Fleet::restart() {
  own_->restart();
  if (mutants_) mutants_->restart();
  for (const auto& plugin : plugins_) plugin->restart();
}

const PluginKernel* Fleet::plugin_kernel(std::string_view name) {
  meet();
  for (const auto& plugin : plugins_)
    if (const PluginKernel* kernel = plugin->find(name)) return kernel;
  return nullptr;
}

std::unique_ptr<Fleet> open_fleet(std::chrono::milliseconds deadline, const std::vector<std::string>& plugins) {
  return std::make_unique<Fleet>(deadline, plugins);
}

std::vector<KernelIdentity> choose_kernels(Fleet& fleet, const std::vector<std::string>& names) {
  const std::vector<KernelIdentity> all = fleet.kernels();
  std::vector<KernelIdentity> chosen;
  for (const std::string& name : names) {
    bool found = false;
    for (const KernelIdentity& kernel : all) {
      const bool own = kernel.plugin.empty();
      const bool wanted = name == "correct"   ? own && !kernel.mutant
                          : name == "mutants" ? kernel.mutant
                          : name == "plugins" ? !own
                                              : kernel.name == name;
      if (!wanted) continue;
      found = true;
      const bool known =
          std::any_of(chosen.begin(), chosen.end(), [&](const auto& k) { return k.name == kernel.name; });
      if (!known) chosen.push_back(kernel);
    }
    if (!found && fleet.lost().empty())
      throw InputError("kernel '" + name + "' is unknown; `assay list kernels` shows them");
  }
  return chosen;
}

KernelIdentity kernel_named(Fleet& fleet, const std::string& name) {
  const std::vector<KernelIdentity> chosen = choose_kernels(fleet, {name});
  if (chosen.empty()) throw fleet.lost().front().how;
  return chosen.front();
}

Arithmetic declared_by(const std::string& kernel, const std::vector<std::string>& plugins, const std::string& op,
                       const Params& params, const std::string& option) {
  const auto refuse = [&](const std::string& why) { throw InputError(option + " " + kernel + ": " + why); };
  if (!plugins.empty()) {
    const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(60), plugins);
    const KernelIdentity chosen = kernel_named(*fleet, kernel);
    if (const PluginKernel* own = fleet->plugin_kernel(kernel)) {
      if (chosen.op != op) refuse("computes " + chosen.op + ", not " + op);
      if (const auto reason = own->refuses(params)) refuse(*reason);
      return own->arithmetic;
    }
  }
  const Kernel* linked = find_kernel(kernel);
  if (linked == nullptr || linked->op != op) refuse("there is no kernel of that name for op " + op);
  const Format format = op_named(op).input_format(params);
  if (!linked->formats.empty() &&
      std::find(linked->formats.begin(), linked->formats.end(), format) == linked->formats.end())
    refuse(fmt::format("it does not take {}", info(format).name));
  if (const auto reason = linked->unsupported(params)) refuse(*reason);
  return linked->declared(params);
}

void add_plugin_option(Verb& verb, std::vector<std::string>& plugins) {
  verb.option("--plugin", plugins, "shared object with kernels of your own (repeatable; include/assay_plugin.h)")
      .one_each();
}

std::string plugin_repro(const KernelIdentity& kernel, const std::string& case_line) {
  if (kernel.plugin.empty()) return {};
  return fmt::format("assay repro {} --kernel {} --plugin {}", shell_quoted(case_line), kernel.name,
                     shell_quoted(kernel.plugin));
}

}  // namespace assay

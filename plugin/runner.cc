// Running a plug-in's kernels: the manifest decides what is asked of the worker, and what the answer is judged by.
#include "plugin/runner.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "oracle/error.h"

namespace assay {

PluginRunner::PluginRunner(const std::string& file, WorkerOptions worker)
    : file_(std::filesystem::absolute(file).lexically_normal().string()) {
  if (!std::filesystem::is_regular_file(file_)) throw InputError(file_ + ": there is no such plug-in file");
  worker.plugin = file_;
  worker.read_manifest = [this](const std::string& text) { return read(text); };
  worker_ = worker_runner(std::move(worker));
}

std::vector<KernelIdentity> PluginRunner::read(const std::string& manifest) {
  if (kernels_.empty()) {
    kernels_ = read_manifest(manifest, file_);
    manifest_ = manifest;
  }
  if (manifest != manifest_) throw std::runtime_error("the plug-in has another manifest than before");
  std::vector<KernelIdentity> identities;
  for (const PluginKernel& kernel : kernels_) identities.push_back(kernel.identity);
  return identities;
}

std::vector<KernelIdentity> PluginRunner::kernels() {
  if (kernels_.empty()) return worker_->kernels();
  return read(manifest_);
}

const PluginKernel* PluginRunner::find(std::string_view name) const {
  const auto at =
      std::find_if(kernels_.begin(), kernels_.end(), [&](const PluginKernel& k) { return k.identity.name == name; });
  return at == kernels_.end() ? nullptr : &*at;
}

RunOutcome PluginRunner::run(std::string_view name, const Params& params, const std::vector<Tensor>& inputs,
                             const std::vector<TensorLayout>& outputs) {
  if (kernels_.empty()) kernels();
  const PluginKernel* kernel = find(name);
  if (kernel == nullptr) throw InputError(file_ + ": there is no kernel " + std::string(name));
  std::optional<std::string> reason = kernel->refuses(params);
  if (!reason) reason = kernel->refuses(inputs, outputs);
  RunOutcome outcome;
  if (reason) {
    outcome.status = RunStatus::kSkipped;
    outcome.reason = *reason;
    return outcome;
  }
  try {
    outcome = worker_->run(name, kernel->complete(params), inputs, outputs);
  } catch (const InputError& error) {  // its worker had to be started again, and now the file is no plug-in
    outcome.status = RunStatus::kCrashed;
    outcome.reason = error.what();
  }
  outcome.declared = kernel->arithmetic;
  return outcome;
}

}  // namespace assay

// PluginRunner: the kernels of one shared object, which is loaded in a worker process and never in this one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/runner.h"
#include "kernels/worker.h"
#include "plugin/manifest.h"

namespace assay {

class PluginRunner final : public Runner {
 public:
  /// `worker`: the program that serves plug-ins, and the deadline of every call into one. Throws InputError if there is
  /// no such file.
  PluginRunner(const std::string& file, WorkerOptions worker);
  PluginRunner(const PluginRunner&) = delete;
  PluginRunner& operator=(const PluginRunner&) = delete;

  const std::string& file() const { return file_; }
  /// Asks the plug-in on first use. Throws InputError for a bad file or manifest, PluginGone if it crashes or hangs.
  std::vector<KernelIdentity> kernels() override;
  /// Null if the plug-in, which has been asked, has no kernel of that name.
  const PluginKernel* find(std::string_view name) const;
  /// Cases outside the manifest are skipped before they reach the worker.
  RunOutcome run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override;
  void set_fill(int fill) override { worker_->set_fill(fill); }
  void restart() override { worker_->restart(); }

 private:
  std::vector<KernelIdentity> read(const std::string& manifest);

  std::string file_, manifest_;
  std::vector<PluginKernel> kernels_;
  std::unique_ptr<Runner> worker_;
};

}  // namespace assay

// PluginHost: what a worker does with the one plug-in that it serves.
#pragma once

#include <optional>
#include <string>

#include "kernels/plugin/library.h"
#include "kernels/runner.h"

namespace assay {

class PluginHost {
 public:
  explicit PluginHost(std::string file) : file_(std::move(file)) {}

  /// Loads the shared object on first use; its manifest as text. Throws InputError for what is wrong with the file.
  const std::string& manifest(const PhaseNote& note);
  /// Runs a kernel of the manifest. As a kernel's own `run`, it throws for what goes wrong (kernels/run_error.h).
  RunFacts run(const std::string& kernel, const Call& call, const PhaseNote& note);

 private:
  bool on_device(const std::string& kernel) const;

  std::string file_;
  std::optional<PluginLibrary> library_;
  std::string manifest_;
};

}  // namespace assay

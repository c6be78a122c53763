// PluginCall: one call in the terms of the C interface: tensors, scalars, and prepare, run and release in this order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/plugin/library.h"

namespace assay {

/// An op's parameters as the plug-in reads them. `params` must outlive it.
class PluginScalars {
 public:
  explicit PluginScalars(const Params& params);
  const std::vector<assay_scalar>& all() const { return scalars_; }

 private:
  std::vector<std::vector<std::int64_t>> lists_;
  std::vector<assay_scalar> scalars_;
};

/// Where a plug-in's kernel finds its tensors.
struct PluginPlace {
  std::int32_t device = ASSAY_CPU;
  void* stream = nullptr;
};

/// The C form of a tensor whose element [0, ..., 0] lies at `data`. `layout` must outlive it.
assay_tensor plugin_tensor(const TensorLayout& layout, void* data, std::int32_t device);

/// prepare, run and release. Throws CannotRun where the plug-in says that it cannot, RunFailed for every other code;
/// release is called after every prepare that succeeded. Returns the variant that run names.
std::string call_plugin(const assay_plugin& table, const std::string& kernel, const Params& params,
                        const std::vector<assay_tensor>& inputs, const std::vector<assay_tensor>& outputs,
                        const PluginPlace& place, const PhaseNote& note);

}  // namespace assay

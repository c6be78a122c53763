// Manifest: what a plug-in says of its kernels, read and checked; include/assay_plugin.h has the form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/runner.h"
#include "oracle/arithmetic.h"
#include "plugin/limits.h"

namespace assay {

struct PluginKernel {
  KernelIdentity identity;
  std::vector<Limit> limits;   ///< and conventions
  std::int64_t alignment = 1;  ///< bytes
  Arithmetic arithmetic;
  int unknown_fields = 0;  ///< of the arithmetic

  /// Every parameter of the op with its value.
  Params complete(const Params& params) const;
  /// Why a case of its op is outside the manifest, or nothing. Knows no tensors.
  std::optional<std::string> refuses(const Params& params) const;
  /// Why one of the tensors is.
  std::optional<std::string> refuses(const std::vector<Tensor>& inputs, const std::vector<TensorLayout>& outputs) const;
};

/// Throws InputError "<file>: manifest...: expected ..., got ..." for whatever is wrong with it.
std::vector<PluginKernel> read_manifest(const std::string& text, const std::string& file);

}  // namespace assay

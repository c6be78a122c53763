// Serving a plug-in's kernels on tensors in host memory, or through device code.
#include "kernels/plugin/host.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "kernels/plugin/call.h"
#include "kernels/plugin/device_hook.h"
#include "kernels/run_error.h"

namespace assay {
namespace {

std::byte* first_element(const TensorLayout& layout, const std::byte* storage) {
  return const_cast<std::byte*>(storage) + layout.offset * bytes_per_element(layout.format);
}

template <class Views>
std::vector<assay_tensor> host_tensors(const Views& views) {
  std::vector<assay_tensor> tensors;
  for (const auto& view : views)
    tensors.push_back(plugin_tensor(*view.layout, first_element(*view.layout, view.storage), ASSAY_CPU));
  return tensors;
}

}  // namespace

const std::string& PluginHost::manifest(const PhaseNote& note) {
  if (!library_) {
    library_.emplace(file_, note);
    manifest_ = library_->manifest(note);
  }
  return manifest_;
}

RunFacts PluginHost::run(const std::string& kernel, const Call& call, const PhaseNote& note) {
  if (!library_) throw std::runtime_error("the plug-in has not been described");
  const auto launch = [&](const std::vector<assay_tensor>& inputs, const std::vector<assay_tensor>& outputs,
                          const PluginPlace& place) {
    return call_plugin(library_->table(), kernel, call.params, inputs, outputs, place, note);
  };
  RunFacts facts;
  if (on_device(kernel)) {
    if (device_plugin_run() == nullptr) throw CannotRun("this program is built without device code");
    note("upload");
    facts = device_plugin_run()(call, launch);
  } else {
    facts.variant = launch(host_tensors(call.inputs), host_tensors(call.outputs), {});
  }
  return facts;
}

/// The manifest has been read by whoever asks for the kernel; here it only says where the kernel wants its tensors.
bool PluginHost::on_device(const std::string& kernel) const {
  const nlohmann::json manifest = nlohmann::json::parse(manifest_, nullptr, false);
  if (!manifest.is_object() || !manifest.contains("kernels")) return false;
  for (const nlohmann::json& item : manifest["kernels"])
    if (item.is_object() && item.contains("name") && item["name"] == kernel)
      return item.contains("device") && item["device"] == "cuda";
  return false;
}

}  // namespace assay

// The in-process runner: kernels work on copies of the inputs and on guarded outputs.
#include "kernels/runner.h"

#include "kernels/guard.h"
#include "kernels/invoke.h"
#include "oracle/error.h"

namespace assay {
namespace {

class InProcessRunner final : public Runner {
 public:
  void set_fill(int fill) override { fill_ = fill; }
  std::vector<KernelIdentity> kernels() override { return linked_kernels(); }
  std::string op_of(std::string_view name) override {
    const Kernel* kernel = find_kernel(name);
    return kernel == nullptr ? std::string() : std::string(kernel->op);
  }

  RunOutcome run(std::string_view name, const Params& params, const std::vector<Tensor>& inputs,
                 const std::vector<TensorLayout>& outputs) override {
    const Kernel* kernel = find_kernel(name);
    if (kernel == nullptr) throw InputError("kernel " + std::string(name) + ": there is none of that name");

    // Copies of exactly the storage's size: a sanitizer sees a read beyond them, and writes cannot reach the original.
    std::vector<Tensor> copies = inputs;
    std::vector<TensorView> views;
    for (const Tensor& copy : copies) views.push_back(copy.view());
    std::vector<std::vector<std::byte>> zones;
    std::vector<OutputView> targets;
    for (const TensorLayout& layout : outputs) {
      zones.emplace_back(static_cast<std::size_t>(zone_bytes(layout)));
      fill_zone(zones.back(), layout);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) targets.push_back({&outputs[i], zones[i].data() + kGuardBytes});

    RunOutcome outcome = invoke(*kernel, {params, views, targets, fill_});
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (copies[i].bytes != inputs[i].bytes) outcome.broken.push_back("changed input " + inputs[i].layout.role);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!guards_intact(zones[i], outputs[i]) || !padding_intact(zones[i], outputs[i]))
        outcome.broken.push_back("wrote outside output " + outputs[i].role);
    if (outcome.status != RunStatus::kOk) return outcome;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::byte* storage = targets[i].storage;
      outcome.outputs.push_back({outputs[i], {storage, storage + outputs[i].storage_bytes()}});
    }
    return outcome;
  }

 private:
  int fill_ = 0;
};

}  // namespace

DeviceInfo Runner::device() { return device_info(); }

std::unique_ptr<Runner> in_process_runner() { return std::make_unique<InProcessRunner>(); }

std::string Runner::op_of(std::string_view kernel) {
  for (const KernelIdentity& identity : kernels())
    if (identity.name == kernel) return identity.op;
  return {};
}

void fill_canary(Tensor& output) {
  output.bytes.resize(static_cast<std::size_t>(output.layout.storage_bytes()));
  for (std::int64_t e = 0; e < output.layout.storage; ++e)
    store_code(output.bytes.data(), output.layout.format, e, canary_code(output.layout.format));
}

}  // namespace assay

// The registry of targets: the ops by themselves, and what the files beside this one register.
#include "fuzz/targets/target.h"

#include <algorithm>

#include "fuzz/targets/op_target.h"
#include "oracle/op.h"

namespace assay {
namespace {

std::vector<TargetInfo>& registered() {
  static std::vector<TargetInfo> targets;
  return targets;
}

}  // namespace

std::string Target::mutate(std::span<const std::uint8_t>, std::uint64_t) { return {}; }

RegisterTarget::RegisterTarget(TargetInfo target) { registered().push_back(std::move(target)); }

std::vector<TargetInfo> all_targets() {
  std::vector<TargetInfo> all;
  for (const Op* op : all_ops())
    all.push_back({std::string(op->name), "kernels of op " + std::string(op->name) + " on case lines", open_op_target});
  std::vector<TargetInfo> others = registered();
  std::sort(others.begin(), others.end(), [](const TargetInfo& a, const TargetInfo& b) { return a.name < b.name; });
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace assay

// Assignments: grouping kernels and dealing the groups to engines.
#include "fuzz/assignments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace assay {
namespace {

struct Group {
  Assignment common;
  std::size_t engines = 1;
  double load() const { return static_cast<double>(common.kernels.size()) / static_cast<double>(engines); }
};

}  // namespace

std::vector<Assignment> assignments(const std::vector<CampaignKernel>& kernels, unsigned jobs) {
  std::vector<Group> groups;
  for (const CampaignKernel& kernel : kernels) {
    const auto same = [&](const Group& group) {
      const Assignment& a = group.common;
      return a.op == kernel.op && a.plugin == kernel.plugin && a.device == kernel.device && a.mutant == kernel.mutant;
    };
    auto at = std::find_if(groups.begin(), groups.end(), same);
    if (at == groups.end())
      at = groups.insert(groups.end(), {{.label = {},
                                         .op = kernel.op,
                                         .kernels = {},
                                         .plugin = kernel.plugin,
                                         .device = kernel.device,
                                         .mutant = kernel.mutant}});
    at->common.kernels.push_back(kernel.name);
  }
  for (std::size_t engines = groups.size(); !groups.empty() && engines < jobs; ++engines)
    ++std::max_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
        return a.load() < b.load();
      })->engines;
  std::map<std::string, int> of_op, count;
  for (const Group& group : groups) count[group.common.op] += static_cast<int>(group.engines);
  std::vector<Assignment> out;
  for (const Group& group : groups) {
    const std::size_t parts = std::min(group.engines, group.common.kernels.size());
    for (std::size_t engine = 0; engine < group.engines; ++engine) {
      Assignment mine = group.common;
      mine.kernels.clear();
      for (std::size_t i = engine % parts; i < group.common.kernels.size(); i += parts)
        mine.kernels.push_back(group.common.kernels[i]);
      mine.label = fmt::format("{} {}/{}", mine.op, ++of_op[mine.op], count[mine.op]);
      out.push_back(std::move(mine));
    }
  }
  return out;
}

}  // namespace assay

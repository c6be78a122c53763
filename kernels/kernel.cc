// The kernel registry: filled by static objects, one per kernel.
#include "kernels/kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>

namespace assay {
namespace {

std::deque<Kernel>& registry() {  // a deque: pointers to its elements stay valid
  static std::deque<Kernel> kernels;
  return kernels;
}

Kernel* find(std::string_view name) {
  for (Kernel& kernel : registry())
    if (kernel.name == name) return &kernel;
  return nullptr;
}

[[noreturn]] void refuse(const char* what, std::string_view name) {
  std::fprintf(stderr, "%s %.*s\n", what, static_cast<int>(name.size()), name.data());
  std::abort();
}

/// The registry with every mutant completed from its base, which may have registered itself after it.
std::deque<Kernel>& completed_registry() {
  [[maybe_unused]] static const bool completed = [] {
    for (Kernel& kernel : registry()) {
      if (kernel.base.empty()) continue;
      const Kernel* base = find(kernel.base);
      if (base == nullptr) refuse("a mutant is based on the unknown kernel", kernel.base);
      kernel.op = base->op;
      kernel.formats = base->formats;
      kernel.device = base->device;
      kernel.unsupported = base->unsupported;
      kernel.declared = base->declared;
    }
    return true;
  }();
  return registry();
}

}  // namespace

RegisterKernel::RegisterKernel(const Kernel& kernel) {
  if (find(kernel.name) != nullptr) refuse("two kernels are named", kernel.name);
  registry().push_back(kernel);
}

std::vector<const Kernel*> all_kernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : completed_registry()) kernels.push_back(&kernel);
  std::sort(kernels.begin(), kernels.end(), [](const Kernel* a, const Kernel* b) { return a->name < b->name; });
  return kernels;
}

const Kernel* find_kernel(std::string_view name) {
  for (const Kernel& kernel : completed_registry())
    if (kernel.name == name) return &kernel;
  return nullptr;
}

}  // namespace assay

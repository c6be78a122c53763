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

}  // namespace

RegisterKernel::RegisterKernel(const Kernel& kernel) {
  if (find_kernel(kernel.name) != nullptr) {
    std::fprintf(stderr, "two kernels are named %.*s\n", static_cast<int>(kernel.name.size()), kernel.name.data());
    std::abort();
  }
  registry().push_back(kernel);
}

std::vector<const Kernel*> all_kernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : registry()) kernels.push_back(&kernel);
  std::sort(kernels.begin(), kernels.end(), [](const Kernel* a, const Kernel* b) { return a->name < b->name; });
  return kernels;
}

const Kernel* find_kernel(std::string_view name) {
  for (const Kernel& kernel : registry())
    if (kernel.name == name) return &kernel;
  return nullptr;
}

}  // namespace assay

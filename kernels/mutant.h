// A mutant: a kernel of the same program run under a planted fault, with the contract and declaration of the sound one.
#pragma once

#ifndef ASSAY_MUTANTS
#error "mutants exist only in the mutant program"
#endif

#include <algorithm>
#include <cstddef>

#include "kernels/fault.h"
#include "kernels/kernel.h"

namespace assay {

/// A kernel's name as a template argument.
template <std::size_t kSize>
struct KernelName {
  consteval KernelName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }
  char text[kSize];
};

/// The enumerator's name, from the signature of this very function ("... [with auto kFault = assay::Fault::kScaleOff]").
template <auto kFault>
consteval std::string_view fault_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("kFault = "));
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

/// `kBase` under `kFault`, of size `kMillionths` if it has one, with its op, formats, contract and declaration.
/// `expects` is the failure mode that must be reported, empty if the catalogue has none yet; `report` the public report
/// it is modelled on.
template <KernelName kBase, Fault kFault, int kMillionths = 0>
Kernel mutant_of(std::string_view name, std::string_view summary, std::string_view expects,
                 std::string_view report = {}) {
  return {.name = name,
          .op = {},
          .summary = summary,
          .formats = {},
          .mutant = true,
          .expects = expects,
          .base = kBase.text,
          .fault = fault_name<kFault>(),
          .report = report,
          .unsupported = nullptr,
          .declared = nullptr,
          .run = [](const Call& call) {
            const PlantFault fault({kFault, kMillionths});
            return find_kernel(kBase.text)->run(call);
          }};
}

}  // namespace assay

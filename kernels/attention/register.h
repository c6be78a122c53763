// One row of the kernel registry per input format of an attention kernel.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/attention/call.h"
#include "kernels/kernel.h"

namespace assay {

struct KernelText {
  std::string_view name;     ///< <idea>_<format>
  std::string_view summary;  ///< one sentence
};

/// `Idea` for inputs of one format. It has three static functions: `refuses(const AttentionParams&)`, a reason or
/// nothing; `declared(const AttentionParams&)`; `run(const AttentionCall&)`.
template <class Idea, Format kInput>
Kernel attention_kernel(const KernelText& text) {
  return {.name = text.name,
          .op = "attention",
          .summary = text.summary,
          .formats = {kInput},
          .unsupported = [](const Params& params) -> std::optional<std::string> {
            const AttentionParams p = attention_params(params);
            if (p.input != kInput) return "takes " + std::string(info(kInput).name) + " inputs only";
            return Idea::refuses(p);
          },
          .declared = [](const Params& params) { return Idea::declared(attention_params(params)); },
          .run = [](const Call& call) { return Idea::run(AttentionCall(call)); }};
}

}  // namespace assay

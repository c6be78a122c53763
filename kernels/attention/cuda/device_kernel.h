// One row of the kernel registry per input format of an attention kernel on the device.
#pragma once

#include <optional>
#include <string>

#include "kernels/attention/cuda/forward_call.h"
#include "kernels/attention/register.h"

namespace assay::cuda {

/// The idea's tag for a format.
struct Bf16;
struct Fp16;
struct Fp32;
template <class Element>
inline constexpr Format kFormat = Format::kFp32;
template <>
inline constexpr Format kFormat<Bf16> = Format::kBf16;
template <>
inline constexpr Format kFormat<Fp16> = Format::kFp16;

/// `Idea` has three static functions: `refuses(const AttentionParams&)`, a reason or nothing; `declared(const
/// AttentionParams&)`; and `launch<Element>(const ForwardParams&, DeviceCall&)`, which returns the variant.
template <class Idea, class Element>
Kernel device_kernel(const KernelText& text) {
  return {.name = text.name,
          .op = "attention",
          .summary = text.summary,
          .formats = {kFormat<Element>},
          .device = true,
          .unsupported = [](const Params& params) -> std::optional<std::string> {
            const AttentionParams p = attention_params(params);
            if (p.input != kFormat<Element>)
              return "takes " + std::string(info(kFormat<Element>).name) + " inputs only";
            return Idea::refuses(p);
          },
          .declared = [](const Params& params) { return Idea::declared(attention_params(params)); },
          .run =
              [](const Call& host) {
                DeviceCall call(host);
                std::string variant = Idea::template launch<Element>(forward_params(host, call), call);
                call.launched("the attention kernel");
                return call.finish(std::move(variant));
              }};
}

}  // namespace assay::cuda

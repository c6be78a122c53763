// The attention kernels by name, a case each of them takes, and what tells their outputs from the plain loop's.
#pragma once

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/runner.h"
#include "tests/kernels/plain_attention.h"

namespace assay {

inline const std::vector<std::string> kAttentionKernels{"naive_fp32",
                                                        "naive_bf16",
                                                        "naive_fp16",
                                                        "naive_e4m3",
                                                        "naive_e5m2",
                                                        "fa1_bf16",
                                                        "fa1_fp16",
                                                        "fa2_bf16",
                                                        "fa2_fp16",
                                                        "fa3_e4m3",
                                                        "fa3_e4m3_single",
                                                        "fa3_e5m2",
                                                        "fa4_bf16",
                                                        "fa4_fp16",
                                                        "split_bf16",
                                                        "paged_vllm_bf16",
                                                        "paged_flashinfer_bf16",
                                                        "paged_split_bf16",
                                                        "split_fp16",
                                                        "cascade_bf16"};

inline std::string dtype_of(const std::string& kernel) {
  return " dtype=" + std::string(info(find_kernel(kernel)->formats[0]).name);
}
/// What a case must say so that the kernel takes it.
inline std::string home_of(const std::string& kernel) {
  const std::string needs = kernel == "paged_vllm_bf16"         ? " kv=vllm page=16 page_seed=3"
                            : kernel == "paged_flashinfer_bf16" ? " kv=hnd page=8 page_seed=1"
                            : kernel == "paged_split_bf16"      ? " kv=vllm_x page=32"
                            : kernel == "cascade_bf16"          ? " prefix=1"
                                                                : "";
  return needs + dtype_of(kernel);
}

inline bool near(double value, double wanted, double tolerance) {
  if (std::isnan(wanted)) return std::isnan(value);
  if (std::isinf(wanted)) return value == wanted;
  return std::abs(value - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

/// How far a kernel may lie from the plain loop for logits of ordinary size: gross errors only, the oracle does the
/// rest.
struct Tolerance {
  double o, lse;
};
inline Tolerance tolerance_of(const std::string& kernel, const Scenario& s) {
  if (kernel.starts_with("fa3")) return s.p.input == Format::kE4m3 ? Tolerance{0.12, 2e-2} : Tolerance{0.25, 2e-2};
  const double o = s.p.output == Format::kBf16 || (s.p.input == Format::kBf16 && kernel.find("naive") != 0) ? 1.5e-2
                   : s.p.input == Format::kFp16                                                             ? 2e-3
                                                                                                            : 1e-5;
  return {o, kernel.starts_with("fa4") ? 1.2e-4 : 3e-5};
}

/// Rows that differ from the plain loop's, in words.
inline std::string differences(const Scenario& s, const std::vector<PlainRow>& rows, const std::vector<Tensor>& outputs,
                               Tolerance tolerance) {
  std::ostringstream text;
  std::size_t n = 0;
  for (std::int64_t b = 0; b < s.p.batch; ++b)
    for (std::int64_t h = 0; h < s.p.heads_q; ++h)
      for (std::int64_t i = 0; i < s.len(true, b); ++i) {
        const PlainRow& row = rows[n++];
        for (std::int64_t c = 0; c < s.p.dim_v; ++c) {
          const double o = outputs[0].view().value(s.at(outputs[0].layout, b, h, i, c));
          if (!near(o, row.o[static_cast<std::size_t>(c)], tolerance.o))
            text << "o[" << b << ',' << h << ',' << i << ',' << c << "] = " << o << " not "
                 << row.o[static_cast<std::size_t>(c)] << '\n';
        }
        if (s.p.lse == LseBase::kNone) continue;
        const double lse = outputs[1].view().value(s.at(outputs[1].layout, b, h, i, -1));
        if (!near(lse, row.lse, tolerance.lse))
          text << "lse[" << b << ',' << h << ',' << i << "] = " << lse << " not " << row.lse << '\n';
      }
  return text.str().substr(0, 600);
}

inline RunOutcome run(const std::string& kernel, const Scenario& s) {
  return in_process_runner()->run(kernel, s.params, s.inputs, s.outputs);
}

}  // namespace assay

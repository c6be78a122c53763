// M23: P is clipped, underflows or is rounded in the numerator and not in the sum, or the reverse.
#include <fmt/format.h>

#include "failure_catalog/deviations.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

std::vector<Supposition> hypotheses(const Scene& scene) {
  Deviations all(scene);
  if (all.attention() == nullptr) return {};
  const Arithmetic& a = all.structure();
  const FormatInfo& p = info(a.p_format);
  const bool rounds = a.p_format != Format::kFp32, narrow = p.storage_bits == 8;
  if (rounds) {
    const bool unrounded = a.row_sum_of == RowSumOf::kUnroundedP;
    all.add(Deviation{.p_truncated = true}, fmt::format("P is truncated to {}, not rounded, in P V", p.name));
    all.add(Deviation{.other_sum = true}, fmt::format("l adds {} P", unrounded ? "rounded" : "unrounded"));
    all.add(Deviation{.p_truncated = true, .other_sum = true},
            fmt::format("P is truncated to {}, and l adds {} P", p.name, unrounded ? "truncated" : "unrounded"));
  }
  for (const Format format : {Format::kBf16, Format::kFp16, Format::kE4m3, Format::kE5m2})
    if (info(format).fraction_bits < p.fraction_bits)
      all.add(Deviation{.p_format = format},
              fmt::format("P V takes P rounded to {} where {} is declared, and l does not", info(format).name, p.name));
  if (narrow && a.p_offset != 0)
    all.add(Deviation{.p_unit = exp2_64(-a.p_offset)},
            fmt::format("P is rounded to {} without its offset 2^{}: small weights vanish from P V and stay in l",
                        p.name, a.p_offset));
  if (narrow)
    for (const int more : {1, 2, 3, 4})
      all.add(Deviation{.p_unit = exp2_64(more)},
              fmt::format("P is rounded to {} at 2^{}: what exceeds {:g} is clipped in P V and not in l", p.name,
                          a.p_offset + more, p.max_finite));
  if (narrow && a.max_policy != MaxPolicy::kGlobal)
    for (const int lazy : {1, 2, 4, 8})
      all.add(Deviation{.lazy = lazy},
              fmt::format(
                  "the maximum is not raised by less than 2^{}: P up to 2^{} is clipped at {:g} in P V and not in l",
                  lazy, a.p_offset + lazy, p.max_finite),
              0.01 * lazy);
  return all.take();
}

const RegisterMode kRegister({.name = "numerator_denominator",
                              .id = "M23",
                              .title = "P differs between numerator and sum",
                              .hypotheses = hypotheses});

}  // namespace
}  // namespace assay

// Certified decimal digits of one element, for `assay repro`.
#include "oracle/ops/attention/layouts.h"
#include "oracle/ops/attention/reference.h"

namespace assay {

std::string attention_digits(const Problem& raw, std::size_t output, std::int64_t index, int count) {
  constexpr int kBits = 256;
  const AttentionProblem problem(raw);
  const std::int64_t per_row = output == 0 ? problem.params().dim_v : 1;
  const RowBalls row = resolved_row_balls(problem, problem.rows()[static_cast<std::size_t>(index / per_row)], kBits);
  if (output == 1) return (row.lse_classes & kNumber) ? row.lse.digits(count) : "";
  const auto channel = static_cast<std::size_t>(index % per_row);
  return (row.o_classes[channel] & kNumber) ? row.o[channel].digits(count) : "";
}

}  // namespace assay

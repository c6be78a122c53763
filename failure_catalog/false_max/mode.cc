// M07: all-zero rows from a false maximum: the running maximum starts above every true logit.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "failure_catalog/mode.h"

namespace assay {
namespace {

/// Signature: rejected rows are exactly zero in every channel although they have keys; the largest logit of every such row
/// lies below that of every row that came out right, so one threshold separates them; and the true output is not tiny, which
/// separates it from a flush.
std::optional<Diagnosis> detect(const Scene& scene) {
  const OutputMeasure& o = scene.measurement.outputs.front();
  const OutputTruth& truth = scene.evaluation.truth.outputs.front();
  const auto& facts = scene.evaluation.truth.rows;
  double highest_bad = -std::numeric_limits<double>::infinity(), lowest_good = std::numeric_limits<double>::infinity();
  std::int64_t bad = 0;
  std::size_t first = 0;
  for (std::size_t r = 0; r < o.rows.size(); ++r) {
    const RowMeasure& row = o.rows[r];
    if (row.rejected == 0) {
      if (facts[r].keys > 0 && std::isfinite(facts[r].max_logit)) lowest_good = std::min(lowest_good, facts[r].max_logit);
      continue;
    }
    if (row.zero != row.judged || facts[r].keys == 0) return std::nullopt;
    if (bad++ == 0) first = r;
    highest_bad = std::max(highest_bad, facts[r].max_logit);
  }
  if (bad == 0 || !(highest_bad < lowest_good) || highest_bad >= 0) return std::nullopt;
  const double normal = info(truth.layout.format).min_normal;
  double largest = 0;
  for (std::size_t i = 0; i < truth.mid.size(); ++i)
    if (o.rows[static_cast<std::size_t>(truth.row[i])].rejected > 0) largest = std::max(largest, std::abs(truth.mid[i]));
  if (largest < normal) return std::nullopt;
  std::string threshold = fmt::format("their largest logit is at most {:.6g}", highest_bad);
  if (std::isfinite(lowest_good)) threshold += fmt::format(", that of the right rows at least {:.6g}", lowest_good);
  return Diagnosis{0.9, fmt::format("{} rows with keys are exactly zero (first: b {} h {} q {}, true |o| up to {:.4g}); {}: "
                                    "the maximum starts between", bad, facts[first].batch, facts[first].head,
                                    facts[first].query, largest, threshold)};
}

const RegisterMode kRegister({.name = "false_max", .id = "M07", .title = "All-zero rows from a false maximum", .detect = detect});

}  // namespace
}  // namespace assay

// M07: a finite number where -inf belongs wins against every true logit: a maximum that starts at it, or masked keys
// filled with it.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>

#include "failure_catalog/row_extent.h"
#include "failure_catalog/second_run.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
/// Rows whose maximum lies this close above the sentinel have weights near the underflow: wrong in some other way.
constexpr double kEdge = 40;
constexpr std::array<double, 7> kFills{-1e4, -5e4, -65504, -1e5, -1e6, -1e9, -1e30};

struct ZeroRows {
  std::size_t count = 0, first = 0;
  double highest = -kInf;  ///< largest maximum among them
  double lowest_right = kInf;
  double largest_truth = 0;
  bool zero_sum = false;  ///< an LSE of -inf: no flush of o, or of values, has one
};

/// Rejected rows that are exactly zero although they have keys; nothing if other rows are wrong too, but for those at
/// the edge, or if no threshold of the largest logit separates them from the right ones.
std::optional<ZeroRows> zero_rows(const Scene& scene) {
  const OutputMeasure& o = scene.measurement.outputs.front();
  const OutputTruth& truth = scene.evaluation.truth.outputs.front();
  const auto& facts = scene.evaluation.truth.rows;
  ZeroRows zero;
  double highest_edge = -kInf;
  for (std::size_t r = 0; r < o.rows.size(); ++r) {
    if (!row_fails(scene.measurement, r)) {
      // Zeros within a wide tolerance say nothing of where the maximum starts.
      const bool zeros = o.rows[r].zero == o.rows[r].judged;
      if (facts[r].keys > 0 && std::isfinite(facts[r].max_logit) && !zeros)
        zero.lowest_right = std::min(zero.lowest_right, facts[r].max_logit);
      continue;
    }
    if (facts[r].keys == 0 || o.rows[r].canary > 0 || !std::isfinite(facts[r].max_logit)) return std::nullopt;
    if (o.rows[r].zero != o.rows[r].judged) {
      highest_edge = std::max(highest_edge, facts[r].max_logit);
      continue;
    }
    if (zero.count++ == 0) zero.first = r;
    zero.highest = std::max(zero.highest, facts[r].max_logit);
  }
  if (zero.count == 0 || highest_edge > zero.highest + kEdge) return std::nullopt;
  if (!(zero.highest < zero.lowest_right) || zero.highest >= 0) return std::nullopt;
  for (std::size_t i = 0; i < truth.mid.size(); ++i)
    if (o.rows[static_cast<std::size_t>(truth.row[i])].rejected > 0)
      zero.largest_truth = std::max(zero.largest_truth, std::abs(truth.mid[i]));
  for_each_rejected(scene, [&](std::size_t k, std::size_t, std::uint64_t code) {
    const TensorLayout& layout = scene.outputs[k].layout;
    zero.zero_sum = zero.zero_sum || (layout.role == "lse" && decode(layout.format, code) == -kInf);
  });
  if (!zero.zero_sum && zero.largest_truth < info(truth.layout.format).min_normal)
    return std::nullopt;  // a flush looks like that
  return zero;
}

/// With all logits small the zero rows must be right; with huge ones brought down to 1e7 they must not.
std::optional<bool> proven(const Scene& scene, const ZeroRows& zero) {
  constexpr double kHuge = 1e8, kLarge = 1e7;
  const double largest = std::abs(scene.evaluation.truth.rows[zero.first].max_logit);
  const auto fails_at = [&](double size) -> std::optional<bool> {
    const auto run = second_run(scene, with_logits_times(scene.problem, size / largest));
    if (!run) return std::nullopt;
    return row_fails(*run, zero.first);
  };
  const std::optional<bool> small = fails_at(1);
  if (!small || *small) return small ? std::optional<bool>(false) : std::nullopt;
  return largest < kHuge ? true : fails_at(kLarge);
}

std::optional<Diagnosis> detect_zero_rows(const Scene& scene) {
  const std::optional<ZeroRows> zero = zero_rows(scene);
  if (!zero) return std::nullopt;
  const std::optional<bool> proof = proven(scene, *zero);
  if (proof == false) return std::nullopt;
  std::string evidence = fmt::format(
      "{} rows with keys are exactly zero (first: {}, true |{}| up to {:.4g}); their largest "
      "logit is at most {:.6g}",
      zero->count, row_name(scene, zero->first), scene.outputs.front().layout.role, zero->largest_truth, zero->highest);
  if (std::isfinite(zero->lowest_right))
    evidence += fmt::format(", that of the right rows at least {:.6g}: the maximum starts between", zero->lowest_right);
  if (proof) evidence += "; with logits near -1 they are right";
  return Diagnosis{proof ? 0.976 : 0.9, evidence};
}

/// Softmax: masked elements have weight, and exactly in rows whose largest logit is low.
std::optional<Diagnosis> detect_filled_row(const Scene& scene) {
  if (scene.c.op != "softmax") return std::nullopt;
  const OutputTruth& y = scene.evaluation.truth.outputs.front();
  std::int64_t masked = 0, least = std::numeric_limits<std::int64_t>::max();
  double highest_bad = -kInf, lowest_right = kInf, weight = 0;
  const auto n =
      static_cast<std::size_t>(y.element.size() / std::max<std::size_t>(1, scene.evaluation.truth.rows.size()));
  for (std::size_t r = 0; r < scene.evaluation.truth.rows.size(); ++r) {
    const RowExtent extent = row_extent(scene, r);
    const bool has_masked = static_cast<std::int64_t>(extent.key.size()) < extent.length;
    const double largest = scene.evaluation.truth.rows[r].max_logit;
    if (extent.key.empty() || !has_masked) {
      if (row_fails(scene.measurement, r)) return std::nullopt;
      continue;
    }
    if (!row_fails(scene.measurement, r)) {
      lowest_right = std::min(lowest_right, largest);
      continue;
    }
    std::int64_t here = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double value = scene.outputs.front().view().value(y.element[r * n + j]);
      if ((y.classes[r * n + j] & kNumber) == 0 && value > 0) ++here, weight = std::max(weight, value);
    }
    masked += here, least = std::min(least, here);
    highest_bad = std::max(highest_bad, largest);
  }
  if (masked == 0 || least == 0 || !(highest_bad < lowest_right)) return std::nullopt;
  std::string evidence = fmt::format(
      "{} masked elements have weights up to {:.4g} in rows whose largest logit is at most "
      "{:.6g}",
      masked, weight, highest_bad);
  if (std::isfinite(lowest_right)) evidence += fmt::format(" (right rows: at least {:.6g})", lowest_right);
  return Diagnosis{0.975, evidence + ": they are filled with a finite number"};
}

/// Softmax with states: the running maximum itself shows the number that it cannot fall below, in every row that is
/// wrong.
std::optional<Diagnosis> detect_state(const Scene& scene) {
  std::set<std::int32_t> shown_in, wrong;
  bool same = true;
  double shown = 0, highest = -kInf;
  std::int64_t maxima = 0;
  for_each_rejected(scene, [&](std::size_t k, std::size_t i, std::uint64_t code) {
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    wrong.insert(truth.row[i]);
    if (truth.layout.role != "m") return;
    const double value = decode(truth.layout.format, code);
    same = same && (maxima++ == 0 || value == shown) && std::isfinite(value);
    shown = value;
    shown_in.insert(truth.row[i]);
    highest = std::max(highest, truth.classes[i] == kMinusInf ? -kInf : truth.mid[i]);
  });
  if (maxima == 0 || !same || shown_in != wrong || !(highest < shown)) return std::nullopt;
  return Diagnosis{0.978,
                   fmt::format("{} running maxima are {:.6g} where the true ones are at most {:.6g}: they cannot fall "
                               "below it",
                               maxima, shown, highest)};
}

/// Every wrong row has an LSE above the true one, and the same when all logits are twice as large.
std::optional<Diagnosis> detect_floor(const Scene& scene) {
  std::set<std::int32_t> shown_in, wrong;
  std::vector<std::pair<std::int64_t, double>> shown;  // element of the LSE, what it is
  std::size_t lse = 0;
  bool above = true;
  double highest = -kInf;
  for_each_rejected(scene, [&](std::size_t k, std::size_t i, std::uint64_t code) {
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    wrong.insert(truth.row[i]);
    if (truth.layout.role != "lse") return;
    const double value = decode(truth.layout.format, code), right = truth.mid[i];
    const bool number = truth.classes[i] == kNumber;  // a row without keys has a contract of its own (M09)
    above = above && number && std::isfinite(value) && value > right && right < 0;
    shown.emplace_back(truth.element[i], value);
    shown_in.insert(truth.row[i]);
    highest = std::max(highest, right);
    lse = k;
  });
  if (shown.empty() || !above || shown_in != wrong || scene.experiment == nullptr) return std::nullopt;
  const auto doubled = scene.experiment->run(with_logits_times(scene.problem, 2));
  if (!doubled || !std::all_of(shown.begin(), shown.end(),
                               [&](const auto& one) { return (*doubled)[lse].view().value(one.first) == one.second; }))
    return std::nullopt;
  return Diagnosis{0.982,
                   fmt::format("{} rows have an LSE of {:.6g} where the true one is at most {:.6g}, and the same "
                               "when all logits are doubled: it cannot fall below",
                               shown.size(), shown.front().second, highest)};
}

std::optional<Diagnosis> detect(const Scene& scene) {
  if (const std::optional<Diagnosis> state = detect_state(scene)) return state;
  if (const std::optional<Diagnosis> floor = detect_floor(scene)) return floor;
  if (const std::optional<Diagnosis> zero = detect_zero_rows(scene)) return zero;
  return detect_filled_row(scene);
}

/// Attention: masked keys take part with a finite logit.
std::vector<Supposition> hypotheses(const Scene& scene) {
  std::vector<Supposition> all;
  AttentionView* view = scene.attention();
  if (view == nullptr) return all;
  for (const double fill : kFills) {
    const auto predict = [view, fill](std::size_t r, double) -> std::optional<RowOutput> {
      const AttentionRow& row = view->row(r);
      const std::vector<std::int32_t> admissible = view->keys(r);
      std::vector<std::int32_t> keys(static_cast<std::size_t>(view->problem.kv_len(row.batch)));
      std::iota(keys.begin(), keys.end(), 0);
      if (admissible.empty() || admissible.size() == keys.size()) return std::nullopt;
      Hypothesis filled;
      filled.see_logit = [&](std::int32_t key, double x) {
        return std::binary_search(admissible.begin(), admissible.end(), key) ? x : fill;
      };
      return view->counterfactual.attend(row, keys, filled);
    };
    const auto evidence = [fill](const FitAt&) {
      return fmt::format("masked keys take part with the logit {:g}: they win where every true logit lies below", fill);
    };
    all.push_back({.predict = predict, .evidence = evidence, .cost = 1});
  }
  return all;
}

const RegisterMode kRegister({.name = "false_max",
                              .id = "M07",
                              .title = "A finite number where -inf belongs",
                              .detect = detect,
                              .hypotheses = hypotheses});

}  // namespace
}  // namespace assay

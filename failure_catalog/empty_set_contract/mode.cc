// M09: rows without an admissible key hold another value than the declared one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "failure_catalog/row_extent.h"
#include "failure_catalog/second_run.h"
#include "failure_catalog/suppose.h"

namespace assay {
namespace {

/// All elements of o, or y, of the row are close to these.
bool close(const Scene& scene, std::size_t row, const std::vector<double>& expected) {
  const OutputTruth& truth = scene.evaluation.truth.outputs.front();
  const std::size_t per_row = truth.element.size() / scene.evaluation.truth.rows.size();
  for (std::size_t c = 0; c < per_row; ++c) {
    const double value = scene.outputs.front().view().value(truth.element[row * per_row + c]);
    if (!(std::abs(value - expected[c]) <= 0.01 * std::abs(expected[c]) + 1e-6)) return false;
  }
  return true;
}

bool is_mean_of_values(const Scene& scene, std::size_t row) {
  AttentionView* view = scene.attention();
  if (view == nullptr) return false;
  const std::vector<std::int32_t> keys = stored_keys(*view, view->row(row));
  return !keys.empty() && close(scene, row, mean_of_values(*view, view->row(row), keys));
}

/// Some element of o is the format's largest number: a NaN that was clamped (M06).
bool clamped(const Scene& scene, std::size_t row) {
  const OutputTruth& truth = scene.evaluation.truth.outputs.front();
  const std::size_t per_row = truth.element.size() / scene.evaluation.truth.rows.size();
  const double largest = info(truth.layout.format).max_finite;
  for (std::size_t c = 0; c < per_row; ++c)
    if (std::abs(scene.outputs.front().view().value(truth.element[row * per_row + c])) == largest) return true;
  return false;
}

const std::string kNoContract = "something else";

/// What the row's first output is.
std::string value_of(const Scene& scene, std::size_t row) {
  const OutputMeasure& o = scene.measurement.outputs.front();
  if (o.rows[row].zero == o.rows[row].judged) return "zero";
  if (o.rows[row].nan == o.rows[row].judged) return "NaN";
  if (is_mean_of_values(scene, row)) return "the mean of V";
  const auto n = static_cast<std::size_t>(o.rows[row].judged);
  if (scene.c.op == "softmax" && close(scene, row, std::vector<double>(n, 1 / static_cast<double>(n)))) return "1 / n";
  return kNoContract;
}

std::optional<double> lse_of(const Scene& scene, std::size_t row) {
  for (std::size_t k = 0; k < scene.outputs.size(); ++k) {
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    if (truth.layout.role == "lse") return scene.outputs[k].view().value(truth.element[row]);
  }
  return std::nullopt;
}

/// Signature: everything that is rejected lies in rows without a key, and none of it is a NaN that nobody declared.
std::optional<Diagnosis> detect(const Scene& scene) {
  bool empty = true, nan = false;
  for_each_rejected(scene, [&](std::size_t k, std::size_t i, std::uint64_t code) {
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    const RowFacts& facts = scene.evaluation.truth.rows[static_cast<std::size_t>(truth.row[i])];
    empty = empty && !has_weights(facts);
    nan = nan || is_nan(truth.layout.format, code);
  });
  const std::vector<std::size_t> bad = failing_rows(scene.measurement);
  if (bad.empty() || !empty || nan || clamped(scene, bad[0])) return std::nullopt;
  const std::string value = value_of(scene, bad[0]);
  const std::optional<double> lse = lse_of(scene, bad[0]);
  Diagnosis found{
      value == kNoContract ? 0.9 : 0.98,
      fmt::format("convention: {} rows without an admissible key are wrong, and no others; {} is {}{}", bad.size(),
                  row_name(scene, bad[0]), value, lse ? fmt::format(", its LSE {:.6g}", *lse) : "")};
  // The number may stand for -inf in rows with keys too, where only logits below it would show it.
  if (lse && std::isfinite(*lse) && *lse < 0) found.rivals.emplace_back("false_max");
  return found;
}

const RegisterMode kRegister(
    {.name = "empty_set_contract", .id = "M09", .title = "Another value for rows without a key", .detect = detect});

}  // namespace
}  // namespace assay

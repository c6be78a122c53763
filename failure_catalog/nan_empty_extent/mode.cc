// M01: NaN from a row, tile, split or part without an admissible key: (-inf) - (-inf), 0 / 0 or (-inf) 0.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "failure_catalog/row_extent.h"
#include "failure_catalog/second_run.h"

namespace assay {
namespace {

/// A reason why rows are NaN, as a property of rows.
struct Reason {
  std::string what;
  std::function<bool(std::size_t row)> holds;
};

/// No weighted key in [first, end).
bool is_empty(const RowExtent& e, std::int64_t first, std::int64_t end) {
  for (const std::int32_t key : e.key)
    if (key >= first && key < end) return false;
  return true;
}

bool has_empty_tile(const RowExtent& e, std::int64_t tile) {
  std::vector<bool> hit(static_cast<std::size_t>((e.length + tile - 1) / tile), false);
  for (const std::int32_t key : e.key) hit[static_cast<std::size_t>(key / tile)] = true;
  for (const bool any : hit)
    if (!any) return true;
  return false;
}

double declared_scale(const Scene& scene) {
  const std::string* scale = scene.problem.params.find("scale");
  return scale == nullptr ? 1.0 : std::stod(*scale);
}

std::vector<Reason> reasons(const Scene& scene, const std::vector<RowExtent>& extents) {
  const auto& facts = scene.evaluation.truth.rows;
  std::vector<Reason> all;
  all.push_back({"rows without an admissible key", [&](std::size_t r) { return extents[r].key.empty(); }});
  if (scene.c.op != "merge" && declared_scale(scene) <= 0)
    all.push_back({"rows with masked keys, whose scores of -inf a scale of at most 0 makes NaN or +inf",
                   [&](std::size_t r) { return facts[r].keys < extents[r].length; }});
  if (scene.c.op == "attention" && declared_scale(scene) <= 0)
    for (const std::int64_t tile : {128, 64, 32, 16, 256, 8})
      all.push_back(
          {fmt::format(
               "rows of a length that is no multiple of {}, whose padding a scale of at most 0 makes NaN or +inf "
               "where it is filled with -inf before",
               tile),
           [&, tile](std::size_t r) { return extents[r].length % tile != 0; }});
  if (scene.c.op == "merge") {
    all.push_back({"rows whose first part is empty", [&](std::size_t r) { return is_empty(extents[r], 0, 1); }});
    all.push_back({"rows with an empty part", [&](std::size_t r) { return has_empty_tile(extents[r], 1); }});
    return all;
  }
  for (const std::int64_t tile : {128, 64, 32, 16, 256, 8})
    all.push_back({fmt::format("rows whose first key tile of {} is empty", tile),
                   [&, tile](std::size_t r) { return is_empty(extents[r], 0, tile); }});
  for (const std::int64_t tile : {128, 64, 32, 16, 256, 8})
    all.push_back({fmt::format("rows whose last key tile of {} is empty", tile), [&, tile](std::size_t r) {
                     return is_empty(extents[r], (extents[r].length - 1) / tile * tile, extents[r].length);
                   }});
  for (const std::int64_t tile : {128, 64, 32, 16, 256, 8})
    all.push_back({fmt::format("rows with a key tile of {} without an admissible key", tile),
                   [&, tile](std::size_t r) { return has_empty_tile(extents[r], tile); }});
  return all;
}

/// Whether every rejected element is NaN, o of such a row in all channels; the LSE beside it may be infinite too.
bool is_nan_by_rows(const Scene& scene) {
  bool fits = true, any = false;
  for_each_rejected(scene, [&](std::size_t k, std::size_t i, std::uint64_t code) {
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    const auto r = static_cast<std::size_t>(truth.row[i]);
    const RowMeasure& row = scene.measurement.outputs[k].rows[r];
    const RowMeasure& o = scene.measurement.outputs.front().rows[r];
    const bool nan = is_nan(truth.layout.format, code), whole = scene.c.op == "softmax" || row.nan == row.judged;
    const bool beside = k > 0 && o.rejected > 0 && o.nan == o.judged && is_infinite(truth.layout.format, code);
    fits = fits && row.canary == 0 && ((nan && whole) || beside);
    any = any || nan;
  });
  return fits && any;
}

/// Signature: NaN by rows, and the rows are those with an empty extent: exactly, or among them.
std::optional<Diagnosis> detect(const Scene& scene) {
  const std::vector<std::size_t> bad = failing_rows(scene.measurement);
  if (bad.empty() || !is_nan_by_rows(scene)) return std::nullopt;
  std::vector<RowExtent> extents;
  for (std::size_t r = 0; r < scene.evaluation.truth.rows.size(); ++r) extents.push_back(row_extent(scene, r));
  const Reason* partly = nullptr;
  const std::vector<Reason> all = reasons(scene, extents);
  for (const Reason& reason : all) {
    bool necessary = true, sufficient = true;
    for (std::size_t r = 0; r < extents.size(); ++r) {
      const bool holds = reason.holds(r);
      if (row_fails(scene.measurement, r))
        necessary = necessary && holds;
      else
        sufficient = sufficient && !holds;
    }
    if (!necessary) continue;
    if (sufficient)
      return Diagnosis{0.965, fmt::format("{} rows are NaN: exactly the {} (first: {})", bad.size(), reason.what,
                                          row_name(scene, bad[0]))};
    if (partly == nullptr) partly = &reason;
  }
  if (partly == nullptr) return std::nullopt;
  return Diagnosis{
      0.9, fmt::format("{} rows are NaN; all are {} (first: {})", bad.size(), partly->what, row_name(scene, bad[0]))};
}

const RegisterMode kRegister(
    {.name = "nan_empty_extent", .id = "M01", .title = "NaN from an empty extent", .detect = detect});

}  // namespace
}  // namespace assay

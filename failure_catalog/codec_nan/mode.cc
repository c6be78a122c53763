// M05: encoding makes NaN: a cast to a narrow format that is not clamped, or a scale taken from a group of zeros.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "failure_catalog/second_run.h"
#include "oracle/accept.h"

namespace assay {
namespace {

/// Judged elements of o that are NaN though they should not be, [row][channel], and whether anything else is rejected.
struct NanMap {
  std::size_t channels = 0;
  std::vector<bool> nan;
  bool others = false;  ///< elements that are no NaN and that T0 rejects
  bool in_lse = false;  ///< rejected elements of another output than o
  bool at(std::size_t row, std::size_t c) const { return nan[row * channels + c]; }
};

NanMap nan_map(const Scene& scene) {
  const OutputTruth& o = scene.evaluation.truth.outputs.front();
  NanMap map{o.element.size() / std::max<std::size_t>(1, scene.evaluation.truth.rows.size()),
             std::vector<bool>(o.element.size(), false)};
  for_each_rejected(scene, [&](std::size_t k, std::size_t i, std::uint64_t code) {
    const Format format = scene.outputs[k].layout.format;
    const OutputTruth& truth = scene.evaluation.truth.outputs[k];
    const OutputBound& bound = scene.evaluation.bound.outputs[k];
    const auto t0 = acceptance(format, truth.classes[i] | bound.also[i], truth.mid[i], truth.radius[i], bound.tau[i]);
    if (!is_nan(format, code) || code == canary_code(format))
      map.others = map.others || !accepts(t0, code);
    else if (k == 0)
      map.nan[i] = true;
    else
      map.in_lse = true;
  });
  return map;
}

/// Channels of V that are zero over all keys of a sequence.
std::vector<bool> zero_channels(AttentionView& view, std::int64_t batch, std::int64_t kv_head) {
  std::vector<double> v(static_cast<std::size_t>(view.problem.params().dim_v));
  std::vector<bool> zero(v.size(), true);
  for (std::int64_t key = 0; key < view.problem.kv_len(batch); ++key) {
    view.problem.load_v(batch, kv_head, key, v);
    for (std::size_t c = 0; c < v.size(); ++c) zero[c] = zero[c] && v[c] == 0;
  }
  return zero;
}

/// Exactly the channels whose V is zero are NaN, in every row with keys.
std::optional<Diagnosis> zero_channel(const Scene& scene, AttentionView& view, const NanMap& map) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<bool>> zero;
  std::set<std::size_t> named;
  std::size_t rows = 0;
  for (std::size_t r = 0; r < scene.evaluation.truth.rows.size(); ++r) {
    const AttentionRow& row = view.row(r);
    const std::pair<std::int64_t, std::int64_t> head{row.batch, view.problem.kv_head(row.head)};
    if (scene.evaluation.truth.rows[r].keys == 0) continue;
    if (!zero.contains(head)) zero[head] = zero_channels(view, head.first, head.second);
    bool any = false;
    for (std::size_t c = 0; c < map.channels; ++c) {
      if (map.at(r, c) != zero[head][c]) return std::nullopt;
      if (map.at(r, c)) named.insert(c), any = true;
    }
    rows += any;
  }
  if (named.empty()) return std::nullopt;
  return Diagnosis{0.98, fmt::format("o is NaN in {} rows, in exactly the channels whose V is zero for every key "
                                     "(first: channel {}): a scale taken from a group of zeros",
                                     rows, *named.begin())};
}

/// Exactly the rows whose q is zero are NaN.
std::optional<Diagnosis> zero_row(const Scene& scene, AttentionView& view) {
  std::vector<double> q(static_cast<std::size_t>(view.problem.params().dim_qk));
  const std::vector<std::size_t> bad = failing_rows(scene.measurement);
  for (std::size_t r = 0; r < scene.evaluation.truth.rows.size(); ++r) {
    view.problem.load_q(view.row(r), q);
    const bool zero = std::all_of(q.begin(), q.end(), [](double x) { return x == 0; });
    const bool fails = row_fails(scene.measurement, r);
    if (fails != (zero && scene.evaluation.truth.rows[r].keys > 0)) return std::nullopt;
  }
  return Diagnosis{0.98, fmt::format("{} rows are NaN: exactly those whose q is zero (first: {}): a scale taken from a "
                                     "group of zeros",
                                     bad.size(), row_name(scene, bad[0]))};
}

/// 8-bit P: whole rows of o are NaN, their LSE is right, and with all logits near each other so is o.
std::optional<Diagnosis> unclamped_p(const Scene& scene, const NanMap& map) {
  const Format format = scene.declared.p_known ? scene.declared.p_format : scene.problem.inputs.front().layout.format;
  if (info(format).storage_bits != 8 || map.in_lse) return std::nullopt;
  std::vector<std::size_t> bad;
  const OutputMeasure& o = scene.measurement.outputs.front();
  for (std::size_t r = 0; r < o.rows.size(); ++r)
    if (row_fails(scene.measurement, r) && o.rows[r].nan > 0) bad.push_back(r);
  for (const std::size_t r : bad)
    if (o.rows[r].nan != o.rows[r].judged) return std::nullopt;
  const std::optional<Measurement> flat =
      second_run(scene, with_values(scene.problem, "q", [](double x) { return x * 0x1p-8; }));
  if (flat && !all_right(*flat, bad)) return std::nullopt;
  const std::optional<Measurement> values =
      flat ? second_run(scene, with_values(scene.problem, "v", [](double x) { return std::isfinite(x) ? 1.0 : x; }))
           : std::nullopt;
  if (values && all_right(*values, bad)) return std::nullopt;  // then V made the NaN
  return Diagnosis{
      values ? 0.975 : 0.85,
      fmt::format("o is NaN in all channels of {} rows whose LSE is right (first: {}), with V = 1 too, and "
                  "right where all logits are near each other: P passes {}'s largest number {:.0f} and its "
                  "cast is not clamped",
                  bad.size(), row_name(scene, bad[0]), info(format).name, info(format).max_finite)};
}

std::optional<Diagnosis> detect(const Scene& scene) {
  AttentionView* view = scene.attention();
  if (view == nullptr) return std::nullopt;
  const NanMap map = nan_map(scene);
  if (map.others || std::none_of(map.nan.begin(), map.nan.end(), [](bool nan) { return nan; })) return std::nullopt;
  if (!map.in_lse)
    if (const std::optional<Diagnosis> channel = zero_channel(scene, *view, map)) return channel;
  if (const std::optional<Diagnosis> row = zero_row(scene, *view)) return row;
  return unclamped_p(scene, map);
}

const RegisterMode kRegister({.name = "codec_nan", .id = "M05", .title = "Encoding makes NaN", .detect = detect});

}  // namespace
}  // namespace assay

// M01: NaN from a row, tile or split without an admissible key: (-inf) - (-inf) or 0 / 0.
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "failure_catalog/mode.h"
#include "oracle/ops/attention/problem.h"

namespace assay {
namespace {

/// Some tile of that many keys inside the sequence holds no admissible key of the row.
bool has_empty_tile(const std::vector<std::int32_t>& keys, std::int64_t kv_len, std::int64_t tile) {
  std::vector<bool> hit(static_cast<std::size_t>((kv_len + tile - 1) / tile), false);
  for (std::int32_t key : keys) hit[static_cast<std::size_t>(key / tile)] = true;
  return std::find(hit.begin(), hit.end(), false) != hit.end();
}

/// Signature: what is rejected of a row is NaN, o in every channel, although their inputs are finite, and they belong exactly to the rows
/// without a key (a), or rows with keys that have an empty tile for one tile size (b).
std::optional<Diagnosis> detect(const Scene& scene) {
  if (scene.c.op != "attention") return std::nullopt;
  const AttentionProblem problem(scene.problem);
  const std::vector<OutputMeasure>& outputs = scene.measurement.outputs;
  std::vector<std::size_t> bad;
  for (std::size_t r = 0; r < scene.evaluation.truth.rows.size(); ++r) {
    const auto rejected = [&](const OutputMeasure& m) { return m.rows[r].rejected > 0; };
    // Whichever output gives it away: o may be NaN by convention, and the LSE be right all the same.
    const auto nan = [&](const OutputMeasure& m) { return m.rows[r].nan == m.rows[r].judged && m.rows[r].canary == 0; };
    if (std::none_of(outputs.begin(), outputs.end(), rejected)) continue;
    if (std::any_of(outputs.begin(), outputs.end(), [&](const OutputMeasure& m) { return rejected(m) && !nan(m); }))
      return std::nullopt;
    bad.push_back(r);
  }
  if (bad.empty()) return std::nullopt;
  const auto& facts = scene.evaluation.truth.rows;
  const auto empty = [&](std::size_t r) { return facts[r].keys == 0; };
  if (std::all_of(bad.begin(), bad.end(), empty))
    return Diagnosis{0.95, fmt::format("{} rows are NaN in every channel: exactly rows without an admissible key "
                                       "(first: b {} h {} q {})", bad.size(), facts[bad[0]].batch, facts[bad[0]].head,
                                       facts[bad[0]].query)};
  std::vector<std::int32_t> keys;
  for (const std::int64_t tile : std::array<std::int64_t, 5>{128, 64, 32, 16, 256}) {
    const auto explained = [&](std::size_t r) {
      problem.admissible_keys(problem.rows()[r], keys);
      return keys.empty() || has_empty_tile(keys, problem.kv_len(facts[r].batch), tile);
    };
    if (std::all_of(bad.begin(), bad.end(), explained))
      return Diagnosis{0.9, fmt::format("{} rows are NaN in every channel; each has a key tile of {} without an admissible "
                                        "key (first: b {} h {} q {}, keys {}..{})", bad.size(), tile, facts[bad[0]].batch,
                                        facts[bad[0]].head, facts[bad[0]].query, facts[bad[0]].first_key,
                                        facts[bad[0]].last_key)};
  }
  return std::nullopt;
}

const RegisterMode kRegister({.name = "nan_empty_extent", .id = "M01", .title = "NaN from an empty extent", .detect = detect});

}  // namespace
}  // namespace assay

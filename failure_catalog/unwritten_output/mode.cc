// M08: elements that were never stored still hold what was there before the run.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "failure_catalog/second_run.h"

namespace assay {
namespace {

/// Where the unwritten elements lie, in words.
std::string shape(const Scene& scene, const std::string& role, const OutputMeasure& output) {
  const OutputTruth* truth = nullptr;
  std::size_t which = 0;
  for (std::size_t k = 0; k < scene.outputs.size(); ++k)
    if (scene.outputs[k].layout.role == role) truth = &scene.evaluation.truth.outputs[k], which = k;
  const std::size_t per_row = truth->element.size() / output.rows.size();
  std::vector<std::size_t> rows;
  bool whole = true, empty = true, same_columns = true;
  std::set<std::size_t> columns;
  for (std::size_t r = 0; r < output.rows.size(); ++r) {
    if (output.rows[r].canary == 0) continue;
    whole = whole && output.rows[r].canary == output.rows[r].judged;
    empty = empty && scene.evaluation.truth.rows[r].keys == 0;
    std::set<std::size_t> here;
    for (std::size_t c = 0; c < per_row; ++c)
      if (scene.outputs[which].view().code(truth->element[r * per_row + c]) == canary_code(truth->layout.format))
        here.insert(c);
    same_columns = same_columns && (rows.empty() || here == columns);
    columns = here;
    rows.push_back(r);
  }
  const std::string kind = empty ? " rows without a key" : " rows";
  if (whole) return fmt::format("{}{} of {} (first: {})", rows.size(), kind, role, row_name(scene, rows.front()));
  if (same_columns)
    return fmt::format("elements {} to {} in {}{} of {}", *columns.begin(), *columns.rbegin(), rows.size(), kind, role);
  return fmt::format("{} elements in {}{} of {}", output.canary, rows.size(), kind, role);
}

std::optional<Diagnosis> detect(const Scene& scene) {
  std::int64_t canary = 0, rejected = 0;
  for_each_rejected(scene, [&](std::size_t k, std::size_t, std::uint64_t code) {
    ++rejected;
    canary += code == canary_code(scene.outputs[k].layout.format);
  });
  if (canary == 0) return std::nullopt;
  std::string where;
  for (const OutputMeasure& output : scene.measurement.outputs)
    if (output.canary > 0) where += (where.empty() ? "" : ", ") + shape(scene, output.role, output);
  std::string evidence = fmt::format("{} elements still hold the pattern from before the run: {}", canary, where);
  if (canary < rejected) evidence += fmt::format("; {} others are wrong", rejected - canary);
  return Diagnosis{canary == rejected ? 0.99 : 0.7, evidence};
}

const RegisterMode kRegister(
    {.name = "unwritten_output", .id = "M08", .title = "Outputs that are never stored", .detect = detect});

}  // namespace
}  // namespace assay

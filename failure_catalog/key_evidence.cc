// Tomography as a follow-up of the classifier: which keys the failing kernel used.
#include <fmt/format.h>

#include <algorithm>

#include "failure_catalog/scene.h"
#include "failure_catalog/tomography.h"

namespace assay {

std::optional<KeyEvidence> key_evidence(const Scene& scene) {
  constexpr std::int64_t kMostBlocks = 8;
  constexpr std::int64_t kLargestMatrix = 1 << 22;
  if (scene.experiment == nullptr || no_tomography(scene.problem, scene.c.op)) return std::nullopt;
  const AttentionParams p = attention_params(scene.problem.params);
  const auto rows = static_cast<std::int64_t>(scene.evaluation.truth.rows.size());
  if (p.len_kv > kMostBlocks * p.dim_v || rows * p.len_kv > kLargestMatrix) return std::nullopt;
  std::optional<Tomography> t =
      weight_tomography(scene.problem, [&](const Problem& problem) { return scene.experiment->run(problem); });
  if (!t) return std::nullopt;
  // A row without keys returns what the contract says, which may be the mean of all values.
  std::erase_if(t->rows, [](const RowWeights& row) {
    return std::find(row.admissible.begin(), row.admissible.end(), true) == row.admissible.end();
  });
  const std::vector<KeyDifference> differences = key_differences(*t);
  const std::vector<std::string> origins = foreign_origins(*t, p);
  KeyEvidence out{.right_keys = origins.empty(), .wrong_keys = false, .text = {}};
  for (const RowWeights& row : t->rows) {
    out.right_keys = out.right_keys && row.right_keys();
    out.wrong_keys = out.wrong_keys || !row.missing.empty() || !row.extra.empty();
  }
  const auto with_keys = std::find_if(differences.begin(), differences.end(), [](const KeyDifference& d) {
    return !d.finite || !d.missing.empty() || !d.extra.empty();
  });
  if (with_keys != differences.end())
    out.text = describe(*with_keys, *t);
  else if (!origins.empty())
    out.text = origins[0];
  else if (!differences.empty())
    out.text = describe(differences[0], *t);
  else
    out.text = "every row uses exactly its keys";
  out.text = fmt::format("weight tomography ({} runs): {}", t->runs, out.text);
  return out;
}

}  // namespace assay

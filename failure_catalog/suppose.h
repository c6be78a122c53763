// Suppositions about attention that modes have in common: another set of keys, other values, another problem.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "failure_catalog/mode.h"

namespace assay {

/// A problem like the scene's with something changed, and the oracle's reading of it.
struct Elsewhere {
  explicit Elsewhere(Problem changed) : problem(std::move(changed)), view(problem) {}
  const Problem problem;
  AttentionView view;
};

/// Makes the changed problem when it is first asked for; nothing where it cannot exist (an index tensor that would
/// point outside, another set of rows).
class Lazily {
 public:
  using Make = std::function<std::optional<Problem>()>;
  Lazily(const Scene& scene, Make make) : rows_(scene.attention()->problem.rows().size()), make_(std::move(make)) {}
  AttentionView* view();

 private:
  std::size_t rows_;
  Make make_;
  std::unique_ptr<Elsewhere> made_;
};

using EditKeys = std::function<void(std::size_t row, std::vector<std::int32_t>& keys)>;

/// All keys of the row's sequence, admissible or not.
std::vector<std::int32_t> stored_keys(AttentionView& view, const AttentionRow& row);
/// O of equal weights on these keys, at least one.
std::vector<double> mean_of_values(AttentionView& view, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                                   Hypothesis hypothesis = {});

/// What a kernel returns for a row that used these keys: `attend`, and what the problem declares for rows without any.
RowOutput answer(AttentionView& view, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                 const Hypothesis& hypothesis = {});
/// ALiBi of another row; its query may be one that the sequence does not have.
Hypothesis biased_as(AttentionView& view, const AttentionRow& as);
/// The right answer with some keys counted more than once.
RowOutput with_copies(AttentionView& view, const AttentionRow& row, const std::vector<std::int32_t>& keys,
                      const std::function<double(std::int32_t)>& copies);

/// The row's keys edited; rows whose keys stay the same are left alone. `text` is followed by the place of the failing
/// rows.
Supposition suppose_keys(const Scene& scene, EditKeys edit, std::string text, double cost = 0);
/// The keys that another problem would admit, values and logits of this one.
Supposition suppose_key_rules(const Scene& scene, Lazily::Make make, std::string text, double cost = 0);
/// The right answer of another problem; `hypothesis` on top.
Supposition suppose_problem(const Scene& scene, Lazily::Make make, std::string text, double cost = 0,
                            const Hypothesis& hypothesis = {});
/// A fixed sentence.
Supposition suppose(const Scene& scene, Trial::Predict predict, std::string text, double cost = 0);

/// The scene's problem with some parameters set, tensors unchanged.
Problem with_params(const Problem& problem, const std::vector<std::pair<std::string, std::string>>& changes);
/// The tensor with that role, or null.
Tensor* find_tensor(Problem& problem, std::string_view role);

/// "12 of 40 rows (b 0..1, h 3, q 0..11)": the rows with a rejected element.
std::string failing_rows(const Scene& scene);

/// Tile sizes worth trying: the declared one first.
std::vector<std::int64_t> tile_sizes(const Scene& scene);

}  // namespace assay

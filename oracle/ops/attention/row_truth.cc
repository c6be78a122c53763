// Rows into a Truth: parallel arrays over the judged elements.
#include "oracle/ops/attention/row_truth.h"

namespace assay {

Truth start_truth(const AttentionProblem& problem) {
  Truth truth;
  truth.outputs.push_back({.layout = problem.o_layout(), .element = {}, .row = {}, .mid = {}, .radius = {}, .classes = {}});
  if (problem.lse_layout() != nullptr)
    truth.outputs.push_back(
        {.layout = *problem.lse_layout(), .element = {}, .row = {}, .mid = {}, .radius = {}, .classes = {}});
  return truth;
}

void append(Truth& truth, const AttentionProblem& problem, const AttentionRow& row, const RowTruth& row_truth) {
  const auto index = static_cast<std::int32_t>(truth.rows.size());
  truth.rows.push_back(row_truth.facts);
  OutputTruth& o = truth.outputs[0];
  for (std::size_t c = 0; c < row_truth.o_mid.size(); ++c) {
    o.element.push_back(problem.o_element(row, static_cast<std::int64_t>(c)));
    o.row.push_back(index);
  }
  o.mid.insert(o.mid.end(), row_truth.o_mid.begin(), row_truth.o_mid.end());
  o.radius.insert(o.radius.end(), row_truth.o_radius.begin(), row_truth.o_radius.end());
  o.classes.insert(o.classes.end(), row_truth.o_classes.begin(), row_truth.o_classes.end());
  if (problem.lse_layout() == nullptr) return;
  OutputTruth& lse = truth.outputs[1];
  lse.element.push_back(problem.lse_element(row));
  lse.row.push_back(index);
  lse.mid.push_back(row_truth.lse_mid);
  lse.radius.push_back(row_truth.lse_radius);
  lse.classes.push_back(row_truth.lse_classes);
}

}  // namespace assay

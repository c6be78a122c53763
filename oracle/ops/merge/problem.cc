// Reading a merge problem, the class rules, and rows into a Truth.
#include "oracle/ops/merge/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// What a channel of o holds among the parts that are not empty.
struct Channel {
  bool nan = false, plus = false, minus = false, nonzero = false, stray = false;
  void see(double o) {
    nan = nan || std::isnan(o);
    plus = plus || o == kInf;
    minus = minus || o == -kInf;
    nonzero = nonzero || o != 0;
  }
  ClassSet classes() const {
    if (nan || (plus && minus)) return kNan;
    if (plus) return kPlusInf;
    if (minus) return kMinusInf;
    return nonzero ? kNumber : kZero;
  }
};

}  // namespace

MergeProblem::MergeProblem(const Problem& problem) : params_(merge_params(problem.params)) {
  for (const Tensor& tensor : problem.inputs) {
    if (tensor.layout.role == "o_parts") o_parts_ = tensor.view();
    if (tensor.layout.role == "lse_parts") lse_parts_ = tensor.view();
  }
  for (const TensorLayout& layout : problem.outputs) (layout.role == "o" ? o_ : lse_) = &layout;
}

MergeRow MergeProblem::row(std::int64_t row) const {
  const auto dv = static_cast<std::size_t>(params_.dim_v);
  MergeRow out;
  out.row = row;
  out.infinite.resize(dv);
  std::vector<Channel> channels(dv);
  bool nan = false, plus = false;
  for (std::int64_t s = 0; s < params_.parts; ++s) {
    const double lse = lse_parts_.value(lse_parts_.element(s, row));
    const bool empty = lse == -kInf || (lse == kInf && params_.plus_inf_is_empty);
    nan = nan || std::isnan(lse);
    plus = plus || (!empty && lse == kInf);
    if (!empty) {
      out.part.push_back(static_cast<std::int32_t>(s));
      out.lse.push_back(lse);
    }
    for (std::size_t c = 0; c < dv; ++c) {
      const double o = o_parts_.value(o_parts_.element(s, row, c));
      if (empty) {
        channels[c].stray = channels[c].stray || !std::isfinite(o);
        continue;
      }
      channels[c].see(o);
      if (std::isinf(o)) out.infinite[c].push_back(static_cast<std::int32_t>(out.part.size()) - 1);
      out.o.push_back(std::isfinite(o) ? o : 0.0);
    }
  }
  out.has_numbers = !nan && !plus && !out.part.empty();
  const ClassSet declared = params_.empty_output == EmptyOutput::kNan ? kNan : kZero;
  for (const Channel& channel : channels) {
    ClassSet set = nan || plus ? kNan : out.part.empty() ? declared : channel.classes();
    if (channel.stray && params_.masked_nonfinite == MaskedNonfinite::kPropagates) set |= kNan;
    out.o_classes.push_back(set);
  }
  if (nan)
    out.lse_classes = kNan;
  else if (plus)
    out.lse_classes = kNan | kPlusInf;
  else if (out.part.empty())
    out.lse_classes = params_.empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf;
  return out;
}

MergeTruth start_row(const MergeProblem& problem, const MergeRow& row) {
  const auto dv = static_cast<std::size_t>(problem.params().dim_v);
  const double none = row.has_numbers || row.part.empty() ? -kInf : std::numeric_limits<double>::quiet_NaN();
  return {.facts = {.batch = 0,
                    .head = 0,
                    .query = static_cast<std::int32_t>(row.row),
                    .keys = static_cast<std::int32_t>(row.part.size()),
                    .first_key = row.part.empty() ? -1 : row.part.front(),
                    .last_key = row.part.empty() ? -1 : row.part.back(),
                    .max_logit = none,
                    .min_logit = none,
                    .lse = none,
                    .effective_keys = 0,
                    .escalated = false},
          .o_mid = std::vector<double>(dv, 0.0),
          .o_radius = std::vector<double>(dv, 0.0)};
}

Truth start_truth(const MergeProblem& problem) {
  Truth truth;
  truth.outputs.push_back({.layout = problem.o(), .element = {}, .row = {}, .mid = {}, .radius = {}, .classes = {}});
  if (problem.lse() != nullptr)
    truth.outputs.push_back(
        {.layout = *problem.lse(), .element = {}, .row = {}, .mid = {}, .radius = {}, .classes = {}});
  return truth;
}

void append(Truth& truth, const MergeProblem& problem, const MergeRow& row, const MergeTruth& t) {
  const auto index = static_cast<std::int32_t>(truth.rows.size());
  truth.rows.push_back(t.facts);
  const auto add = [&](OutputTruth& out, std::int64_t element, double mid, double radius, ClassSet classes) {
    const bool number = (classes & kNumber) != 0;
    out.element.push_back(element);
    out.row.push_back(index);
    out.mid.push_back(number ? mid : 0.0);
    out.radius.push_back(number ? radius : 0.0);
    out.classes.push_back(classes);
  };
  const std::int64_t first = problem.o().offset + row.row * problem.o().strides[0];
  for (std::size_t c = 0; c < t.o_mid.size(); ++c)
    add(truth.outputs[0], first + static_cast<std::int64_t>(c), t.o_mid[c], t.o_radius[c], row.o_classes[c]);
  if (problem.lse() != nullptr)
    add(truth.outputs[1], problem.lse()->offset + row.row, t.lse_mid, t.lse_radius, row.lse_classes);
}

}  // namespace assay

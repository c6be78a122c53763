// Reading a softmax problem, the class rules, and rows into a Truth.
#include "oracle/ops/softmax/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

const TensorLayout* find_output(const Problem& problem, std::string_view role) {
  for (const TensorLayout& layout : problem.outputs)
    if (layout.role == role) return &layout;
  return nullptr;
}

/// What a set of logits holds.
struct Seen {
  bool nan = false, plus = false, minus = false;
  double largest = -kInf;  ///< of the finite ones, rounded
  void add(double t) {
    nan = nan || std::isnan(t);
    plus = plus || t == kInf;
    minus = minus || t == -kInf;
    if (std::isfinite(t)) largest = std::max(largest, t);
  }
  bool any_finite() const { return largest > -kInf; }
};

ClassSet empty_lse_class(const SoftmaxParams& p) { return p.empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf; }

/// y of a row without weights; `more` is added to every class.
void set_empty(const SoftmaxParams& p, ClassSet more, SoftmaxTruth& truth) {
  const bool mean = p.empty_output == EmptyOutput::kMean;
  const ClassSet declared = mean ? kNumber : p.empty_output == EmptyOutput::kNan ? kNan : kZero;
  std::fill(truth.y_classes.begin(), truth.y_classes.end(), static_cast<ClassSet>(declared | more));
  if (!mean) return;
  std::fill(truth.y_mid.begin(), truth.y_mid.end(), 1 / static_cast<double>(p.n));
  std::fill(truth.y_radius.begin(), truth.y_radius.end(), 0x1p-53 / static_cast<double>(p.n));
}

/// Rules 5 to 7 for one prefix.
void set_step(const Seen& seen, SoftmaxTruth& truth) {
  const ClassSet largest = seen.plus ? kPlusInf : seen.any_finite() ? kNumber : kMinusInf;
  ClassSet m = largest, l = kNumber;
  if (seen.nan || seen.plus)
    m |= kNan, l = kNan;
  else if (!seen.any_finite())
    l = static_cast<ClassSet>(seen.minus ? kZero | kNan : kZero);
  truth.m_classes.push_back(m);
  truth.l_classes.push_back(l);
}

void add_output(Truth& truth, const TensorLayout* layout) {
  if (layout == nullptr) return;
  truth.outputs.push_back({.layout = *layout, .element = {}, .row = {}, .mid = {}, .radius = {}, .classes = {}});
}

}  // namespace

SoftmaxProblem::SoftmaxProblem(const Problem& problem) : params_(softmax_params(problem.params)) {
  for (const Tensor& tensor : problem.inputs) {
    if (tensor.layout.role == "x") x_ = tensor.view();
    if (tensor.layout.role == "mask") mask_ = tensor.view();
  }
  y_ = find_output(problem, "y");
  lse_ = find_output(problem, "lse");
  m_ = find_output(problem, "m");
  l_ = find_output(problem, "l");
}

SoftmaxRow SoftmaxProblem::row(std::int64_t row) const {
  SoftmaxRow out;
  out.row = row;
  const double scale = static_cast<double>(params_.scale);
  for (std::int64_t j = 0; j < params_.n; ++j) {
    if (params_.data_mask == DataMask::kBool && mask_.code(mask_.element(row, j)) == 0) continue;
    out.key.push_back(static_cast<std::int32_t>(j));
    out.linear.push_back(scale * x_.value(x_.element(row, j)));
    out.bias.push_back(params_.data_mask == DataMask::kAdditive ? mask_.value(mask_.element(row, j)) : 0.0);
  }
  return out;
}

Classified classify(const SoftmaxParams& p, const SoftmaxRow& row) {
  Classified c;
  SoftmaxTruth& truth = c.truth;
  const auto n = static_cast<std::size_t>(p.n);
  truth.y_mid.assign(n, 0.0);
  truth.y_radius.assign(n, 0.0);
  truth.y_classes.assign(n, kZero);
  truth.facts = {.batch = 0,
                 .head = 0,
                 .query = static_cast<std::int32_t>(row.row),
                 .keys = static_cast<std::int32_t>(row.key.size()),
                 .first_key = row.key.empty() ? -1 : row.key.front(),
                 .last_key = row.key.empty() ? -1 : row.key.back(),
                 .max_logit = -kInf,
                 .min_logit = -kInf,
                 .lse = -kInf,
                 .effective_keys = 0,
                 .escalated = false};
  Seen seen;
  std::size_t next = 0;
  const auto see_until = [&](std::int64_t end) {
    for (; next < row.key.size() && row.key[next] < end; ++next) {
      const double t = row.linear[next] + row.bias[next];
      seen.add(t);
      if (std::isfinite(t)) c.finite.push_back(static_cast<std::int32_t>(next));
    }
  };
  for (std::int64_t s = 0; s < p.step_count(); ++s) {
    see_until(std::min(p.n, (s + 1) * p.steps));
    set_step(seen, truth);
    c.step_finite.push_back(c.finite.size());
  }
  see_until(p.n);
  truth.m_mid.assign(truth.m_classes.size(), 0.0);
  truth.m_radius = truth.l_mid = truth.l_radius = truth.m_mid;

  if (row.key.empty()) {  // rule 1
    set_empty(p, 0, truth);
    truth.lse_classes = empty_lse_class(p);
  } else if (seen.nan || seen.plus) {  // rule 2
    std::fill(truth.y_classes.begin(), truth.y_classes.end(), static_cast<ClassSet>(kNan | kZero));
    for (std::int32_t key : row.key) truth.y_classes[static_cast<std::size_t>(key)] = kNan;
    truth.lse_classes = seen.nan ? kNan : static_cast<ClassSet>(kNan | kPlusInf);
    truth.facts.max_logit = truth.facts.lse = std::numeric_limits<double>::quiet_NaN();
  } else if (c.finite.empty()) {  // rule 3
    set_empty(p, kNan, truth);
    truth.lse_classes = static_cast<ClassSet>(kNan | kMinusInf | empty_lse_class(p));
  } else {  // rule 4
    c.has_numbers = true;
    for (std::int32_t i : c.finite)
      truth.y_classes[static_cast<std::size_t>(row.key[static_cast<std::size_t>(i)])] = kNumber;
  }
  return c;
}

Truth start_truth(const SoftmaxProblem& problem) {
  Truth truth;
  for (const TensorLayout* layout : {problem.y(), problem.lse(), problem.m(), problem.l()}) add_output(truth, layout);
  return truth;
}

void append(Truth& truth, const SoftmaxProblem& problem, std::int64_t row, const SoftmaxTruth& t) {
  const auto index = static_cast<std::int32_t>(truth.rows.size());
  truth.rows.push_back(t.facts);
  std::size_t next = 0;
  const auto add = [&](const TensorLayout* layout, const std::vector<double>& mid, const std::vector<double>& radius,
                       const std::vector<ClassSet>& classes) {
    if (layout == nullptr) return;
    OutputTruth& out = truth.outputs[next++];
    const std::int64_t first = layout->offset + row * layout->strides[0];
    for (std::size_t j = 0; j < mid.size(); ++j) {
      out.element.push_back(first + static_cast<std::int64_t>(j));
      out.row.push_back(index);
      const bool number = (classes[j] & kNumber) != 0;
      out.mid.push_back(number ? mid[j] : 0.0);
      out.radius.push_back(number ? radius[j] : 0.0);
      out.classes.push_back(classes[j]);
    }
  };
  add(problem.y(), t.y_mid, t.y_radius, t.y_classes);
  add(problem.lse(), {t.lse_mid}, {t.lse_radius}, {t.lse_classes});
  add(problem.m(), t.m_mid, t.m_radius, t.m_classes);
  add(problem.l(), t.l_mid, t.l_radius, t.l_classes);
}

}  // namespace assay

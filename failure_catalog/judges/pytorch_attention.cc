// Eager 16-bit attention, row by row.
#include "failure_catalog/judges/pytorch_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/exp64.h"
#include "oracle/ops/attention/problem.h"

namespace assay {
namespace {

/// Keys and values of one head as the test's tensors hold them.
class Head {
 public:
  Head(const AttentionProblem& problem, Format dtype) : problem_(problem), dtype_(dtype) {}

  void load(const AttentionRow& row) {
    const std::int64_t head = problem_.kv_head(row.head);
    if (row.batch == batch_ && head == head_) return;
    batch_ = row.batch;
    head_ = head;
    const auto d = static_cast<std::size_t>(problem_.params().dim_qk),
               dv = static_cast<std::size_t>(problem_.params().dim_v);
    const auto keys = static_cast<std::size_t>(problem_.kv_len(row.batch));
    k_.assign(keys * d, 0);
    v_.assign(keys * dv, 0);
    for (std::size_t j = 0; j < keys; ++j) {
      const auto key = static_cast<std::int64_t>(j);
      const std::span<double> k = std::span(k_).subspan(j * d, d), v = std::span(v_).subspan(j * dv, dv);
      problem_.load_k(batch_, head, key, k);
      problem_.load_v(batch_, head, key, v);
      const double k_scale = problem_.factors(row, key).k, v_scale = problem_.value_factor(row, key);
      for (double& x : k) x = rounded(rounded(x * k_scale) * static_cast<double>(problem_.params().scale));
      for (double& x : v) x = rounded(x * v_scale);
    }
  }
  std::span<const double> k(std::int32_t key) const { return part(k_, key, problem_.params().dim_qk); }
  std::span<const double> v(std::int32_t key) const { return part(v_, key, problem_.params().dim_v); }
  double rounded(double x) const { return round_to(dtype_, x); }

 private:
  static std::span<const double> part(const std::vector<double>& all, std::int32_t key, std::int64_t width) {
    return std::span(all).subspan(static_cast<std::size_t>(key * width), static_cast<std::size_t>(width));
  }

  const AttentionProblem& problem_;
  Format dtype_;
  std::int64_t batch_ = -1, head_ = -1;
  std::vector<double> k_, v_;
};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

std::vector<double> pytorch_attention(const Problem& problem, Format dtype, Format weights) {
  const AttentionProblem attention(problem);
  const AttentionParams& p = attention.params();
  Head head(attention, dtype);
  std::vector<double> q(static_cast<std::size_t>(p.dim_qk)), x, output;
  std::vector<std::int32_t> keys;
  for (const AttentionRow& row : attention.rows()) {
    head.load(row);
    attention.load_q(row, q);
    attention.admissible_keys(row, keys);
    x.assign(keys.size(), 0);
    double largest = attention.sink(row), sum = 0;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      if (n == 0 && p.descale != Descale::kNone) {
        const double q_scale = attention.factors(row, keys[0]).scale_q / static_cast<double>(p.scale);
        for (double& value : q) value = head.rounded(value * q_scale);
      }
      x[n] = head.rounded(dot(q, head.k(keys[n])));
      if (const auto cap = static_cast<double>(p.softcap); cap > 0)
        x[n] = head.rounded(head.rounded(tanh64(head.rounded(x[n] / cap))) * cap);
      if (attention.has_bias()) x[n] = head.rounded(x[n] + head.rounded(attention.bias(row, keys[n])));
      if (!(x[n] <= largest)) largest = x[n];  // NaN too
    }
    for (double& value : x) sum += value = exp64(value - largest);
    if (p.sink != Sink::kNone) sum += exp64(attention.sink(row) - largest);
    const std::size_t first = output.size();
    output.resize(first + static_cast<std::size_t>(p.dim_v), 0);
    const std::span<double> o = std::span(output).subspan(first);
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const double weight = round_to(weights, head.rounded(x[n] / sum));
      const std::span<const double> v = head.v(keys[n]);
      for (std::size_t c = 0; c < o.size(); ++c) o[c] += weight * v[c];
    }
    for (double& value : o) value = head.rounded(value);
  }
  return output;
}

}  // namespace assay

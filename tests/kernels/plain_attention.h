// Attention as a plain fp64 loop, every convention read off its definition; for kernels' tests.
#pragma once

#include <cmath>
#include <limits>

#include "tests/kernels/scenario.h"

namespace assay {

struct PlainRow {
  std::vector<double> o;
  double lse = 0;
};

inline bool plain_sees(Scenario& s, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const AttentionParams& p = s.p;
  const std::int64_t diagonal = i + (p.align == Align::kTopLeft ? 0 : s.len(false, b) - s.len(true, b));
  if (p.causal && j > diagonal) return false;
  if (p.window_right != -1 && j > diagonal + p.window_right) return false;
  if (p.window_left != -1 &&
      (p.window_ends == WindowEnds::kInclusive ? j < diagonal - p.window_left : j <= diagonal - p.window_left))
    return false;
  if (p.segments && s.entry_of("seg_q", b, i) != s.entry_of("seg_kv", b, j)) return false;
  switch (p.data_mask) {
    case DataMask::kNone:
    case DataMask::kAdditive: return true;
    case DataMask::kBool: return s.entry_of("mask", b, h, i, j) != 0;
    case DataMask::kBlock: return s.entry_of("mask", b, h, i / p.block_q, j / p.block_kv) != 0;
    case DataMask::kList:
      for (std::int64_t n = 0; n < p.list_len; ++n)
        if (s.entry_of("mask", b, h, i, n) == static_cast<double>(j)) return true;
      return false;
  }
  return false;
}

inline double plain_descale(Scenario& s, std::string_view role, std::int64_t b, std::int64_t head, std::int64_t kv_head,
                            std::int64_t token) {
  switch (s.p.descale) {
    case Descale::kNone: return 1;
    case Descale::kTensor: return s.entry_of(role, 0);
    case Descale::kHead: return s.entry_of(role, b, kv_head);
    case Descale::kBlock: return s.entry_of(role, b, head, token / s.p.scale_block);
  }
  return 0;
}

/// One key-value head of a sequence, and the queries of one head: [row][channel].
struct PlainHead {
  std::vector<std::vector<double>> q, k, v;
};

inline std::vector<std::vector<double>> plain_vectors(Scenario& s, std::string_view role, std::int64_t b,
                                                      std::int64_t h, std::int64_t rows, std::int64_t dim) {
  std::vector<std::vector<double>> all(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < dim; ++c) all[static_cast<std::size_t>(row)].push_back(s.value(role, b, h, row, c));
  return all;
}

inline double plain_logit(Scenario& s, const PlainHead& head, std::int64_t b, std::int64_t h, std::int64_t i,
                          std::int64_t j) {
  const AttentionParams& p = s.p;
  const std::int64_t g = h * p.heads_kv / p.heads_q;
  const std::vector<double>& q = head.q[static_cast<std::size_t>(i)];
  const std::vector<double>& k = head.k[static_cast<std::size_t>(j)];
  double x = 0;
  for (std::size_t c = 0; c < q.size(); ++c) x += q[c] * k[c];
  x *= static_cast<double>(p.scale) * plain_descale(s, "q_scale", b, h, g, i) * plain_descale(s, "k_scale", b, g, g, j);
  if (const auto cap = static_cast<double>(p.softcap); cap > 0) x = cap * std::tanh(x / cap);
  if (p.alibi != Alibi::kNone) {
    const double slope = p.slopes_per_batch ? s.entry_of("slopes", b, h) : s.entry_of("slopes", h);
    const std::int64_t diagonal = i + (p.align == Align::kTopLeft ? 0 : s.len(false, b) - s.len(true, b));
    const std::int64_t distance = p.alibi == Alibi::kDistance   ? -std::abs(diagonal - j)
                                  : p.alibi == Alibi::kKey      ? j
                                  : p.alibi == Alibi::kDiagonal ? j - i
                                                                : j + 1 - s.len(false, b);
    x += slope * static_cast<double>(distance);
  }
  if (p.data_mask == DataMask::kAdditive) x += s.entry_of("mask", b, h, i, j);
  return x;
}

inline PlainRow plain_row(Scenario& s, const PlainHead& head, std::int64_t b, std::int64_t h, std::int64_t i) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const AttentionParams& p = s.p;
  const std::int64_t g = h * p.heads_kv / p.heads_q, keys = s.len(false, b);
  const double sink = p.sink == Sink::kNone ? -kInf : s.entry_of("sink", h);
  std::vector<double> x(static_cast<std::size_t>(keys), -kInf);
  double m = -kInf;
  for (std::int64_t j = 0; j < keys; ++j) {
    double& logit = x[static_cast<std::size_t>(j)];
    if (plain_sees(s, b, h, i, j)) logit = plain_logit(s, head, b, h, i, j);
    m = std::max(m, logit);
  }
  const bool any = m > -kInf, mean = !any && sink == -kInf && p.empty_output == EmptyOutput::kMean;
  PlainRow row;
  row.o.assign(static_cast<std::size_t>(p.dim_v), 0.0);
  double l = 0;
  for (std::size_t j = 0; j < x.size() && (any || mean); ++j) {
    const double weight = mean ? 1 : std::exp(x[j] - m);
    l += weight;
    const double scaled = weight * plain_descale(s, "v_scale", b, g, g, static_cast<std::int64_t>(j));
    for (std::size_t c = 0; c < row.o.size(); ++c) row.o[c] += scaled * head.v[j][c];
  }
  const double denominator = any && sink > -kInf ? l + std::exp(sink - m) : l;
  for (double& o : row.o) o = denominator > 0 ? o / denominator : 0;
  if (!any && sink == -kInf && p.empty_output == EmptyOutput::kNan)
    row.o.assign(row.o.size(), std::numeric_limits<double>::quiet_NaN());
  if (p.sink == Sink::kInLse && sink > -kInf) {
    const double top = std::max(m, sink);
    row.lse = sink == kInf ? kInf : top + std::log((any ? l * std::exp(m - top) : 0) + std::exp(sink - top));
  } else {
    row.lse = any ? m + std::log(l) : p.empty_lse == EmptyLse::kMinusInf ? -kInf : kInf;
  }
  if (p.lse == LseBase::kTwo) row.lse /= std::log(2.0);
  return row;
}

/// All rows in (b, h, i) order.
inline std::vector<PlainRow> plain_attention(Scenario& s) {
  std::vector<PlainRow> rows;
  for (std::int64_t b = 0; b < s.p.batch; ++b)
    for (std::int64_t h = 0; h < s.p.heads_q; ++h) {
      const std::int64_t g = h * s.p.heads_kv / s.p.heads_q;
      const PlainHead head{plain_vectors(s, "q", b, h, s.len(true, b), s.p.dim_qk),
                           plain_vectors(s, "k", b, g, s.len(false, b), s.p.dim_qk),
                           plain_vectors(s, "v", b, g, s.len(false, b), s.p.dim_v)};
      for (std::int64_t i = 0; i < s.len(true, b); ++i) rows.push_back(plain_row(s, head, b, h, i));
    }
  return rows;
}

}  // namespace assay

// D1 of numerics.md 2.1 over the channels of q.k, vectorised over keys; and the emulated chain itself.
//
// As in value_chain.cc, without ambiguity: dev = err. Keys are taken in pieces that stay in the first-level cache.
#include "oracle/ops/attention/head_replay.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr std::int16_t kNoTerm = -5000;
constexpr std::size_t kPiece = 512;

struct Piece {
  std::array<double, kPiece> c{}, error{};
  std::array<std::int16_t, kPiece> largest{}, limit{}, count{};
};

[[gnu::always_inline]] inline std::int64_t exponent_of(double x) {
  return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x) >> 52) - 1023;
}

[[gnu::always_inline]] inline double power_of_two(std::int64_t e) {
  const std::int64_t field = e + 1023;
  return std::bit_cast<double>(static_cast<std::uint64_t>(field < 0 ? 0 : field) << 52);
}

ASSAY_HOT void raise(std::int16_t q, const std::int16_t* k, std::size_t n, std::int16_t* largest) {
  for (std::size_t j = 0; j < n; ++j) {
    const auto e = static_cast<std::int16_t>(q + k[j]);
    largest[j] = e > largest[j] ? e : largest[j];
  }
}

ASSAY_HOT void count_lost(std::int16_t q, const std::int16_t* k, const std::int16_t* limit, std::size_t n,
                          std::int16_t* count) {
  for (std::size_t j = 0; j < n; ++j) {
    const auto e = static_cast<std::int16_t>(q + k[j]);
    count[j] = static_cast<std::int16_t>(count[j] + ((e < limit[j]) & (e > kNoTerm)));
  }
}

ASSAY_HOT void align(Piece& piece, std::size_t n, int kept) {
  for (std::size_t j = 0; j < n; ++j) {
    const std::int64_t e = exponent_of(std::abs(piece.c[j]) + piece.error[j]);
    const std::int64_t top = e > piece.largest[j] ? e : piece.largest[j];
    piece.largest[j] = static_cast<std::int16_t>(top);
    piece.limit[j] = static_cast<std::int16_t>(top - kept);
  }
}

ASSAY_HOT void truncate(Piece& piece, std::size_t n, int aligned, int output) {
  for (std::size_t j = 0; j < n; ++j) {
    const double low = std::abs(piece.c[j]) - piece.error[j];
    const std::int64_t e = exponent_of(low > 0 ? low : 0.0);
    const int cut = static_cast<int>(e - output < piece.largest[j] - aligned) &
                    static_cast<int>(std::abs(piece.c[j]) + piece.error[j] > 0);
    // 2^(E - 40): fp64's own rounding of the exact sums.
    piece.error[j] +=
        (piece.count[j] + cut) * power_of_two(piece.largest[j] - aligned) + power_of_two(piece.largest[j] - 40);
  }
}

/// c[j] += q . k_j over some channels, four at a time; k holds the keys of a channel together, `stride` apart from the
/// next.
ASSAY_HOT void add_products(const double* q, std::size_t channels, const float* k, std::size_t stride, std::size_t n,
                            double* c) {
  std::size_t i = 0;
  for (; i + 4 <= channels; i += 4) {
    const float *a = k + i * stride, *b = a + stride, *d = b + stride, *e = d + stride;
    for (std::size_t j = 0; j < n; ++j)
      c[j] += (q[i] * static_cast<double>(a[j]) + q[i + 1] * static_cast<double>(b[j])) +
              (q[i + 2] * static_cast<double>(d[j]) + q[i + 3] * static_cast<double>(e[j]));
  }
  for (; i < channels; ++i)
    for (std::size_t j = 0; j < n; ++j) c[j] += q[i] * static_cast<double>(k[i * stride + j]);
}

ASSAY_HOT void round_result(Piece& piece, std::size_t n, double unit) {
  for (std::size_t j = 0; j < n; ++j) piece.error[j] += unit * (std::abs(piece.c[j]) + piece.error[j]);
}

}  // namespace

void HeadReplay::load(const AttentionProblem& problem, const RowAnalysis& row, bool keys) {
  const HeadOperands& head = *row.operands;
  if (batch_ == head.batch && kv_head_ == head.kv_head && (has_keys_ || !keys)) return;
  const Format format = problem.params().input;
  batch_ = head.batch, kv_head_ = head.kv_head, count_ = head.keys, dim_ = head.dim_qk;
  has_keys_ = keys;
  const int min_exponent = info(format).min_exponent;
  v_exponent_.resize(head.v.size());
  for (std::size_t i = 0; i < head.v.size(); ++i) v_exponent_[i] = aligned_exponent(head.v[i], min_exponent);
  if (!keys) return;
  const auto n = static_cast<std::size_t>(count_), d = static_cast<std::size_t>(dim_);
  k_.resize(n * d);
  k_exponent_.resize(n * d);
  std::vector<double> k(d);
  for (std::size_t j = 0; j < n; ++j) {
    problem.load_k(batch_, kv_head_, static_cast<std::int64_t>(j), k);
    for (std::size_t c = 0; c < d; ++c) {
      k_[c * n + j] = static_cast<float>(k[c]);
      k_exponent_[c * n + j] = aligned_exponent(k[c], min_exponent);
    }
  }
}

void HeadReplay::load_query(const AttentionProblem& problem, const RowAnalysis& row) {
  q_.resize(static_cast<std::size_t>(dim_));
  problem.load_q(row.row, q_);
  q32_.assign(q_.begin(), q_.end());
}

void HeadReplay::score_errors(const AttentionProblem& problem, const RowAnalysis& row, const MmaModel& model,
                              std::vector<double>& error) {
  load_query(problem, row);
  const auto n = static_cast<std::size_t>(count_), d = static_cast<std::size_t>(dim_);
  const FormatInfo& format = info(problem.params().input);
  const int kept = model.alignment_bits - 2 * format.fraction_bits;
  const double unit = exp2_64(-model.output_bits);
  const auto block = static_cast<std::size_t>(model.block_k);
  const double floor = 2 * static_cast<double>((d + block - 1) / block) * kMinNormal32 * unit;
  error.resize(row.keys.size());
  Piece piece;
  for (std::size_t at = 0; at < row.keys.size();) {
    const auto first = static_cast<std::size_t>(row.keys[at]), count = std::min(kPiece, n - first);
    piece.c.fill(0);
    piece.error.fill(0);
    for (std::size_t from = 0; from < d; from += block) {
      const std::size_t to = std::min(d, from + block);
      piece.largest.fill(kNoExponent);
      piece.count.fill(0);
      for (std::size_t c = from; c < to; ++c)
        if (q_[c] != 0)
          raise(aligned_exponent(q_[c], format.min_exponent), k_exponent_.data() + c * n + first, count,
                piece.largest.data());
      align(piece, count, kept);
      for (std::size_t c = from; c < to; ++c)
        if (q_[c] != 0)
          count_lost(aligned_exponent(q_[c], format.min_exponent), k_exponent_.data() + c * n + first,
                     piece.limit.data(), count, piece.count.data());
      truncate(piece, count, model.alignment_bits, model.output_bits);
      add_products(q_.data() + from, to - from, k_.data() + from * n + first, n, count, piece.c.data());
      round_result(piece, count, unit);
    }
    for (; at < row.keys.size() && static_cast<std::size_t>(row.keys[at]) < first + count; ++at)
      error[at] = piece.error[static_cast<std::size_t>(row.keys[at]) - first] * (1 + 0x1p-30) + floor;
  }
}

void HeadReplay::emulate_scores(const AttentionProblem& problem, const RowAnalysis& row, const MmaModel& model,
                                std::vector<double>& score) {
  load_query(problem, row);
  const auto first = static_cast<std::size_t>(row.keys.front()), end = static_cast<std::size_t>(row.keys.back()) + 1;
  scores_.assign(end - first, 0.0F);
  mma_tile(model, problem.params().input, 1, static_cast<int>(end - first), static_cast<int>(dim_),
           {q32_.data(), dim_, 1}, {k_.data() + first, count_, 1}, scores_.data(), count_);
  score.resize(row.keys.size());
  for (std::size_t j = 0; j < row.keys.size(); ++j)
    score[j] = static_cast<double>(scores_[static_cast<std::size_t>(row.keys[j]) - first]);
}

}  // namespace assay

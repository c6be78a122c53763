// D1 of numerics.md 2.1 over the keys of a split, vectorised over channels.
//
// A block of K products t_j = P~_j v_j enters the accumulator c (exact value; the kernel's differs by at most dev).
// With E at least the largest exponent in the block and of |c| + dev, every term whose last bit lies below 2^(E - F),
// that is e_j < E - F + pl with pl fraction bits in a product, loses less than 2^(E - F), and so does the accumulator
// if its last bit, not above that of max(|c| - dev, 0), does; the result is rounded toward zero to ob fraction bits:
//   err' = err + (count + [accumulator]) 2^(E - F) + 2^-ob (|c'| + dev')
// An accumulator that alpha has just multiplied in fp32 may carry more bits than ob: the next blocks (one of zeros, one
// of terms) cut it. dev counts err and what ambiguous P add; only err is accumulation error. The kernel's alphas differ
// from ours by far less than the 2^-8 that E's argument allows for. Rescaling by alpha costs u |c|, an addition in fp32
// u |result|.
#include "oracle/ops/attention/value_chain.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/simd.h"

namespace assay {
namespace {

constexpr std::int16_t kNoTerm = -5000;  // sums of two exponents below this have a zero factor

/// 2^e for the exponents that occur, 0 far below them.
[[gnu::always_inline]] inline double power_of_two(std::int64_t e) {
  const std::int64_t field = e + 1023;
  return std::bit_cast<double>(static_cast<std::uint64_t>(field < 0 ? 0 : field) << 52);
}

/// floor(log2 x) for normal x > 0, -1023 for zero.
[[gnu::always_inline]] inline std::int64_t exponent_of(double x) {
  return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x) >> 52) - 1023;
}

struct Term {
  double p = 0, gap = 0;
  std::int16_t high = 0, low = 0;  ///< exponents of the largest and smallest P~ it may be
  const double* v = nullptr;
  const std::int16_t* v_exponent = nullptr;
};

// Sums and extrema over the terms of a block, four at a time.

/// sum[c] += sum_t p_t v_t[c].
ASSAY_HOT void add_products(const Term* terms, std::size_t count, std::size_t n, double* sum) {
  std::size_t t = 0;
  for (; t + 4 <= count; t += 4) {
    const double p0 = terms[t].p, p1 = terms[t + 1].p, p2 = terms[t + 2].p, p3 = terms[t + 3].p;
    const double *v0 = terms[t].v, *v1 = terms[t + 1].v, *v2 = terms[t + 2].v, *v3 = terms[t + 3].v;
    for (std::size_t c = 0; c < n; ++c) sum[c] += (p0 * v0[c] + p1 * v1[c]) + (p2 * v2[c] + p3 * v3[c]);
  }
  for (; t < count; ++t) {
    const double p = terms[t].p, *v = terms[t].v;
    for (std::size_t c = 0; c < n; ++c) sum[c] += p * v[c];
  }
}

ASSAY_HOT void add_magnitude(double p, const double* v, std::size_t n, double* sum) {
  for (std::size_t c = 0; c < n; ++c) sum[c] += p * std::abs(v[c]);
}

[[gnu::always_inline]] inline std::int16_t sum_of(std::int16_t a, std::int16_t b) {
  return static_cast<std::int16_t>(a + b);
}
[[gnu::always_inline]] inline std::int16_t larger(std::int16_t a, std::int16_t b) { return a > b ? a : b; }

/// The largest exponent of a product; kNoExponent or below without one.
ASSAY_HOT void find_largest(const Term* terms, std::size_t count, std::size_t n, std::int16_t* largest) {
  for (std::size_t c = 0; c < n; ++c) largest[c] = kNoExponent;
  std::size_t t = 0;
  for (; t + 4 <= count; t += 4) {
    const std::int16_t p0 = terms[t].high, p1 = terms[t + 1].high, p2 = terms[t + 2].high, p3 = terms[t + 3].high;
    const std::int16_t *e0 = terms[t].v_exponent, *e1 = terms[t + 1].v_exponent, *e2 = terms[t + 2].v_exponent,
                       *e3 = terms[t + 3].v_exponent;
    for (std::size_t c = 0; c < n; ++c)
      largest[c] = larger(largest[c], larger(larger(sum_of(p0, e0[c]), sum_of(p1, e1[c])),
                                             larger(sum_of(p2, e2[c]), sum_of(p3, e3[c]))));
  }
  for (; t < count; ++t) {
    const std::int16_t p = terms[t].high, *e = terms[t].v_exponent;
    for (std::size_t c = 0; c < n; ++c) largest[c] = larger(largest[c], sum_of(p, e[c]));
  }
}

/// 1 for the exponent of a product that has bits below the quantum: under the limit, but that of a product.
[[gnu::always_inline]] inline std::int16_t loses(std::int16_t e, std::int16_t limit) {
  const std::int16_t below = e < limit ? std::int16_t{1} : std::int16_t{0};
  return e > kNoTerm ? below : std::int16_t{0};
}

ASSAY_HOT void count_lost(const Term* terms, std::size_t count, const std::int16_t* limit, std::size_t n,
                          std::int16_t* lost) {
  for (std::size_t c = 0; c < n; ++c) lost[c] = 0;
  std::size_t t = 0;
  for (; t + 4 <= count; t += 4) {
    const std::int16_t p0 = terms[t].low, p1 = terms[t + 1].low, p2 = terms[t + 2].low, p3 = terms[t + 3].low;
    const std::int16_t *e0 = terms[t].v_exponent, *e1 = terms[t + 1].v_exponent, *e2 = terms[t + 2].v_exponent,
                       *e3 = terms[t + 3].v_exponent;
    for (std::size_t c = 0; c < n; ++c)
      lost[c] =
          static_cast<std::int16_t>(lost[c] + loses(sum_of(p0, e0[c]), limit[c]) + loses(sum_of(p1, e1[c]), limit[c]) +
                                    loses(sum_of(p2, e2[c]), limit[c]) + loses(sum_of(p3, e3[c]), limit[c]));
  }
  for (; t < count; ++t) {
    const std::int16_t p = terms[t].low, *e = terms[t].v_exponent;
    for (std::size_t c = 0; c < n; ++c) lost[c] = static_cast<std::int16_t>(lost[c] + loses(sum_of(p, e[c]), limit[c]));
  }
}

ASSAY_HOT void align(const double* c, const double* dev, std::size_t n, int kept, std::int16_t* largest,
                     std::int16_t* limit) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t e = exponent_of((std::abs(c[i]) + dev[i]) * (1 + 0x1p-8));
    const std::int64_t top = e > largest[i] ? e : largest[i];
    largest[i] = static_cast<std::int16_t>(top);
    limit[i] = static_cast<std::int16_t>(top - kept);
  }
}

/// `more`: cuts of the accumulator besides.
ASSAY_HOT void truncate(const double* c, const std::int16_t* largest, const std::int16_t* count, std::size_t n,
                        int aligned, int output, int more, double* error, double* dev) {
  for (std::size_t i = 0; i < n; ++i) {
    const double low = std::abs(c[i]) - dev[i];
    const std::int64_t e = exponent_of(low > 0 ? low : 0.0);
    const int cut = static_cast<int>(e - output < largest[i] - aligned) & static_cast<int>(std::abs(c[i]) + dev[i] > 0);
    // 2^(E - 40): fp64's own rounding of the exact sums.
    const double lost = (count[i] + more + cut) * power_of_two(largest[i] - aligned) + power_of_two(largest[i] - 40);
    error[i] += lost;
    dev[i] += lost;
  }
}

ASSAY_HOT void round_result(const double* c, std::size_t n, double unit, double* error, double* dev) {
  for (std::size_t i = 0; i < n; ++i) {
    const double lost = unit * (std::abs(c[i]) + dev[i]);
    error[i] += lost;
    dev[i] += lost;
  }
}

ASSAY_HOT void scale(double factor, double rounding, std::size_t n, double* c, double* error, double* dev) {
  for (std::size_t i = 0; i < n; ++i) {
    c[i] *= factor;
    error[i] *= factor;
    dev[i] *= factor;
    const double lost = rounding * (std::abs(c[i]) + dev[i]);
    error[i] += lost;
    dev[i] += lost;
  }
}

/// One accumulator per channel: the exact value, its accumulation error, its deviation.
struct Accumulators {
  explicit Accumulators(std::size_t n) : c(n), error(n), dev(n) {}
  std::vector<double> c, error, dev;
  bool widened = false;  ///< just multiplied in fp32
  void clear() {
    std::fill(c.begin(), c.end(), 0.0);
    std::fill(error.begin(), error.end(), 0.0);
    std::fill(dev.begin(), dev.end(), 0.0);
  }
};

class Chain {
 public:
  Chain(const ChainForm& form, std::size_t n)
      : form_(form), n_(n), largest_(n), limit_(n), count_(n), product_bits_(2 * info(form.operand).fraction_bits) {}

  void block(std::span<const Term> terms, Accumulators& acc) {
    if (form_.model != nullptr) {
      find_largest(terms.data(), terms.size(), n_, largest_.data());
      align(acc.c.data(), acc.dev.data(), n_, form_.model->alignment_bits - product_bits_, largest_.data(),
            limit_.data());
      count_lost(terms.data(), terms.size(), limit_.data(), n_, count_.data());
      truncate(acc.c.data(), largest_.data(), count_.data(), n_, form_.model->alignment_bits, form_.model->output_bits,
               acc.widened ? 2 : 0, acc.error.data(), acc.dev.data());
      acc.widened = false;
    }
    add_products(terms.data(), terms.size(), n_, acc.c.data());
    for (const Term& t : terms)
      if (t.gap != 0) add_magnitude(t.gap, t.v, n_, acc.dev.data());
    if (form_.model != nullptr)
      round_result(acc.c.data(), n_, exp2_64(-form_.model->output_bits), acc.error.data(), acc.dev.data());
  }

  /// into += beta from: in fp32, `each` roundings of either part and `both` of the result.
  void combine(double beta, double each, double both, const Accumulators& from, Accumulators& into) const {
    for (std::size_t i = 0; i < n_; ++i) {
      const double part = each * (std::abs(into.c[i]) + into.dev[i] + beta * (std::abs(from.c[i]) + from.dev[i]));
      into.c[i] += beta * from.c[i];
      into.error[i] += beta * from.error[i] + part;
      into.dev[i] += beta * from.dev[i] + part;
      const double lost = both * (std::abs(into.c[i]) + into.dev[i]);
      into.error[i] += lost;
      into.dev[i] += lost;
    }
  }

 private:
  const ChainForm& form_;
  std::size_t n_;
  std::vector<std::int16_t> largest_, limit_, count_;
  int product_bits_;
};

}  // namespace

std::int16_t aligned_exponent(double value, int min_exponent) {
  if (value == 0) return kNoExponent;
  return static_cast<std::int16_t>(std::max<std::int64_t>(exponent_of(std::abs(value)), min_exponent));
}

void sum_values(const SplitWalk& split, std::span<const std::int32_t> keys, const WeightReplay& weights,
                const ValueOperand& values, const ChainForm& form, ValueSums& out) {
  const std::size_t n = values.channels;
  const int block_k = form.model != nullptr ? form.model->block_k : 16, min_exponent = info(form.operand).min_exponent;
  const int group = form.own_tile ? form.tile_n : form.promote_n;  // keys that start from zero together; 0: all
  Chain chain(form, n);
  Accumulators all(n), part(n);
  out.ambiguous.assign(n, 0.0), out.factors.assign(n, 0.0), out.magnitude.assign(n, 0.0);
  std::vector<Term> terms;
  double carried = 0;
  for (const TileStep& step : split.steps) {
    if (step.event) {
      scale(exp64(step.carried - carried), kU32, n, all.c.data(), all.error.data(), all.dev.data());
      all.widened = form.model != nullptr && form.model->output_bits < 23;
    }
    carried = step.carried;
    const double factor = step.weight * (step.weight_error <= 0.5 ? step.weight_error * (1 + step.weight_error)
                                                                  : exp64(step.weight_error));
    Accumulators& into = group > 0 ? part : all;
    const std::int32_t start = step.start;
    const auto finish_group = [&] {
      if (form.own_tile)
        chain.combine(exp64(step.carried - step.depth), 4 * kU32, 3 * kU32, part, all);
      else if (group > 0)
        chain.combine(1, 0, kU32, part, all);
      part.clear();
    };
    for (std::size_t j = step.begin; j < step.end;) {
      const std::int32_t block = (keys[j] - start) / block_k;
      terms.clear();
      std::size_t end = j;
      for (; end < step.end && (keys[end] - start) / block_k == block; ++end) {
        const auto at = static_cast<std::size_t>(keys[end]) * n;
        const double high = weights.tilde[end] + weights.gap[end], low = weights.tilde[end] - weights.gap[end];
        if (high == 0) continue;
        terms.push_back({weights.tilde[end], weights.gap[end], aligned_exponent(high, min_exponent),
                         low > 0 ? aligned_exponent(low, min_exponent) : static_cast<std::int16_t>(min_exponent),
                         values.v + at, values.exponent + at});
        const double* v = values.v + at;
        if (weights.gap[end] != 0) add_magnitude(weights.gap[end] * step.weight, v, n, out.ambiguous.data());
        if (factor != 0) add_magnitude(high * factor, v, n, out.factors.data());
        if (form.magnitudes) add_magnitude(high * step.weight, v, n, out.magnitude.data());
      }
      if (!terms.empty()) chain.block(terms, into);
      if (group > 0 && (end == step.end || (keys[end] - start) / group != (keys[j] - start) / group)) finish_group();
      j = end;
    }
  }
  out.sum = std::move(all.c);
  out.error = std::move(all.error);
}

}  // namespace assay

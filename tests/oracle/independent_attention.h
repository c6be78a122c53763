// A second evaluation of attention's definition, in 1,000-bit MPFR: shares no mask, head-map, length or class code with
// oracle/.
#pragma once

#include <algorithm>
#include <array>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"
#include "oracle/truth.h"

namespace assay::independent {

namespace mp = boost::multiprecision;
using Real = mp::number<mp::mpfr_float_backend<301>, mp::et_off>;
/// Twice the unit roundoff of Real, so that sums of roundoffs need no second-order terms.
inline const Real kUnit = mp::ldexp(Real(1), -998);

/// One output element: |exact - value| <= error where classes hold kNumber.
struct Expected {
  ClassSet classes = 0;
  Real value = 0, error = 0;
};

/// By position in the storage of the outputs.
struct Outputs {
  std::map<std::int64_t, Expected> o, lse;
};

/// An extended real: sign of infinity, NaN, or a number with the sum of magnitudes that went into it.
struct Extended {
  enum Kind { kFinite, kPositive, kNegative, kInvalid } kind = kFinite;
  Real value = 0, magnitude = 0;
};

inline Extended extended(double x) {
  if (x != x) return {Extended::kInvalid, 0, 0};
  if (x > 1.7976931348623157e308) return {Extended::kPositive, 0, 0};
  if (x < -1.7976931348623157e308) return {Extended::kNegative, 0, 0};
  return {Extended::kFinite, Real(x), mp::abs(Real(x))};
}

inline Extended multiply(const Extended& a, const Extended& b) {
  if (a.kind == Extended::kInvalid || b.kind == Extended::kInvalid) return {Extended::kInvalid, 0, 0};
  const auto sign = [](const Extended& x) {
    if (x.kind == Extended::kPositive) return 1;
    if (x.kind == Extended::kNegative) return -1;
    return x.value > 0 ? 1 : x.value < 0 ? -1 : 0;
  };
  if (a.kind == Extended::kFinite && b.kind == Extended::kFinite)
    return {Extended::kFinite, a.value * b.value, a.magnitude * b.magnitude};
  switch (sign(a) * sign(b)) {
    case 1: return {Extended::kPositive, 0, 0};
    case -1: return {Extended::kNegative, 0, 0};
    default: return {Extended::kInvalid, 0, 0};
  }
}

inline Extended add(const Extended& a, const Extended& b) {
  if (a.kind == Extended::kFinite && b.kind == Extended::kFinite)
    return {Extended::kFinite, a.value + b.value, a.magnitude + b.magnitude};
  if (a.kind == Extended::kFinite) return b;
  if (b.kind == Extended::kFinite) return a;
  return a.kind == b.kind ? a : Extended{Extended::kInvalid, 0, 0};
}

class Attention {
 public:
  explicit Attention(const Problem& problem) : problem_(problem), p_(attention_params(problem.params)) {}

  Outputs evaluate() {
    Outputs outputs;
    if (const Tensor* rows = find("rows")) {
      for (std::int64_t r = 0; r < rows->layout.shape[0]; ++r)
        row(whole(*rows, {r, 0}), whole(*rows, {r, 1}), whole(*rows, {r, 2}), outputs);
      return outputs;
    }
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t h = 0; h < p_.heads_q; ++h)
        for (std::int64_t i = 0; i < length("q", b); ++i) row(b, h, i, outputs);
    return outputs;
  }

 private:
  using Index = std::vector<std::int64_t>;

  const Tensor* find(const std::string& role) const {
    for (const Tensor& t : problem_.inputs)
      if (t.layout.role == role) return &t;
    return nullptr;
  }
  const TensorLayout* find_output(const std::string& role) const {
    for (const TensorLayout& t : problem_.outputs)
      if (t.role == role) return &t;
    return nullptr;
  }
  static std::int64_t position(const TensorLayout& layout, const Index& index) {
    std::int64_t at = layout.offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * layout.strides[axis];
    return at;
  }
  static double number(const Tensor& t, const Index& index) {
    const auto bytes = static_cast<std::size_t>(info(t.layout.format).storage_bits / 8);
    const std::size_t first = static_cast<std::size_t>(position(t.layout, index)) * bytes;
    std::uint64_t code = 0;
    for (std::size_t k = bytes; k-- > 0;) code = code << 8 | std::to_integer<std::uint64_t>(t.bytes[first + k]);
    return decode(t.layout.format, code);
  }
  static std::int64_t whole(const Tensor& t, const Index& index) { return static_cast<std::int64_t>(number(t, index)); }

  bool packed() const { return p_.batching == Batching::kPacked; }
  /// Length of sequence b of side "q" or "kv", read from the tensors that a kernel would read.
  std::int64_t length(const std::string& side, std::int64_t b) const {
    if (packed()) return start(side, b + 1) - start(side, b);
    if (p_.batching == Batching::kPadded) return whole(*find("seqlens_" + side), {b});
    return find(side == "q" ? "q" : "k")->layout.shape[2];
  }
  std::int64_t start(const std::string& side, std::int64_t b) const { return whole(*find("cu_seqlens_" + side), {b}); }

  Index vector_at(const std::string& side, std::int64_t b, std::int64_t head, std::int64_t i, std::int64_t c) const {
    return packed() ? Index{start(side, b) + i, head, c} : Index{b, head, i, c};
  }

  bool takes_part(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    std::int64_t here = i;
    if (p_.align == Align::kBottomRight) here += length("kv", b) - length("q", b);
    const std::int64_t offset = j - here;
    const bool right_of_left_end =
        p_.window_left < 0 ||
        (p_.window_ends == WindowEnds::kInclusive ? offset >= -p_.window_left : offset > -p_.window_left);
    const bool left_of_right_end = p_.window_right < 0 || offset <= p_.window_right;
    const bool past = !p_.causal || offset <= 0;
    const bool kept = p_.data_mask != DataMask::kBool || number(*find("mask"), {b, h, i, j}) != 0;
    return right_of_left_end && left_of_right_end && past && kept;
  }

  Extended logit(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    Extended s;
    for (std::int64_t c = 0; c < p_.dim_qk; ++c)
      s = add(s, multiply(extended(number(*find("q"), vector_at("q", b, h, i, c))),
                          extended(number(*find("k"), vector_at("kv", b, group(h), j, c)))));
    Extended x = multiply(extended(static_cast<double>(p_.scale)), s);
    if (p_.data_mask == DataMask::kAdditive) x = add(x, extended(number(*find("mask"), {b, h, i, j})));
    return x;
  }

  std::int64_t group(std::int64_t h) const { return h * p_.heads_kv / p_.heads_q; }

  /// sum w v / sum w over the keys with a weight, where every weight has relative error <= `relative`.
  Expected average(std::int64_t b, std::int64_t h, std::int64_t c, const std::map<std::int64_t, Real>& weights,
                   const Real& relative) const {
    int nan = 0, plus = 0, minus = 0, nonzero = 0;
    Real sum = 0, absolute = 0, total = 0;
    for (const auto& [j, w] : weights) {
      const Extended v = extended(number(*find("v"), vector_at("kv", b, group(h), j, c)));
      nan += v.kind == Extended::kInvalid;
      plus += v.kind == Extended::kPositive;
      minus += v.kind == Extended::kNegative;
      nonzero += v.kind != Extended::kFinite || v.value != 0;
      sum += w * v.value;
      absolute += w * v.magnitude;
      total += w;
    }
    if (nan > 0 || (plus > 0 && minus > 0)) return {kNan, 0, 0};
    if (plus > 0) return {kPlusInf, 0, 0};
    if (minus > 0) return {kMinusInf, 0, 0};
    if (nonzero == 0) return {kZero, 0, 0};
    // Numerator and denominator each move by `relative` of their absolute sums, plus n + 2 roundings.
    const Real n = Real(weights.size());
    return {kNumber, sum / total, 4 * (relative + (n + 2) * kUnit) * absolute / total};
  }

  ClassSet empty_lse() const { return p_.empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf; }
  Expected empty_output(std::int64_t b, std::int64_t h, std::int64_t c) const {
    if (p_.empty_output == EmptyOutput::kNan) return {kNan, 0, 0};
    std::map<std::int64_t, Real> all;
    if (p_.empty_output == EmptyOutput::kMean)
      for (std::int64_t j = 0; j < length("kv", b); ++j) all[j] = 1;
    return all.empty() ? Expected{kZero, 0, 0} : average(b, h, c, all, 0);
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t i, Outputs& out) const {
    std::map<std::int64_t, Extended> x;  // the admissible keys
    for (std::int64_t j = 0; j < length("kv", b); ++j)
      if (takes_part(b, h, i, j)) x[j] = logit(b, h, i, j);
    const auto count = [&](Extended::Kind kind) {
      return std::count_if(x.begin(), x.end(), [&](const auto& key) { return key.second.kind == kind; });
    };
    const TensorLayout& o_layout = *find_output("o");
    const auto set_o = [&](std::int64_t c, Expected e) {
      out.o[position(o_layout, vector_at("q", b, h, i, c))] = std::move(e);
    };
    const auto set_lse = [&](Expected e) {
      const TensorLayout* lse = find_output("lse");
      if (lse == nullptr) return;
      out.lse[position(*lse, packed() ? Index{start("q", b) + i, h} : Index{b, h, i})] = std::move(e);
    };
    const std::int64_t dv = p_.dim_v;
    if (x.empty()) {
      for (std::int64_t c = 0; c < dv; ++c) set_o(c, empty_output(b, h, c));
      return set_lse({empty_lse(), 0, 0});
    }
    if (count(Extended::kInvalid) > 0 || count(Extended::kPositive) > 0) {
      for (std::int64_t c = 0; c < dv; ++c) set_o(c, {kNan, 0, 0});
      return set_lse({static_cast<ClassSet>(count(Extended::kInvalid) > 0 ? kNan : kNan + kPlusInf), 0, 0});
    }
    if (count(Extended::kFinite) == 0) {
      for (std::int64_t c = 0; c < dv; ++c) {
        Expected e = empty_output(b, h, c);
        e.classes = static_cast<ClassSet>(e.classes | kNan);
        set_o(c, e);
      }
      return set_lse({static_cast<ClassSet>(kNan | kMinusInf | empty_lse()), 0, 0});
    }
    weigh(b, h, x, set_o, set_lse);
  }

  template <class SetO, class SetLse>
  void weigh(std::int64_t b, std::int64_t h, const std::map<std::int64_t, Extended>& x, SetO set_o,
             SetLse set_lse) const {
    Real largest = 0, e = 0,
         total = 0;  // e: each x_j is off by d products, d sums, a scaling and a bias of its magnitude
    bool first = true;
    for (const auto& [j, logit] : x) {
      if (logit.kind != Extended::kFinite) continue;
      if (first || logit.value > largest) largest = logit.value;
      first = false;
      e = std::max(e, Real((p_.dim_qk + 3) * kUnit * logit.magnitude));
    }
    std::map<std::int64_t, Real> weights;
    for (const auto& [j, logit] : x)
      if (logit.kind == Extended::kFinite) total += weights[j] = mp::exp(logit.value - largest);
    // The exponent x_j - m moves by 2 e and one rounding (<= 2 e); exp adds a rounding; e^t - 1 <= 2 t here.
    const Real relative = 8 * e + 2 * kUnit;
    for (std::int64_t c = 0; c < p_.dim_v; ++c) {
      Expected o = average(b, h, c, weights, relative);
      for (std::int64_t j = 0; j < length("kv", b); ++j) {
        const bool zero_weight = weights.count(j) == 0;
        const bool counts = x.count(j) != 0 || p_.masked_nonfinite == MaskedNonfinite::kPropagates;
        const double v = number(*find("v"), vector_at("kv", b, group(h), j, c));
        if (zero_weight && counts && !(v - v == 0)) o.classes = static_cast<ClassSet>(o.classes | kNan);
      }
      set_o(c, o);
    }
    const Real n = Real(weights.size());
    Expected lse{kNumber, largest + mp::log(total), 0};
    // m is off by e, log l by twice the relative error of l; then two roundings, and two more in base 2.
    lse.error = e + 2 * (relative + n * kUnit) + 4 * kUnit * (mp::abs(largest) + mp::log(total));
    if (p_.lse == LseBase::kTwo) {
      const Real ln2 = mp::log(Real(2));
      lse.value /= ln2;
      lse.error /= ln2;
    }
    set_lse(lse);
  }

  const Problem& problem_;
  AttentionParams p_;
};

}  // namespace assay::independent

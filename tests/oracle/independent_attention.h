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

/// One problem as these tests read it: lengths, places, masks and factors, straight from the tensors.
class Reader {
 public:
  explicit Reader(const Problem& problem) : problem_(problem), p_(attention_params(problem.params)) {
    for (const Tensor& t : problem.inputs) tensors_[t.layout.role] = &t;
  }

 protected:
  using Index = std::vector<std::int64_t>;

  const Tensor& tensor(const std::string& role) const { return *tensors_.at(role); }
  bool has(const std::string& role) const { return tensors_.count(role) != 0; }
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
  double number(const std::string& role, const Index& index) const {
    const Tensor& t = tensor(role);
    const auto bytes = static_cast<std::size_t>(info(t.layout.format).storage_bits / 8);
    const std::size_t first = static_cast<std::size_t>(position(t.layout, index)) * bytes;
    std::uint64_t code = 0;
    for (std::size_t k = bytes; k-- > 0;) code = code << 8 | std::to_integer<std::uint64_t>(t.bytes[first + k]);
    return decode(t.layout.format, code);
  }
  std::int64_t whole(const std::string& role, const Index& index) const {
    return static_cast<std::int64_t>(number(role, index));
  }

  bool packed() const { return p_.batching == Batching::kPacked; }
  bool table() const { return has("block_table"); }
  bool lists() const { return has("kv_indptr"); }
  std::int64_t start(const std::string& side, std::int64_t b) const { return whole("cu_seqlens_" + side, {b}); }
  /// Queries or keys ("q" or "kv") of sequence b.
  std::int64_t length(const std::string& side, std::int64_t b) const {
    if (side == "kv" && lists()) {
      const std::int64_t pages = whole("kv_indptr", {b + 1}) - whole("kv_indptr", {b});
      return pages == 0 ? 0 : (pages - 1) * p_.page + whole("kv_last_page_len", {b});
    }
    if (side == "kv" && table()) return whole("seqlens_kv", {b});
    const std::int64_t before = side == "kv" ? p_.prefix : 0;
    if (packed()) return before + start(side, b + 1) - start(side, b);
    if (p_.batching == Batching::kPadded) return before + whole("seqlens_" + side, {b});
    return before + tensor(side == "q" ? "q" : "k").layout.shape[2];
  }
  Index query(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
    return packed() ? Index{start("q", b) + i, h, c} : Index{b, h, i, c};
  }
  /// Channel c of key or value ("k" or "v") j.
  double key_number(std::string role, std::int64_t b, std::int64_t g, std::int64_t j, std::int64_t c) const {
    if (p_.v_in_k) role = "k";
    if (table() || lists()) {
      const std::int64_t page = table() ? whole("block_table", {b, j / p_.page})
                                        : whole("kv_indices", {whole("kv_indptr", {b}) + j / p_.page});
      const std::int64_t slot = j % p_.page;
      switch (p_.kv_store) {
        case KvStore::kHnd: return number(role, {page, g, slot, c});
        case KvStore::kVllmX:
          if (role == "v") return number(role, {page, g, c, slot});
          {
            const std::int64_t x = tensor("k").layout.shape.back();
            return number(role, {page, g, c / x, slot, c % x});
          }
        default: return number(role, {page, slot, g, c});
      }
    }
    if (j < p_.prefix) return number(role + "_prefix", {g, j, c});
    const std::int64_t own = j - p_.prefix;
    return packed() ? number(role, {start("kv", b) + own, g, c}) : number(role, {b, g, own, c});
  }

  std::int64_t group(std::int64_t h) const { return h * p_.heads_kv / p_.heads_q; }
  std::int64_t here(std::int64_t b, std::int64_t i) const {
    return p_.align == Align::kBottomRight ? i + length("kv", b) - length("q", b) : i;
  }

  bool takes_part(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const std::int64_t offset = j - here(b, i);
    const bool right_of_left_end =
        p_.window_left < 0 ||
        (p_.window_ends == WindowEnds::kInclusive ? offset >= -p_.window_left : offset > -p_.window_left);
    const bool left_of_right_end = p_.window_right < 0 || offset <= p_.window_right;
    const bool past = !p_.causal || offset <= 0;
    const bool segment = !p_.segments || whole("seg_q", {b, i}) == whole("seg_kv", {b, j});
    return right_of_left_end && left_of_right_end && past && segment && kept(b, h, i, j);
  }
  bool kept(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (p_.data_mask == DataMask::kBool) return number("mask", {b, h, i, j}) != 0;
    if (p_.data_mask == DataMask::kBlock) return number("mask", {b, h, i / p_.block_q, j / p_.block_kv}) != 0;
    if (p_.data_mask != DataMask::kList) return true;
    for (std::int64_t n = 0; n < p_.list_len; ++n)
      if (whole("mask", {b, h, i, n}) == j) return true;
    return false;
  }

  /// q_scale, k_scale or v_scale.
  double factor(const std::string& role, std::int64_t b, std::int64_t h, std::int64_t position) const {
    switch (p_.descale) {
      case Descale::kTensor: return number(role, {0});
      case Descale::kHead: return number(role, {b, group(h)});
      case Descale::kBlock: return number(role, {b, role == "q_scale" ? h : group(h), position / p_.scale_block});
      default: return 1;
    }
  }
  double alibi_steps(std::int64_t b, std::int64_t i, std::int64_t j) const {
    std::int64_t steps = 0;
    if (p_.alibi == Alibi::kDistance) steps = -std::abs(here(b, i) - j);
    if (p_.alibi == Alibi::kKey) steps = j;
    if (p_.alibi == Alibi::kDiagonal) steps = j - i;
    if (p_.alibi == Alibi::kLast) steps = j - length("kv", b) + 1;
    return static_cast<double>(steps);
  }

  const Problem& problem_;
  AttentionParams p_;
  std::map<std::string, const Tensor*> tensors_;
};

class Attention : Reader {
 public:
  explicit Attention(const Problem& problem) : Reader(problem) {}

  Outputs evaluate() {
    Outputs outputs;
    if (has("rows")) {
      for (std::int64_t r = 0; r < tensor("rows").layout.shape[0]; ++r)
        row(whole("rows", {r, 0}), whole("rows", {r, 1}), whole("rows", {r, 2}), outputs);
      return outputs;
    }
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t h = 0; h < p_.heads_q; ++h)
        for (std::int64_t i = 0; i < length("q", b); ++i) row(b, h, i, outputs);
    return outputs;
  }

 private:
  /// Weights relative to e^m of the keys with one, and of the sink; every one has relative error <= `relative`.
  struct Weights {
    std::map<std::int64_t, Real> key;
    Real sink = 0, relative = 0;
  };
  /// What happened on the way to a row's logits that lets a kernel end in NaN.
  struct Freedom {
    bool capped_infinity = false, infinite_factor = false;
  };

  Extended logit(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, Freedom& freedom) const {
    Extended s;
    for (std::int64_t c = 0; c < p_.dim_qk; ++c)
      s = add(s, multiply(extended(number("q", query(b, h, i, c))), extended(key_number("k", b, group(h), j, c))));
    Extended y = s;
    for (const double f : {static_cast<double>(p_.scale), factor("q_scale", b, h, i), factor("k_scale", b, h, j)}) {
      if (!(f - f == 0)) freedom.infinite_factor = true;
      y = multiply(y, extended(f));
    }
    if (p_.softcap > 0 && y.kind != Extended::kInvalid) {
      const Real cap(p_.softcap);
      if (y.kind != Extended::kFinite) {
        freedom.capped_infinity = true;
        y = {Extended::kFinite, y.kind == Extended::kPositive ? cap : -cap, cap};
      } else {
        y.value = cap * mp::tanh(y.value / cap);  // moves by less than y; |cap tanh| <= |y|
      }
    }
    if (p_.alibi != Alibi::kNone)
      y = add(y, multiply(extended(number("slopes", p_.slopes_per_batch ? Index{b, h} : Index{h})),
                          extended(alibi_steps(b, i, j))));
    if (p_.data_mask == DataMask::kAdditive) y = add(y, extended(number("mask", {b, h, i, j})));
    return y;
  }

  /// sum w f v / (sum w + sink) over the keys with a weight.
  Expected average(std::int64_t b, std::int64_t h, std::int64_t c, const Weights& weights) const {
    int bad_operand = 0, infinite_factor = 0, nan = 0, plus = 0, minus = 0, nonzero = 0;
    Real sum = 0, absolute = 0, total = weights.sink;
    for (const auto& [j, w] : weights.key) {
      const Extended f = extended(factor("v_scale", b, h, j)), v = extended(key_number("v", b, group(h), j, c));
      const Extended product = multiply(f, v);
      bad_operand += f.kind == Extended::kInvalid || v.kind == Extended::kInvalid;
      infinite_factor += f.kind == Extended::kPositive || f.kind == Extended::kNegative;
      nan += product.kind == Extended::kInvalid;
      plus += product.kind == Extended::kPositive;
      minus += product.kind == Extended::kNegative;
      nonzero += product.kind != Extended::kFinite || product.value != 0;
      sum += w * product.value;
      absolute += w * product.magnitude;
      total += w;
    }
    if (bad_operand > 0) return {kNan, 0, 0};
    if (infinite_factor > 0) return {kNan + kPlusInf + kMinusInf, 0, 0};
    if (nan > 0 || (plus > 0 && minus > 0)) return {kNan, 0, 0};
    if (plus > 0) return {kPlusInf, 0, 0};
    if (minus > 0) return {kMinusInf, 0, 0};
    if (nonzero == 0) return {kZero, 0, 0};
    // Numerator and denominator each move by `relative` of their absolute sums, plus n + 3 roundings.
    const Real n = Real(weights.key.size());
    return {kNumber, sum / total, 4 * (weights.relative + (n + 3) * kUnit) * absolute / total};
  }

  ClassSet empty_lse() const { return p_.empty_lse == EmptyLse::kMinusInf ? kMinusInf : kPlusInf; }
  Expected empty_output(std::int64_t b, std::int64_t h, std::int64_t c) const {
    if (p_.empty_output == EmptyOutput::kNan) return {kNan, 0, 0};
    Weights all;
    if (p_.empty_output == EmptyOutput::kMean)
      for (std::int64_t j = 0; j < length("kv", b); ++j) all.key[j] = 1;
    return all.key.empty() ? Expected{kZero, 0, 0} : average(b, h, c, all);
  }

  static void allow(Expected& e, int classes) { e.classes = static_cast<ClassSet>(e.classes | classes); }

  void row(std::int64_t b, std::int64_t h, std::int64_t i, Outputs& out) const {
    std::map<std::int64_t, Extended> x;  // the admissible keys
    Freedom freedom;
    for (std::int64_t j = 0; j < length("kv", b); ++j)
      if (takes_part(b, h, i, j)) x[j] = logit(b, h, i, j, freedom);
    const auto count = [&](Extended::Kind kind) {
      return std::count_if(x.begin(), x.end(), [&](const auto& key) { return key.second.kind == kind; });
    };
    std::vector<Expected> o(static_cast<std::size_t>(p_.dim_v));
    Expected lse;
    if (count(Extended::kInvalid) > 0 || count(Extended::kPositive) > 0) {
      for (Expected& e : o) e = {kNan, 0, 0};
      lse = {static_cast<ClassSet>(count(Extended::kInvalid) > 0 ? kNan : kNan + kPlusInf), 0, 0};
    } else {
      decided(b, h, x, count(Extended::kFinite) > 0, o, lse);
      if (freedom.capped_infinity || freedom.infinite_factor) {
        for (Expected& e : o) allow(e, kNan);
        allow(lse, kNan);
      }
    }
    for (std::size_t c = 0; c < o.size(); ++c)
      out.o[position(*find_output("o"), query(b, h, i, static_cast<std::int64_t>(c)))] = o[c];
    if (const TensorLayout* layout = find_output("lse"))
      out.lse[position(*layout, packed() ? Index{start("q", b) + i, h} : Index{b, h, i})] = lse;
  }

  /// A row without NaN or +inf among its logits.
  void decided(std::int64_t b, std::int64_t h, const std::map<std::int64_t, Extended>& x, bool weights,
               std::vector<Expected>& o, Expected& lse) const {
    const bool has_sink = p_.sink != Sink::kNone;
    const Extended sink = has_sink ? extended(number("sink", {h})) : Extended{Extended::kNegative, 0, 0};
    const bool in_lse = p_.sink == Sink::kInLse;
    if (weights) {
      weigh(b, h, x, sink, o, lse);
    } else {
      for (std::size_t c = 0; c < o.size(); ++c) {
        o[c] =
            sink.kind == Extended::kFinite ? Expected{kZero, 0, 0} : empty_output(b, h, static_cast<std::int64_t>(c));
        if (!x.empty()) allow(o[c], kNan);
      }
      lse = {static_cast<ClassSet>(x.empty() ? empty_lse() : kNan | kMinusInf | empty_lse()), 0, 0};
      if (sink.kind == Extended::kFinite && in_lse) {
        lse = in_base({static_cast<ClassSet>(x.empty() ? kNumber : kNumber | kNan), sink.value, 0});
      }
    }
    if (weights || sink.kind == Extended::kFinite) allow_nan_behind_zero_weights(b, h, x, o);
    if (sink.kind != Extended::kInvalid && sink.kind != Extended::kPositive) return;
    const bool nan = sink.kind == Extended::kInvalid;
    for (Expected& e : o) {
      const bool finite = !weights || (e.classes & (kNumber | kZero)) != 0;
      e = {static_cast<ClassSet>(nan || !finite ? kNan : kZero | kNan), 0, 0};
    }
    if (in_lse)
      lse = {static_cast<ClassSet>(nan ? kNan : kPlusInf | kNan), 0, 0};
    else
      allow(lse, kNan);
  }

  void allow_nan_behind_zero_weights(std::int64_t b, std::int64_t h, const std::map<std::int64_t, Extended>& x,
                                     std::vector<Expected>& o) const {
    for (std::int64_t j = 0; j < length("kv", b); ++j) {
      const auto at = x.find(j);
      if (at != x.end() ? at->second.kind == Extended::kFinite : p_.masked_nonfinite != MaskedNonfinite::kPropagates)
        continue;
      for (std::size_t c = 0; c < o.size(); ++c) {
        const Extended w = multiply(extended(factor("v_scale", b, h, j)),
                                    extended(key_number("v", b, group(h), j, static_cast<std::int64_t>(c))));
        if (w.kind != Extended::kFinite) allow(o[c], kNan);
      }
    }
  }

  Expected in_base(Expected natural) const {
    if (p_.lse != LseBase::kTwo) return natural;
    const Real ln2 = mp::log(Real(2));
    natural.value /= ln2;
    natural.error = natural.error / ln2 + 2 * kUnit * mp::abs(natural.value);
    return natural;
  }

  void weigh(std::int64_t b, std::int64_t h, const std::map<std::int64_t, Extended>& x, const Extended& sink,
             std::vector<Expected>& o, Expected& lse) const {
    Real largest = 0, e = 0, total = 0;
    bool first = true;
    // e: each x_j is off by d products, d sums and at most 10 more roundings of its magnitude.
    for (const auto& [j, logit] : x) {
      if (logit.kind != Extended::kFinite) continue;
      if (first || logit.value > largest) largest = logit.value;
      first = false;
      e = std::max(e, Real((p_.dim_qk + 10) * kUnit * logit.magnitude));
    }
    if (sink.kind == Extended::kFinite) {
      largest = std::max(largest, sink.value);
      e = std::max(e, Real(3 * kUnit * mp::abs(sink.value)));
    }
    Weights weights;
    for (const auto& [j, logit] : x)
      if (logit.kind == Extended::kFinite) total += weights.key[j] = mp::exp(logit.value - largest);
    if (sink.kind == Extended::kFinite) weights.sink = mp::exp(sink.value - largest);
    // The exponent x_j - m moves by 2 e and one rounding (<= 2 e); exp adds a rounding; e^t - 1 <= 2 t here.
    weights.relative = 8 * e + 2 * kUnit;
    for (std::size_t c = 0; c < o.size(); ++c) o[c] = average(b, h, static_cast<std::int64_t>(c), weights);
    const Real n = Real(weights.key.size() + 1);
    if (p_.sink == Sink::kInLse) total += weights.sink;
    // m is off by e, log l by twice the relative error of l; then two roundings, and two more in base 2.
    const Real log_total = mp::log(total);
    lse = in_base({kNumber, largest + log_total,
                   e + 2 * (weights.relative + n * kUnit) + 4 * kUnit * (mp::abs(largest) + mp::abs(log_total))});
  }
};

}  // namespace assay::independent

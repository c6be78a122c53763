// Residuals of hypotheses.
//
// Noise of one element: u^2 = ulp^2 / 12 + (tau / 3)^2, tau of the highest level; where that is T0, whose tau is a
// worst case over all keys, (tau / 10)^2. Under a hypothesis the replay of P's rounding may be off (another maximum,
// other weights), so that 0.18 u_P^2 sum p_j^2 v_j^2 joins (probes.md 1).
#include "oracle/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "oracle/exp64.h"
#include "oracle/measure.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kWithin = 4;       // noise units of an explained element
constexpr double kFloor = 0x1p-18;  // relative error of a kernel in fp32, roughly
constexpr std::size_t kScreen = 4;  // failing rows that a hypothesis must explain in part before the others are asked

/// The level that says most about an element, as centre and tau.
struct Centre {
  double mid = 0, tau = 0;
  bool replayed = false;
};

Centre centre_of(const Evaluation& evaluation, std::size_t output, std::size_t i) {
  Centre c{evaluation.truth.outputs[output].mid[i], evaluation.bound.outputs[output].tau[i], false};
  for (const Tier& tier : evaluation.bound.tiers) {
    const OutputTier& out = tier.outputs[output];
    if (!out.tau.empty() && out.tau[i] < kInf) c = {out.mid[i], out.tau[i], true};
  }
  return c;
}

double square(double r) { return std::min(r * r, 1e30); }
double capped(double squared) { return std::min(squared, Fit::kCap * Fit::kCap); }

/// Evenly spread over `from`, at most `count` of them.
std::vector<std::size_t> spread_over(const std::vector<std::size_t>& from, std::size_t count) {
  if (from.size() <= count) return from;
  std::vector<std::size_t> some;
  for (std::size_t n = 0; n < count; ++n) some.push_back(from[n * from.size() / count]);
  return some;
}

/// An order in which any first few are far apart.
std::vector<std::size_t> far_apart(std::vector<std::size_t> rows) {
  std::vector<std::size_t> order;
  std::size_t step = 1;
  while (step * 2 < rows.size()) step *= 2;
  std::vector<bool> taken(rows.size(), false);
  for (; step > 0; step /= 2)
    for (std::size_t n = 0; n < rows.size(); n += step) {
      if (taken[n]) continue;
      taken[n] = true;
      order.push_back(rows[n]);
    }
  return order;
}

}  // namespace

double Fit::loud_share() const {
  if (loud == 0) return 0;
  const auto share = [](std::int64_t part, std::int64_t all) {
    return all == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(all);
  };
  return std::min(share(loud_explained - lse_explained, loud - loud_lse), share(lse_explained, loud_lse));
}

double Fit::removed() const {
  // What is left without a fault is about what the elements have that nobody rejects, unless the fault is in them too.
  constexpr double kUnitsTooSmall = 1.2;  // squared noise over its estimate, at most
  const double n = static_cast<double>(loud + quiet);
  const double most = kUnitsTooSmall * expected;
  const double left = quiet > 0 ? std::min(most, quiet_before / static_cast<double>(quiet) * n) : expected;
  const double excess = before - left;
  return excess > 0 ? (before - after) / excess : 0;
}

bool Fit::explains() const {
  constexpr double kMost = 0.6, kSignificant = 25;
  return loud > 0 && loud_share() >= kNearlyAll && quiet_share() >= kNearlyAll && removed() >= kMost &&
         before - after >= kSignificant;
}

Trial::Trial(const Evaluation& evaluation, const std::vector<Tensor>& outputs, double p_unit, std::size_t most_rows)
    : p_unit_(p_unit), row_fails_(evaluation.truth.rows.size(), false) {
  const std::size_t rows = row_fails_.size();
  first_.assign(evaluation.truth.outputs.size() * rows, {0, 0});
  for (std::size_t k = 0; k < evaluation.truth.outputs.size(); ++k) {
    const OutputTruth& truth = evaluation.truth.outputs[k];
    for (std::size_t i = 0; i < truth.element.size(); ++i) {
      const auto row = static_cast<std::size_t>(truth.row[i]);
      auto& [begin, end] = first_[k * rows + row];
      if (end == 0) begin = i;
      end = i + 1;
      const std::uint64_t code = load_code(outputs[k].bytes.data(), truth.layout.format, truth.element[i]);
      if (!accepted(evaluation, k, i, code) ||
          (code == canary_code(truth.layout.format) && truth.classes[i] != kAnything))
        row_fails_[row] = true;
    }
  }
  std::vector<std::size_t> bad, good;
  for (std::size_t r = 0; r < rows; ++r) (row_fails_[r] ? bad : good).push_back(r);
  const std::size_t half = most_rows / 2;
  const std::size_t bad_count = std::min(bad.size(), good.size() < half ? most_rows - good.size() : half);
  rows_ = far_apart(spread_over(bad, bad_count));
  failing_ = rows_.size();
  for (const std::size_t r : far_apart(spread_over(good, most_rows - failing_))) rows_.push_back(r);
  for (const std::size_t r : rows_) samples_.push_back(read(evaluation, outputs, r));
  for (const Sampled& row : samples_)
    for (const Element& e : row.elements)
      if (e.rejected) ++loud_, loud_lse_ += e.kind != Kind::kOutput;
}

Trial::Sampled Trial::read(const Evaluation& evaluation, const std::vector<Tensor>& outputs, std::size_t row) const {
  Sampled sampled;
  for (std::size_t k = 0; k < evaluation.truth.outputs.size(); ++k) {
    const OutputTruth& truth = evaluation.truth.outputs[k];
    const Format format = truth.layout.format;
    const std::string& role = truth.layout.role;
    const Kind kind = k == 0 ? Kind::kOutput : role == "m" ? Kind::kMaximum : role == "l" ? Kind::kSum : Kind::kLse;
    const auto [begin, end] = first_[k * row_fails_.size() + row];
    for (std::size_t i = begin; i < end; ++i) {
      const ClassSet classes = truth.classes[i] | evaluation.bound.outputs[k].also[i];
      if (classes == kAnything || !(truth.radius[i] < kInf)) continue;
      const std::uint64_t code = load_code(outputs[k].bytes.data(), format, truth.element[i]);
      const Centre centre = centre_of(evaluation, k, i);
      Element e{.kind = kind,
                .channel = i - begin,
                .value = decode(format, code),
                .centre = centre.mid,
                .truth = truth.mid[i]};
      e.number = (truth.classes[i] & (kNumber | kZero)) != 0;
      const double gap =
          ulp(format, std::isfinite(e.value) ? std::max(std::abs(e.value), std::abs(e.centre)) : e.centre);
      const double tau = centre.tau < kInf ? centre.tau : 0;
      const double part = centre.replayed ? tau / 3 : tau / 10;
      // Where the right answer is no number, or a zero without error, the tolerance says nothing about numbers.
      const double floor = e.number && tau > 0 ? 0 : kFloor * std::max(k == 0 ? 0.0 : 1.0, std::abs(e.value));
      e.unit = std::sqrt(gap * gap / 12 + part * part + (std::isfinite(floor) ? floor * floor : 0));
      e.slack = tau + gap / 2;
      e.rounding = gap / std::sqrt(12.0);
      e.tau = centre.tau;
      e.code = code;
      e.replayed = centre.replayed;
      e.canary = code == canary_code(format);
      e.rejected = e.canary || !accepted(evaluation, k, i, code);
      sampled.elements.push_back(e);
    }
  }
  return sampled;
}

/// NaN: the prediction says nothing about the element.
double Trial::predicted(const Element& e, const RowOutput& prediction) {
  const auto at = [&](const std::vector<double>& values) {
    return e.channel < values.size() ? values[e.channel] : kNone;
  };
  switch (e.kind) {
    case Kind::kOutput: return at(prediction.o);
    case Kind::kLse: return prediction.lse;
    case Kind::kMaximum: return at(prediction.m);
    case Kind::kSum: break;
  }
  return at(prediction.l);
}

double Trial::noise(const Element& e, const std::optional<RowOutput>& prediction) const {
  double square = e.unit * e.unit;
  if (e.kind == Kind::kOutput && prediction && !prediction->spread.empty())
    square += 0.18 * p_unit_ * p_unit_ * prediction->spread[e.channel];
  return std::sqrt(square);
}

void Trial::add(const Sampled& row, const std::optional<RowOutput>& prediction, Fit& fit) const {
  for (const Element& e : row.elements) {
    ++(e.rejected ? fit.loud : fit.quiet);
    fit.expected += 1;
    const bool state = e.kind == Kind::kMaximum || e.kind == Kind::kSum;
    const bool here =
        prediction && (e.kind == Kind::kOutput ? e.channel < prediction->o.size() : !state || !prediction->m.empty());
    const double p = here ? predicted(e, *prediction) : kNone;
    const bool number = e.number && std::isfinite(e.value) && !e.canary;
    const double before = number ? square((e.value - e.centre) / e.unit) : e.rejected ? Fit::kCap * Fit::kCap : 0.0;
    double after = before;
    bool explained = !e.rejected;
    double d = 0;
    if (here) {
      d = e.number && std::isfinite(p) ? p - e.truth : kNone;
      const double sigma = noise(e, prediction);
      if (e.canary) {  // no number was written: a prediction of NaN says as much
        explained = std::isnan(p);
        after = explained ? 0 : before;
      } else if (!std::isfinite(e.value) || !std::isfinite(p)) {
        const bool or_nan = e.kind == Kind::kOutput ? !prediction->or_nan.empty() && prediction->or_nan[e.channel]
                                                    : prediction->lse_or_nan;
        explained = std::isnan(e.value) ? std::isnan(p) || or_nan : e.value == p;
        after = explained ? 0 : Fit::kCap * Fit::kCap;
      } else {
        const double direct = e.value - p, residual = e.number ? e.value - e.centre - d : direct;
        // What a fault changes is no longer rounded as the replay says; elsewhere it still is.
        after = square(residual / (std::abs(d) > sigma ? sigma : e.unit));
        explained = std::abs(residual) <= std::max(kWithin * sigma, e.slack);
        // A row that lost all its keys has none of the rounding that the replay holds.
        if (!explained && p == 0 && direct == 0) explained = true, after = 0;
      }
    }
    fit.before += capped(before);
    if (!e.rejected) fit.quiet_before += capped(before);
    fit.after += capped(after);
    (e.rejected ? fit.loud_explained : fit.quiet_explained) += explained;
    if (e.rejected && e.kind != Kind::kOutput) ++fit.loud_lse, fit.lse_explained += explained;
    fit.predicted.push_back(d);
  }
}

double Trial::spread() const {
  double sum = 0, squares = 0;
  for (std::size_t n = 0; n < failing_; ++n) {
    double row = 0;
    for (const Element& e : samples_[n].elements)
      if (e.number && !e.canary && std::isfinite(e.value)) row += capped(square((e.value - e.centre) / e.unit));
    sum += row;
    squares += row * row;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

Trial::Errors Trial::errors(std::size_t n) const {
  Errors seen;
  for (const Element& e : samples_[n].elements) {
    const double error = e.number && std::isfinite(e.value) ? e.value - e.centre : kNone;
    if (e.kind == Kind::kOutput) {
      seen.o.resize(e.channel + 1, kNone);
      seen.o_unit.resize(e.channel + 1, 1);
      seen.o[e.channel] = error;
      seen.o_unit[e.channel] = e.unit;
    } else if (e.kind == Kind::kLse) {
      seen.lse = error;
      seen.lse_unit = e.unit;
    }
  }
  return seen;
}

/// Stops where too few of all loud elements are left for the hypothesis to explain (Fit::explains).
Fit Trial::fit_rows(const Predict& predict, std::size_t rows) const {
  Fit fit;
  const auto lost = [&] {
    const std::int64_t missed = fit.loud - fit.loud_explained, of_lse = fit.loud_lse - fit.lse_explained;
    const auto too_many = [](std::int64_t part, std::int64_t all) {
      return static_cast<double>(part) > (1 - Fit::kNearlyAll + 1e-9) * static_cast<double>(all);
    };
    return too_many(missed - of_lse, loud_ - loud_lse_) || too_many(of_lse, loud_lse_);
  };
  for (std::size_t n = 0; n < rows; ++n) {
    add(samples_[n], predict(rows_[n]), fit);
    if (n < failing_ && lost()) break;
    if (n + 1 == std::min(kScreen, failing_) && fit.loud_share() < 0.5) break;
  }
  return fit;
}

Fit Trial::fit(const Predict& predict) const { return fit_rows(predict, rows_.size()); }

/// value = <e, T> / <T, T>, weighted with w = 1 / (ulp^2 / 12 + what P's rounding leaves). Where no row fails, e counts
/// from the level's replay, which leaves nothing of P's rounding; otherwise from the truth, since a fault moves P
/// across its roundings, and P's rounding is noise. The variance of <e, T>: (T w)^2 ulp^2 / 12 per element, times how
/// many elements share a code, since equal values round equally; and 0.18 u_P^2 times the projection of w T.
Filtered Trial::filter(const Predict& tangent, const Projection& p_projection) const {
  const bool failing = failing_ > 0;
  double tt = 0, et = 0, reach = 0, rounding = 0, of_p = 0, scatter = 0;
  std::unordered_set<std::uint64_t> codes;
  Filtered out;
  for (std::size_t n = 0; n < rows_.size(); ++n) {
    const std::optional<RowOutput> slope = tangent(rows_[n]);
    if (!slope) continue;
    std::vector<double> weight(slope->o.size(), 0.0);
    bool replayed = !failing;
    for (const Element& e : samples_[n].elements) {
      if (e.kind != Kind::kOutput || !e.number || !std::isfinite(e.value) || !(e.tau < kInf)) continue;
      if (e.channel >= weight.size() || !std::isfinite(slope->o[e.channel])) continue;
      const bool exact = e.replayed && !failing;
      replayed = replayed && exact;
      double variance = e.rounding * e.rounding + (exact ? e.tau * e.tau / 9 : 0.0);
      if (!exact && e.channel < slope->spread.size()) variance += 0.18 * p_unit_ * p_unit_ * slope->spread[e.channel];
      const double t = slope->o[e.channel], error = e.value - (exact ? e.centre : e.truth), w = t / variance;
      weight[e.channel] = w;
      ++out.elements;
      codes.insert(e.code);
      tt += t * w;
      et += error * w;
      reach += e.tau * std::abs(w);
      rounding += w * w * e.rounding * e.rounding;
      scatter += error * error / variance;
    }
    if (!replayed) of_p += 0.18 * p_unit_ * p_unit_ * p_projection(rows_[n], weight);
  }
  if (!(tt > 0)) return {};
  const double shared = static_cast<double>(out.elements) / static_cast<double>(codes.size());
  out.value = et / tt;
  out.drop = et * et / tt;
  const double excess = std::max(1.0, (scatter - out.drop) / static_cast<double>(out.elements));
  out.standard_error = std::sqrt((rounding * shared + of_p) * excess) / tt;
  out.budget = reach / tt;
  return out;
}

bool Trial::tells_apart(const Fit& a, const Fit& b) const {
  constexpr double kSurely = 36;
  double apart = 0;
  std::size_t n = 0;
  for (const Sampled& row : samples_)
    for (const Element& e : row.elements) {
      if (n >= std::min(a.predicted.size(), b.predicted.size())) return apart > kSurely;
      const double x = a.predicted[n], y = b.predicted[n];
      ++n;
      if (std::isnan(x) != std::isnan(y)) return true;
      if (!std::isnan(x)) apart += capped(square((x - y) / e.unit));
    }
  return apart > kSurely;
}

}  // namespace assay

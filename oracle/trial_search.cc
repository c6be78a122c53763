// The search for a parameter of a hypothesis: a grid, a golden section, Gauss-Newton on the LSE, a parabola.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "oracle/exp64.h"
#include "oracle/trial.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::size_t kFew = 4;  // rows that the search looks at

}  // namespace

/// Costs of values on a few rows, each computed once.
class Trial::Search {
 public:
  Search(const Trial& trial, const PredictAt& predict, const Parameter& parameter)
      : trial_(trial), predict_(predict), range_(parameter), few_(std::min(kFew, trial.rows_.size())) {
    points_ = range_.whole ? static_cast<int>(range_.high - range_.low) + 1 : range_.grid;
    step_ = points_ > 1 ? (range_.high - range_.low) / (points_ - 1) : 0;
    last_ = points_ - 1;
  }

  double step() const { return step_; }

  /// Where a part of the grid surrounds, between two of its values, what many loud elements of the first failing rows
  /// hold, leaves that part alone to be searched. False: nowhere, so that the hypothesis is about something else, which
  /// is nearly always the case.
  bool narrow() {
    if (points_ < 2) return true;
    constexpr std::size_t kRows = 2;
    constexpr int kPoints = 12;
    const int every = range_.whole ? 1 : std::max(1, (points_ - 1) / kPoints);
    std::vector<int> at;
    for (int n = 0; n < points_ - 1; n += every) at.push_back(n);
    at.push_back(points_ - 1);
    std::vector<std::int64_t> votes(at.size(), 0);  // for values from at[k] to at[k + 1]
    std::int64_t loud = 0;
    for (std::size_t n = 0; n < std::min(kRows, trial_.failing_); ++n) {
      const std::vector<Element>& elements = trial_.samples_[n].elements;
      std::vector<Predicted> here = predictions(n, grid(at[0])), next;
      for (const Element& e : elements) loud += e.rejected;
      for (std::size_t k = 0; k + 1 < at.size(); ++k) {
        next = predictions(n, grid(at[k + 1]));
        for (std::size_t i = 0; i < elements.size(); ++i)
          votes[k] += elements[i].rejected && between(elements[i], here[i], next[i]);
        here = std::move(next);
      }
    }
    const std::int64_t most = *std::max_element(votes.begin(), votes.end());
    if (4 * most < loud) return false;
    if (range_.whole || loud == 0) return true;
    constexpr double kNearMost = 0.8;
    const auto many = [&](std::int64_t n) { return static_cast<double>(n) >= kNearMost * static_cast<double>(most); };
    const auto first = static_cast<std::size_t>(std::find_if(votes.begin(), votes.end(), many) - votes.begin());
    const auto last =
        votes.size() - 1 - static_cast<std::size_t>(std::find_if(votes.rbegin(), votes.rend(), many) - votes.rbegin());
    first_ = at[first == 0 ? 0 : first - 1];
    last_ = at[std::min(last + 2, at.size() - 1)];
    return true;
  }

  /// The value of least cost; where that of the least sum of squares lies elsewhere, that one too.
  std::vector<double> best() {
    int at = first_, of_squares = first_;
    for (int n = first_ + 1; n <= last_; ++n) {
      if (cost(grid(n)) < cost(grid(at))) at = n;
      if (squares(grid(n)) < squares(grid(of_squares))) of_squares = n;
    }
    std::vector<double> all{refined(at)};
    if (std::abs(of_squares - at) > 1) all.push_back(refined(of_squares));
    return all;
  }

 private:
  double refined(int at) {
    double best = grid(at);
    if (range_.whole || !(step_ > 0)) return best;
    const double found = golden(grid(std::max(0, at - 1)), grid(std::min(points_ - 1, at + 1)));
    if (cost(found) < cost(best)) best = found;
    return by_lse(best);
  }

  /// d of Fit::predicted, and its noise.
  struct Predicted {
    double d = 0, noise = 0;
  };

  std::vector<Predicted> predictions(std::size_t n, double t) const {
    const std::optional<RowOutput> prediction = predict_(trial_.rows_[n], t);
    Fit fit;
    trial_.add(trial_.samples_[n], prediction, fit);
    std::vector<Predicted> all;
    for (std::size_t i = 0; i < fit.predicted.size(); ++i)
      all.push_back({fit.predicted[i], trial_.noise(trial_.samples_[n].elements[i], prediction)});
    return all;
  }

  /// What a value between the two could predict for the element; classes say nothing.
  static bool between(const Element& e, const Predicted& a, const Predicted& b) {
    if (std::isnan(a.d) || std::isnan(b.d) || !e.number || e.canary || !std::isfinite(e.value)) return true;
    const double seen = e.value - e.centre;
    const double more = 0.25 * std::abs(a.d - b.d) + std::max(4 * std::max(a.noise, b.noise), e.slack);
    return seen >= std::min(a.d, b.d) - more && seen <= std::max(a.d, b.d) + more;
  }

  double grid(int n) const { return range_.low + n * step_; }

  /// e - d of the few rows in units of noise, NaN for classes.
  std::vector<double> residuals(double t) const {
    std::vector<double> all;
    for (std::size_t n = 0; n < few_; ++n) {
      Fit fit;
      trial_.add(trial_.samples_[n], predict_(trial_.rows_[n], t), fit);
      std::size_t next = 0;
      for (const Element& e : trial_.samples_[n].elements) {
        const double r = (e.value - e.centre - fit.predicted[next++]) / e.unit;
        all.push_back(e.number && std::isfinite(r) ? r : std::numeric_limits<double>::quiet_NaN());
      }
    }
    return all;
  }

  struct Cost {
    double logarithms = 0, squares = 0;
  };
  const Cost& costs(double t) {
    const auto [known, absent] = costs_.try_emplace(t);
    if (!absent) return known->second;
    for (const double r : residuals(t)) {
      if (std::isnan(r)) continue;
      known->second.logarithms += log64(1 + std::min(r * r, 1e30));
      known->second.squares += std::min(r * r, Fit::kCap * Fit::kCap);
    }
    return known->second;
  }
  /// sum of log(1 + r^2): a search can follow it from afar, where the capped squares of an LSE are flat.
  double cost(double t) { return costs(t).logarithms; }
  /// A few gross errors outweigh there what many elements hide in their rounding.
  double squares(double t) { return costs(t).squares; }

  /// Ends where the value moves the cost by less than a tenth of a standard error does.
  double golden(double low, double high) {
    constexpr double kGolden = 0.6180339887498949, kFlat = 0.01;
    const double end = 1e-6 * step_;
    double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    while (high - low > end) {
      const auto [least, most] = std::minmax({cost(low), cost(a), cost(b), cost(high)});
      if (most - least < kFlat) break;
      if (cost(a) <= cost(b)) {
        high = b, b = a;
        a = high - kGolden * (high - low);
      } else {
        low = a, a = b;
        b = low + kGolden * (high - low);
      }
    }
    return cost(a) <= cost(b) ? a : b;
  }

  /// Gauss-Newton on the LSE alone, where the value shows in it: it knows the value far better than o, whose P may
  /// round to the other side at any step, so that its cost has no slope to follow.
  double by_lse(double best) {
    std::vector<bool> of_lse;
    for (std::size_t n = 0; n < few_; ++n)
      for (const Element& e : trial_.samples_[n].elements) of_lse.push_back(e.kind == Kind::kLse);
    if (std::find(of_lse.begin(), of_lse.end(), true) == of_lse.end()) return best;
    for (int n = 0; n < 6; ++n) {
      const double h = 1e-3 * step_;
      const std::vector<double> here = residuals(best), there = residuals(best + h);
      double slope = 0, along = 0;
      for (std::size_t i = 0; i < here.size(); ++i) {
        if (!of_lse[i] || std::isnan(here[i]) || std::isnan(there[i])) continue;
        const double d = (there[i] - here[i]) / h;
        slope += d * d, along += d * here[i];
      }
      const double next = slope > 0 ? std::clamp(best - along / slope, range_.low, range_.high) : best;
      if (next == best || cost(next) >= cost(best)) break;
      best = next;
    }
    return best;
  }

  const Trial& trial_;
  const PredictAt& predict_;
  const Parameter& range_;
  std::size_t few_;
  int points_ = 0, first_ = 0, last_ = 0;  ///< the grid; what of it is searched
  double step_ = 0;
  std::map<double, Cost> costs_;
};

FitAt Trial::fit(const PredictAt& predict, const Parameter& parameter) const {
  Search search(*this, predict, parameter);
  if (!search.narrow()) return {Fit{}, parameter.low};  // explains nothing: a few rows alone must not speak for all
  const auto whole = [&](double t) {
    Fit fit;
    for (std::size_t n = 0; n < rows_.size(); ++n) add(samples_[n], predict(rows_[n], t), fit);
    return fit;
  };
  FitAt result;
  result.fit.after = kInf;
  for (const double t : search.best())
    if (Fit fit = whole(t); fit.after < result.fit.after) result = {std::move(fit), t, 0};
  // An estimate from few rows may still be too coarse for the LSE.
  if (parameter.whole || result.fit.removed() < 0.5) return result;
  // A parabola through three points of the cost over all rows gives minimum and curvature; its arm is about the error.
  double arm = search.step() / 64;
  for (int n = 0; n < 3; ++n) {
    const double here = whole(result.value).after;
    const double left = whole(result.value - arm).after, right = whole(result.value + arm).after;
    const double curvature = (left - 2 * here + right) / (arm * arm);
    if (!(curvature > 0)) break;
    const double move = (left - right) / (2 * arm * curvature);
    const double next = std::clamp(result.value + move, parameter.low, parameter.high);
    if (std::abs(move) <= arm && whole(next).after < here) result.value = next;
    result.standard_error = std::sqrt(2 / curvature * std::max(1.0, here / result.fit.expected));
    arm = std::max(result.standard_error, std::abs(result.value) * 1e-12);
  }
  result.fit = whole(result.value);
  result.budget = budget(whole(result.value - arm), whole(result.value + arm), 2 * arm);
  return result;
}

/// |least squares of tau on the slopes| <= sum |slope| tau / u^2 / sum slope^2 / u^2.
double Trial::budget(const Fit& low, const Fit& high, double apart) const {
  double reach = 0, square = 0;
  std::size_t n = 0;
  for (const Sampled& row : samples_)
    for (const Element& e : row.elements) {
      if (n >= std::min(low.predicted.size(), high.predicted.size())) break;
      const double slope = (high.predicted[n] - low.predicted[n]) / apart;
      ++n;
      if (!std::isfinite(slope)) continue;
      reach += std::abs(slope) * e.slack / (e.unit * e.unit);
      square += slope * slope / (e.unit * e.unit);
    }
  return square > 0 ? reach / square : kInf;
}

}  // namespace assay

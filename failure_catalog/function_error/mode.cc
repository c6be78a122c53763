// M25: an approximate exp2, tanh, logarithm or reciprocal: the error is a function of the argument.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "failure_catalog/deviations.h"
#include "failure_catalog/function_error/approximations.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

using Function = std::function<double(double)>;

struct Named {
  Function f;
  std::string what;
  double cost = 0;
};

std::vector<Named> exponentials() {
  std::vector<Named> all{{exp2_by_cubic, "every exp2 is a cubic of relative error 8.6e-5"},
                         {exp2_by_quadratic, "every exp2 is a quadratic of relative error 1.8e-3"}};
  for (const int bits : {6, 7, 8, 9, 10})
    all.push_back({[bits](double y) { return exp2_by_table(y, bits); },
                   fmt::format("exp2 is a table of {} fractions without interpolation", 1 << bits)});
  return all;
}

double fraction(double y) { return y - std::floor(y); }

/// Errors of any size that are a curve of the fraction r of the exponent: r (1 - r), as a quadratic's, r (1 - r) (1 - 2
/// r), as a cubic's, and 1, as of a polynomial that does not give 2^0 = 1.
std::vector<std::pair<std::function<double(double)>, std::string>> curves() {
  return {{[](double r) { return 4 * r * (1 - r); }, "4 r (1 - r)"},
          {[](double r) { return 10 * r * (1 - r) * (1 - 2 * r); }, "10 r (1 - r) (1 - 2 r)"},
          {[](double r) { return r == 0 ? 0.0 : 1.0; }, "1 but at r = 0"}};
}

constexpr Parameter kError{.low = -0.01, .high = 0.01, .grid = 81};

std::vector<Named> reciprocals() {
  std::vector<Named> all;
  for (const int steps : {0, 1, 2})
    all.push_back(
        {[steps](double x) { return reciprocal_by_steps(x, steps); },
         fmt::format("1 / l is a line in the significand and {} Newton step{}", steps, steps == 1 ? "" : "s")});
  return all;
}

const std::vector<Named> kLogarithms{{log2_by_quadratic, "the logarithm of the LSE is a quadratic in the significand"},
                                     {log2_by_line, "the logarithm of the LSE is a line in the significand"}};

void attention(Deviations& all) {
  const AttentionParams& p = *all.attention();
  for (const Named& e : exponentials()) {
    Deviation d;
    d.exp2 = e.f;
    all.add(d, e.what);
  }
  {
    Deviation d;
    d.exp2 = [](double y) { return exp2_by_cubic(y) * (1 + 8.5e-5); };
    all.add(d, "every exp2 is a cubic with 2^0 = 1.000085: a weight of 1 is not 1");
  }
  for (const auto& [curve, form] : curves())
    all.add(
        [curve = curve](double t) {
          Deviation d;
          d.exp2 = [curve, t](double y) { return exp2_64(y) * (1 + t * curve(fraction(y))); };
          return d;
        },
        kError, "relative error of exp2 by the fraction r of its argument",
        [form = form](const std::string& value) {
          return fmt::format("exp2 is off by {} times {} of the fraction r of its argument", value, form);
        },
        0.3);
  all.add(
      [](double t) {
        Deviation d;
        d.weight_gain = [t](std::int64_t column) { return column % 2 == 0 ? 1 + t : 1 - t; };
        return d;
      },
      kError, "relative error of exp2 at even columns",
      [](const std::string& value) {
        return fmt::format("exp2 is off by {} at even columns of a tile and by the opposite at odd ones", value);
      },
      0.1);
  for (const Named& r : reciprocals()) {
    Deviation d;
    d.reciprocal = r.f;
    all.add(d, r.what);
  }
  if (p.lse != LseBase::kNone)
    for (const Named& log : kLogarithms) {
      Deviation d;
      d.log2 = log.f;
      all.add(d, log.what);
    }
  if (p.softcap <= 0) return;
  const auto tanh = [&](auto f, const std::string& what) {
    Deviation d;
    d.logit = [f, cap = static_cast<double>(p.softcap)](const AttentionRow&, const ReplayKey& key) {
      return cap * f(key.scale_q * key.k_scale * key.score / cap) + key.alibi + key.additive;
    };
    all.add(d, what);
  };
  tanh(tanh_by_fraction, "tanh of the soft cap is t (27 + t^2) / (27 + 9 t^2)");
  tanh([](double t) { return t / (1 + std::abs(t)); }, "tanh of the soft cap is t / (1 + |t|)");
  tanh([](double t) { return std::clamp(t, -1.0, 1.0); }, "tanh of the soft cap is a cut-off at +-1");
}

void softmax(Deviations& all) {
  for (const Named& e : exponentials()) {
    SoftmaxDeviation d;
    d.exp2 = e.f;
    all.add(d, e.what);
  }
  for (const auto& [curve, form] : curves())
    all.add(
        [curve = curve](double t) {
          SoftmaxDeviation d;
          d.exp2 = [curve, t](double y) { return exp2_64(y) * (1 + t * curve(fraction(y))); };
          return d;
        },
        kError, "relative error of exp2 by the fraction r of its argument",
        [form = form](const std::string& value) {
          return fmt::format("exp2 is off by {} times {} of the fraction r of its argument", value, form);
        },
        0.3);
  for (const Named& r : reciprocals()) {
    SoftmaxDeviation d;
    d.reciprocal = r.f;
    all.add(d, r.what);
  }
  for (const Named& log : kLogarithms) {
    SoftmaxDeviation d;
    d.log2 = log.f;
    all.add(d, log.what);
  }
}

void merge(Deviations& all) {
  for (const Named& e : exponentials()) {
    MergeDeviation d;
    d.exp2 = e.f;
    all.add(d, e.what);
  }
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  Deviations all(scene);
  if (all.attention() != nullptr) attention(all);
  if (all.softmax() != nullptr) softmax(all);
  if (all.merge() != nullptr) merge(all);
  return all.take();
}

const RegisterMode kRegister(
    {.name = "function_error", .id = "M25", .title = "A function approximated too coarsely", .hypotheses = hypotheses});

}  // namespace
}  // namespace assay

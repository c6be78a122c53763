// Recipes whose elements are independent of each other: distributions, constants, integers, position tags.
#include <algorithm>

#include "cases/families.h"

namespace assay {
namespace {

void normal(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), f.args[0], f.args[1], out);
}

void uniform(const Field& f, const Row& row, std::span<double> out) {
  const Stream stream = stream_of(f, row);
  for (std::size_t c = 0; c < out.size(); ++c)
    out[c] = f.args[0] + (f.args[1] - f.args[0]) * unit_uniform(stream.bits(static_cast<std::int64_t>(c)));
}

void constant(const Field& f, const Row&, std::span<double> out) { std::fill(out.begin(), out.end(), f.args[0]); }

void ones(const Field&, const Row&, std::span<double> out) { std::fill(out.begin(), out.end(), 1.0); }

void one_hot(const Field& f, const Row& row, std::span<double> out) {
  std::fill(out.begin(), out.end(), 0.0);
  out[static_cast<std::size_t>(row.position) % out.size()] = f.args[0];
}

void small_integers(const Field& f, const Row& row, std::span<double> out) {
  const Stream stream = stream_of(f, row);
  const auto max = static_cast<std::int64_t>(f.args[0]);
  for (std::size_t c = 0; c < out.size(); ++c)
    out[c] = static_cast<double>(below(stream.bits(static_cast<std::int64_t>(c)), 2 * max + 1) - max);
}

void integers(const Field& f, const Row& row, std::span<double> out) {
  const Stream stream = stream_of(f, row);
  const auto low = static_cast<std::int64_t>(f.args[0]), high = static_cast<std::int64_t>(f.args[1]);
  for (std::size_t c = 0; c < out.size(); ++c)
    out[c] = static_cast<double>(low + below(stream.bits(static_cast<std::int64_t>(c)), high - low + 1));
}

void same_sign(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), 1.0, 0.0, out);
  for (double& x : out) x = f.args[0] * (x < 0 ? -x : x);
}

void tags(const Field& f, const Row& row, std::span<double> out) {
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = tag_value(f.format, row.first + static_cast<std::int64_t>(c));
}

constexpr int kTagBinades = 16;

}  // namespace

std::int64_t tag_capacity(Format format) {
  const FormatInfo& f = info(format);
  if (f.specials == Specials::kInteger) return static_cast<std::int64_t>(f.max_finite) + 1;
  const int signs = f.specials == Specials::kE8m0 ? 1 : 2;
  const int binades = std::min(f.max_exponent, kTagBinades / 2 - 1) - std::max(f.min_exponent, -kTagBinades / 2) + 1;
  return (std::int64_t{signs * binades}) << f.fraction_bits;
}

// Counts through sign, fraction and exponent, starting in the binade [1, 2).
double tag_value(Format format, std::int64_t id) {
  const FormatInfo& f = info(format);
  id %= tag_capacity(format);
  if (f.specials == Specials::kInteger) return static_cast<double>(id);
  const bool negative = f.specials != Specials::kE8m0 && id % 2 != 0;
  if (f.specials != Specials::kE8m0) id /= 2;
  const std::int64_t fraction = id & ((std::int64_t{1} << f.fraction_bits) - 1);
  const int lowest = std::max(f.min_exponent, -kTagBinades / 2);
  const int binades = std::min(f.max_exponent, kTagBinades / 2 - 1) - lowest + 1;
  const int exponent = lowest + (static_cast<int>(id >> f.fraction_bits) - lowest) % binades;
  const double magnitude =
      power_of_two(exponent) * (1.0 + static_cast<double>(fraction) * power_of_two(-f.fraction_bits));
  return negative ? -magnitude : magnitude;
}

std::vector<Recipe> plain_recipes() {
  return {
      {"normal", {{"std", 1, 0, kHuge}, {"mean", 0, -kHuge, kHuge}}, "independent normal numbers", normal},
      {"uniform",
       {{"lo", -1, -kHuge, kHuge}, {"hi", 1, -kHuge, kHuge}},
       "independent, uniform in [lo, hi)",
       uniform,
       Fits::kNumbers,
       true,
       true},
      {"constant", {{"value", 0, -kHuge, kHuge}}, "every element the same", constant, Fits::kNumbers, false},
      {"ones", {}, "every element 1: o must be 1 for v = ones", ones, Fits::kNumbers, false},
      {"one_hot",
       {{"value", 1, -kHuge, kHuge}},
       "value at channel (position mod channels), 0 elsewhere",
       one_hot,
       Fits::kVectors,
       false},
      {"small_integers",
       {{"max", 3, 0, 1 << 20, true}},
       "integers in [-max, max]: exact products and sums",
       small_integers},
      {"integers",
       {{"lo", 0, -(1 << 20), 1 << 20, true}, {"hi", 1, -(1 << 20), 1 << 20, true}},
       "integers in lo ... hi: sums that cannot be zero where lo > 0",
       integers,
       Fits::kNumbers,
       true,
       true},
      {"same_sign", {{"std", 1, -kHuge, kHuge}}, "|normal| times std: every element has the sign of std", same_sign},
      {"tags",
       {},
       "an exact value for each position, distinct as far as the format reaches",
       tags,
       Fits::kNumbers,
       false},
  };
}

}  // namespace assay

// Recipes over the exponent range: subnormal numbers, exponents spread over many binades.
#include "cases/families.h"

namespace assay {
namespace {

constexpr std::uint64_t kFractionMask = (std::uint64_t{1} << 52) - 1;

/// sign 1.fraction 2^exponent with sign and fraction from the bits.
double with_exponent(std::uint64_t bits, int exponent) {
  const std::uint64_t sign = bits & (std::uint64_t{1} << 63);
  return std::bit_cast<double>(sign | static_cast<std::uint64_t>(exponent + 1023) << 52 | (bits & kFractionMask));
}

void subnormal(const Field& f, const Row& row, std::span<double> out) {
  const Stream choice = stream_of(f, row);
  const Stream magnitude = stream_of(f, row, 1);
  const FormatInfo& format = info(f.format);
  // 1 ... 2^fraction_bits - 1 units of min_subnormal; formats without subnormal numbers get their smallest one.
  const std::uint64_t codes = (std::uint64_t{1} << format.fraction_bits) - 1;
  for (std::size_t c = 0; c < out.size(); ++c) {
    const auto i = static_cast<std::int64_t>(c);
    const std::uint64_t bits = magnitude.bits(i);
    if (unit_uniform(choice.bits(i)) >= f.args[0]) {
      out[c] = unit_normal(bits);
      continue;
    }
    const std::uint64_t units = codes == 0 ? 1 : 1 + (bits & kFractionMask) % codes;
    const double value = static_cast<double>(units) * format.min_subnormal;
    out[c] = (bits >> 63) != 0 && format.specials != Specials::kE8m0 ? -value : value;
  }
}

void exponents(const Field& f, const Row& row, std::span<double> out) {
  const Stream exponent = stream_of(f, row);
  const Stream fraction = stream_of(f, row, 1);
  const auto low = static_cast<std::int64_t>(f.args[0]);
  const auto binades = static_cast<std::int64_t>(f.args[1]) - low + 1;
  for (std::size_t c = 0; c < out.size(); ++c) {
    const auto i = static_cast<std::int64_t>(c);
    out[c] = with_exponent(fraction.bits(i), static_cast<int>(low + below(exponent.bits(i), binades)));
  }
}

}  // namespace

std::vector<Recipe> exponent_recipes() {
  return {
      {"subnormal", {{"p", 1, 0, 1}}, "subnormal numbers of the format with probability p, else normal(1)", subnormal},
      {"mixed_exponents",
       {{"lo", -8, -1022, 12, true}, {"hi", 3, -1022, 12, true}},
       "random sign and fraction, exponent uniform in lo ... hi",
       exponents,
       Fits::kNumbers,
       true,
       true},
      {"range_exponents",
       {{"lo", 14, -1022, 1023, true}, {"hi", 15, -1022, 1023, true}},
       "the same without a limit: scores leave the range in which a fused scale is exact",
       exponents,
       Fits::kNumbers,
       true,
       true,
       true},
  };
}

}  // namespace assay

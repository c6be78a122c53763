// The families of recipes, one table per file, and the helpers they share.
#pragma once

#include <bit>
#include <span>
#include <vector>

#include "cases/recipes.h"

namespace assay {

std::vector<Recipe> plain_recipes();
std::vector<Recipe> exponent_recipes();
std::vector<Recipe> cancellation_recipes();
std::vector<Recipe> logit_recipes();
std::vector<Recipe> model_recipes();
std::vector<Recipe> mask_recipes();
std::vector<Recipe> convention_recipes();
std::vector<Recipe> score_recipes();
std::vector<Recipe> part_recipes();
std::vector<Recipe> probe_recipes();

/// Largest magnitude of an argument: leaves room for products with a few normal numbers.
inline constexpr double kHuge = 1e300;
/// Largest count or length argument.
inline constexpr double kMany = 1 << 30;

/// Sets the row to std N(0,1) + mean.
inline void fill_normal(const Stream& stream, double std, double mean, std::span<double> out) {
  unit_normals(stream, out);
  for (double& x : out) x = mean + std * x;
}

/// 2^e for the exponents of fp64's normal numbers.
inline double power_of_two(int e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); }

}  // namespace assay

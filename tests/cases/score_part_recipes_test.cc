// Score and part recipes: each pattern is what its name claims, and holes agree between a merge's two tensors.
#include <gtest/gtest.h>

#include <cmath>

#include "cases/recipes.h"

namespace assay {
namespace {

std::vector<double> values(const std::string& source, std::string role, Format format, std::string axes,
                           std::vector<std::int64_t> shape) {
  InputSpec spec;
  spec.axes = std::move(axes);
  spec.layout = {
      .role = std::move(role), .format = format, .shape = std::move(shape), .strides = {}, .offset = 0, .storage = 0};
  spec.layout.strides.assign(spec.layout.shape.size(), 1);
  for (std::size_t i = spec.layout.shape.size(); i-- > 1;)
    spec.layout.strides[i - 1] = spec.layout.strides[i] * spec.layout.shape[i];
  spec.layout.storage = spec.layout.count();
  const Tensor tensor{spec.layout, std::vector<std::byte>(static_cast<std::size_t>(spec.layout.storage_bytes()))};
  Tensor filled = tensor;
  const Source parsed = parse_source(spec.layout.role, source);
  check_fits(spec.layout.role, parsed, spec);
  fill_from_recipe(parsed, spec, 1, filled.bytes.data());
  std::vector<double> out;
  for (std::int64_t i = 0; i < filled.layout.count(); ++i) out.push_back(filled.view().value(i));
  return out;
}

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

TEST(ScoreRecipes, RisingMaximaRiseByTheStep) {
  for (const double step : {4.0, -2.0}) {
    const std::string source = "score_rising(" + std::to_string(static_cast<int>(step)) + ",16,3)@5";
    const std::vector<double> x = values(source, "x", Format::kFp64, "qk", {3, 100});
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t t = 0; t < 7; ++t) {
        double most = -1e9;
        for (std::size_t j = 16 * t; j < std::min<std::size_t>(100, 16 * t + 16); ++j)
          most = std::max(most, x[row * 100 + j]);
        EXPECT_NEAR(most, kLn2 * (3 - step * static_cast<double>(6 - t)), 1e-12) << source << t;
      }
  }
}

TEST(ScoreRecipes, LaddersClimbInTurnAndOneFurtherInEachRow) {
  const std::vector<double> x = values("score_ladder(-1,2,-1)", "x", Format::kFp32, "qk", {2, 6});
  EXPECT_EQ(x, (std::vector<double>{-0.5, -1, -2, -4, -0.5, -1, -1, -2, -4, -0.5, -1, -2}));
}

TEST(ScoreRecipes, NearTiesAreOneStepApartAndPeaksAreOnePerRow) {
  const std::vector<double> ties = values("score_near_ties(3,0.5)@1", "x", Format::kBf16, "qk", {1, 400});
  int above = 0;
  for (double x : ties) {
    EXPECT_TRUE(x == 3 || x == 3 + 0x1p-6) << x;
    above += x > 3;
  }
  EXPECT_GT(above, 150);
  EXPECT_LT(above, 250);
  const std::vector<double> peaks = values("score_peak(50)@1", "x", Format::kFp32, "qk", {20, 30});
  for (std::size_t row = 0; row < 20; ++row)
    EXPECT_EQ(
        std::count(peaks.begin() + 30 * static_cast<int>(row), peaks.begin() + 30 * static_cast<int>(row) + 30, 50.0),
        1);
}

TEST(PartRecipes, HolesOfBothTensorsAreTheSame) {
  const std::vector<double> lse = values("part_holes(3)@1", "lse_parts", Format::kFp32, "sh", {5, 7});
  const std::vector<double> o = values("hole_values(3)@2", "o_parts", Format::kBf16, "shc", {5, 7, 4});
  int holes = 0;
  for (std::size_t part = 0; part < 5; ++part)
    for (std::size_t row = 0; row < 7; ++row) {
      const bool hole = lse[part * 7 + row] == -INFINITY;
      holes += hole;
      for (std::size_t c = 0; c < 4; ++c)
        EXPECT_EQ(std::isnan(o[(part * 7 + row) * 4 + c]), hole) << part << " " << row;
    }
  EXPECT_EQ(holes, 12);
  EXPECT_EQ(values("part_holes(1,1)", "lse_parts", Format::kFp32, "sh", {2, 2}), std::vector<double>(4, INFINITY));
}

TEST(PartRecipes, LevelsGrowByPart) {
  EXPECT_EQ(values("part_levels(-3)", "lse_parts", Format::kFp32, "sh", {3, 2}),
            (std::vector<double>{0, 0, -3, -3, -6, -6}));
  EXPECT_THROW(values("hole_values", "lse_parts", Format::kFp32, "sh", {3, 2}), std::exception);
}

}  // namespace
}  // namespace assay

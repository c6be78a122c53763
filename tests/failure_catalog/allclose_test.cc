// The allclose rule, at its edges and against hand-made outputs.
#include "failure_catalog/judges/allclose.h"

#include <gtest/gtest.h>

#include <limits>

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One fp64 output with these values, and its truth: numbers with radius 0 unless a class is given.
struct Scene {
  OutputTruth truth;
  Tensor output;
  void add(double value, double mid, ClassSet classes = kNumber, double radius = 0) {
    const auto at = static_cast<std::int64_t>(truth.element.size());
    truth.layout = {
        .role = "o", .format = Format::kFp64, .shape = {at + 1}, .strides = {1}, .offset = 0, .storage = at + 1};
    truth.element.push_back(at);
    truth.row.push_back(0);
    truth.mid.push_back(mid);
    truth.radius.push_back(radius);
    truth.classes.push_back(classes);
    output.layout = truth.layout;
    output.bytes.resize(static_cast<std::size_t>(output.layout.storage_bytes()));
    store_code(output.bytes.data(), Format::kFp64, at, encode(Format::kFp64, value));
  }
  Allclose judge(double atol, double rtol) const { return allclose(truth, output, atol, rtol); }
};

TEST(AllcloseTest, TheToleranceItselfIsInsideAndTheNextNumberIsNot) {
  Scene inside, outside;
  inside.add(2.75, 2.0);
  outside.add(0x1.6000000000001p+1, 2.0);
  EXPECT_TRUE(inside.judge(0.25, 0.25).passes());
  EXPECT_FALSE(outside.judge(0.25, 0.25).passes());
  EXPECT_EQ(inside.judge(0.25, 0.25).worst_part, 1.0);
}

TEST(AllcloseTest, TheReferenceIsTheTruthRoundedToFp32) {
  Scene scene;
  scene.add(1.0, 1.0 + 0x1p-30);
  EXPECT_TRUE(scene.judge(0, 0).passes());
  EXPECT_EQ(scene.judge(0, 0).worst_reference, 1.0);
}

TEST(AllcloseTest, NaNIsCloseToNothingAndInfinitiesAreCloseWhenEqual) {
  Scene number, both, same, opposite;
  number.add(kNaN, 1.0);
  both.add(kNaN, 0, kNan);
  same.add(-kInf, 0, kMinusInf);
  opposite.add(kInf, 0, kMinusInf);
  EXPECT_FALSE(number.judge(1e9, 1e9).passes());
  EXPECT_FALSE(both.judge(1e9, 1e9).passes());
  EXPECT_TRUE(same.judge(0, 0).passes());
  EXPECT_FALSE(opposite.judge(1e9, 1e9).passes());
  EXPECT_EQ(number.judge(1e9, 1e9).worst_part, kInf);
}

TEST(AllcloseTest, AnInfiniteOutputIsFarFromANumber) {
  Scene scene;
  scene.add(kInf, 1.0);
  EXPECT_FALSE(scene.judge(1e300, 0).passes());
}

TEST(AllcloseTest, ElementsWithoutOneTrueValueAreLeftOutAndCounted) {
  Scene scene;
  scene.add(5.0, 0, kAnything);
  scene.add(5.0, 1.0, kNumber, kInf);
  scene.add(0.0, 0, kZero);
  const Allclose result = scene.judge(0, 0);
  EXPECT_EQ(result.left_out, 2);
  EXPECT_EQ(result.compared, 1);
  EXPECT_TRUE(result.passes());
}

TEST(AllcloseTest, TheWorstElementIsTheOneThatUsesMostOfItsTolerance) {
  Scene scene;
  scene.add(1.0, 1.0);
  scene.add(0.02, 0.0);     // 2 of atol 0.01
  scene.add(103.0, 100.0);  // 3 of 1.01
  scene.add(0.0, 0.0);
  const Allclose result = scene.judge(0.01, 0.01);
  EXPECT_EQ(result.worst, 2);
  EXPECT_EQ(result.worst_value, 103.0);
  EXPECT_EQ(result.outside, 2);
}

}  // namespace
}  // namespace assay

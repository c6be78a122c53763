// The measured errors that bounds take are those of the published probes, rounded up.
#include "oracle/function_errors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace assay {
namespace {

/// Largest relative error of a function over all arguments, from the published probe of an H200.
double measured(const nlohmann::json& probes, const std::string& instruction) {
  for (const auto& function : probes.at("functions"))
    if (function.at("instruction") == instruction) {
      EXPECT_EQ(function.at("arguments").get<std::int64_t>(), std::int64_t{1} << 32);
      EXPECT_EQ(function.at("class_differs").get<int>(), 0);
      return function.at("relative").at("value").get<double>();
    }
  ADD_FAILURE() << instruction << " was not probed";
  return 0;
}

TEST(FunctionErrors, OfHopperAreTheProbedOnesRoundedUp) {
  std::ifstream in(std::string(ASSAY_SOURCE_DIR) + "/reports/published/2026-11-29-h200/probes.json");
  const nlohmann::json probes = nlohmann::json::parse(in);
  const auto rounded_up = [](double constant, double largest) {
    EXPECT_GE(constant, largest);
    EXPECT_LE(constant, largest * 1.001);
  };
  rounded_up(kEx2Hopper, measured(probes, "ex2.approx.f32"));
  rounded_up(kTanhHopper, measured(probes, "tanh.approx.f32"));
  EXPECT_GE(kLg2, measured(probes, "lg2.approx.f32"));
  for (const auto& mma : probes.at("mma")) EXPECT_EQ(mma.at("different").get<int>(), 0) << mma.dump();
}

TEST(FunctionErrors, ADeclarationThatSaysMoreAllowsLess) {
  EXPECT_LT(exponential_error(Exponential::kEx2Hopper), exponential_error(Exponential::kEx2Approx));
  EXPECT_LT(exponential_error(Exponential::kEx2Approx), exponential_error(Exponential::kPolynomial3));
  EXPECT_EQ(exponential_error(Exponential::kUnknown), exponential_error(Exponential::kPolynomial3));
  EXPECT_LT(tanh_error(Tanh::kTwoUlp), tanh_error(Tanh::kApproxHopper));
  EXPECT_LT(tanh_error(Tanh::kApproxHopper), tanh_error(Tanh::kApprox));
  EXPECT_EQ(tanh_error(Tanh::kUnknown), tanh_error(Tanh::kApprox));
}

}  // namespace
}  // namespace assay

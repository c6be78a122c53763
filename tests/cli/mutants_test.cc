// `assay mutants`: its list, its document, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace assay {
namespace {

TEST(Mutants, AreListedWithSwitchModeAndReport) {
  const Outcome run = assay("mutants --list --json");
  ASSERT_EQ(run.exit, 0) << run.text;
  const nlohmann::json rows = nlohmann::json::parse(run.text);
  const auto at =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.at("mutant") == "fa2_bf16_false_max"; });
  ASSERT_NE(at, rows.end());
  EXPECT_EQ(at->at("base"), "fa2_bf16");
  EXPECT_EQ(at->at("fault"), "kFalseMax");
  EXPECT_EQ(at->at("mode"), "false_max");
  for (const nlohmann::json& row : rows) EXPECT_TRUE(row.at("fault").get<std::string>().starts_with("k")) << row;
  const Outcome text = assay("mutants fa2_bf16_scale_off_1e-3 fa2_bf16_scale_off_1e-4 --list");
  EXPECT_NE(text.text.find("2 mutants: 1 faults at 1 sites"), std::string::npos) << text.text;
}

TEST(Mutants, OfOneFaultHaveADocumentWithAllThreeParts) {
  const Outcome run = assay("mutants fa2_bf16_false_max --suite smoke --cases 20 --adversarial 4 --failures 2 --json");
  ASSERT_EQ(run.exit, 0) << run.text;
  const nlohmann::json document = nlohmann::json::parse(run.text);
  EXPECT_EQ(document.at("counts").at("faults"), 1);
  const nlohmann::json& row = document.at("matrix").at("mutants").at(0);
  EXPECT_EQ(row.at("mutant"), "fa2_bf16_false_max");
  EXPECT_FALSE(row.at("weakest").is_null());
  EXPECT_EQ(row.at("judges_on_our_suites").size(), 10U);
  EXPECT_EQ(document.at("false_alarms").at("rules").at("assay").at("alarms"), 0);
  EXPECT_EQ(document.at("confusion").at("failures"), 2);
  EXPECT_EQ(document.at("judges").size(), 10U);
}

TEST(Mutants, RefuseKernelsWithoutAFaultAndModesThatAreNone) {
  EXPECT_EQ(assay("mutants fa2_bf16 --list").exit, 2);
  const Outcome mode = assay("mutants fa2_bf16_false_max --part confusion --plant fa2_bf16=no_such_mode");
  EXPECT_EQ(mode.exit, 2);
  EXPECT_NE(mode.text.find("--plant fa2_bf16=no_such_mode"), std::string::npos) << mode.text;
  EXPECT_EQ(assay("mutants --part nothing").exit, 2);
}

}  // namespace
}  // namespace assay

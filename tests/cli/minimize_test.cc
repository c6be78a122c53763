// `assay minimize`: the smallest case as text, file and document, and what it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace assay {
namespace {

const std::string kFails =
    "'attention sq=3 skv=40 d=16 q=normal@1 k=normal@2 v=normal@3' --kernel fa2_bf16_last_key_dropped";
const std::string kSmallest = "attention skv=2 d=1 q=constant k=constant v=constant";

TEST(Minimize, PrintsTheSmallestCaseItsSignatureAndHowToRepeatIt) {
  const std::string file = "/tmp/assay_minimize_" + std::to_string(getpid());
  const Outcome run = assay("minimize " + kFails + " --out " + file);
  EXPECT_EQ(run.exit, 1) << run.text;
  for (const std::string& part : {"case      " + kSmallest + "\n", std::string("attention-dropped_keys-part-gross"),
                                  std::string("no single step makes it smaller"),
                                  "assay repro '" + kSmallest + "' --kernel fa2_bf16_last_key_dropped"})
    EXPECT_NE(run.text.find(part), std::string::npos) << part << "\n" << run.text;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, kSmallest);
  unlink(file.c_str());
}

TEST(Minimize, WritesADocumentWithBothCases) {
  const Outcome run = assay("minimize " + kFails + " --runs 1 --json");
  EXPECT_EQ(run.exit, 1) << run.text;
  const nlohmann::json document = nlohmann::json::parse(run.text);
  EXPECT_EQ(document.at("minimize").at("runs"), 1);
  EXPECT_EQ(document.at("minimize").at("minimal"), false);
  EXPECT_EQ(document.at("minimize").at("from"), "attention sq=3 skv=40 d=16 q=normal@1 k=normal@2 v=normal@3");
  EXPECT_EQ(document.at("records").at(0).at("verdict").at("mode"), "dropped_keys");
}

TEST(Minimize, RefusesACaseThatDoesNotFailAndACaseOfAnotherOp) {
  const Outcome clean = assay("minimize 'attention d=16' --kernel fa2_bf16");
  EXPECT_EQ(clean.exit, 2);
  EXPECT_NE(clean.text.find("does not fail on it; the verdict is"), std::string::npos) << clean.text;
  EXPECT_EQ(assay("minimize 'softmax n=3' --kernel fa2_bf16").exit, 2);
  EXPECT_EQ(assay("minimize 'attention d=16' --kernel none").exit, 2);
}

}  // namespace
}  // namespace assay

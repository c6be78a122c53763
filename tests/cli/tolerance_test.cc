// `assay tolerance` from outside: exit codes, errors in one line, levels by kernel, and the same numbers twice.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace assay {
namespace {

struct Outcome {
  int exit = -1;
  std::string text;  ///< standard output and error together
};

Outcome tolerance(const std::string& arguments) {
  Outcome run;
  std::FILE* pipe = popen((std::string(ASSAY_PROGRAM) + " tolerance " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return run;
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) run.text.append(buffer, n);
  const int status = pclose(pipe);
  run.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

std::vector<std::string> levels_of(const nlohmann::json& document, std::size_t output) {
  std::vector<std::string> names;
  for (const auto& level : document.at("outputs").at(output).at("levels")) names.push_back(level.at("name"));
  return names;
}

TEST(Tolerance, PrintsTermsFloorsAndARule) {
  const Outcome run = tolerance("'attention sq=2 skv=70 mask=causal' --kernel fa2_bf16 --atol 1e-2 --rtol 1e-2");
  EXPECT_EQ(run.exit, 0) << run.text;
  for (const char* word :
       {"QK", "PV", "tau, T0", "tau, T1", "dropped key", "lost tile", "PASSES", "a correct kernel may fail it"})
    EXPECT_NE(run.text.find(word), std::string::npos) << word << " in\n" << run.text;
  EXPECT_EQ(tolerance("'attention sq=2 skv=70 mask=causal' --kernel fa2_bf16 --atol 1e-2 --rtol 1e-2").text, run.text);
}

TEST(Tolerance, TakesItsLevelsFromTheDeclaration) {
  const std::string line = "'attention sq=2 skv=200' --json ";
  EXPECT_EQ(levels_of(nlohmann::json::parse(tolerance(line).text), 0), std::vector<std::string>{"T0"});
  const auto document = nlohmann::json::parse(tolerance(line + "--kernel fa2_bf16").text);
  EXPECT_EQ(levels_of(document, 0), (std::vector<std::string>{"T0", "T1"}));
  EXPECT_EQ(document.at("kernel"), "fa2_bf16");
  EXPECT_FALSE(document.contains("tolerance"));
  EXPECT_EQ(levels_of(nlohmann::json::parse(tolerance(line + "--kernel fa2_bf16 --level t0").text), 0),
            std::vector<std::string>{"T0"});
}

TEST(Tolerance, WorksForEveryOp) {
  for (const char* line : {"'attention sq=1 skv=9'", "'softmax'", "'merge'"}) {
    const Outcome run = tolerance(std::string(line) + " --rtol 1e-2");
    EXPECT_EQ(run.exit, 0) << run.text;
    EXPECT_NE(run.text.find("detection floors"), std::string::npos);
  }
}

TEST(Tolerance, RefusesWhatItCannotAnswer) {
  for (const auto& [arguments, word] :
       {std::pair{"'attention sq=four'", "four"},
        std::pair{"'attention sq=2' --kernel no_such_kernel", "no_such_kernel"},
        std::pair{"'attention sq=2 dtype=fp16' --kernel fa2_bf16", "fp16"},
        std::pair{"'attention sq=2' --atol -1", "-1"}, std::pair{"'attention sq=2' --level t9", "t9"}}) {
    const Outcome run = tolerance(arguments);
    EXPECT_EQ(run.exit, 2) << run.text;
    EXPECT_NE(run.text.find(word), std::string::npos) << run.text;
  }
}

}  // namespace
}  // namespace assay

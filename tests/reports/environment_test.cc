// Tests of the environment: every fact is there, and what a run cannot find says so.
#include "reports/environment.h"

#include <gtest/gtest.h>

#include <regex>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

TEST(Environment, HoldsEveryFactAndTheGivenDate) {
  const nlohmann::json e = environment("2025-01-31T12:00:00Z");
  EXPECT_EQ(e["date"], "2025-01-31T12:00:00Z");
  EXPECT_GE(e["host"]["cores"].get<int>(), 1);
  for (const char* path :
       {"/host/cpu", "/host/os", "/build/compiler", "/build/flags", "/build/commit", "/build/dirty"}) {
    const nlohmann::json& value = e.at(nlohmann::json::json_pointer(path));
    EXPECT_TRUE(value.is_string() && !value.get<std::string>().empty()) << path;
  }
  EXPECT_TRUE(e["gpu"] == "none" || e["gpu"].is_array());
}

TEST(Environment, LibraryVersionsAreNumbers) {
  const nlohmann::json libraries = environment()["libraries"];
  for (const char* name : {"mpfr", "flint", "gmp"})
    EXPECT_TRUE(std::regex_search(libraries.at(name).get<std::string>(), std::regex("^[0-9]+\\.[0-9]+"))) << name;
}

TEST(Environment, CommitIsAHashOrUnknownAndDirtyIsYesOrNo) {
  const nlohmann::json build = environment()["build"];
  const std::string commit = build["commit"], dirty = build["dirty"];
  EXPECT_TRUE(commit == "unknown" || std::regex_match(commit, std::regex("[0-9a-f]{40,64}"))) << commit;
  EXPECT_TRUE(dirty == "unknown" || dirty == "yes" || dirty == "no") << dirty;
  EXPECT_EQ(commit == "unknown", dirty == "unknown");
}

TEST(Environment, TheClockIsUtcInIsoForm) {
  EXPECT_TRUE(
      std::regex_match(utc_now(), std::regex("20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z")));
}

TEST(Environment, CpuModelIsTheFirstNameInCpuinfo) {
  EXPECT_EQ(cpu_model("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 9\nprocessor\t: 1\nmodel name\t: other\n"),
            "AMD EPYC 9");
  EXPECT_EQ(cpu_model("processor : 0\nModel\t\t: Board 4\n"), "Board 4");
  EXPECT_EQ(cpu_model(""), "unknown");
  EXPECT_EQ(cpu_model("model name"), "unknown");
}

}  // namespace
}  // namespace assay

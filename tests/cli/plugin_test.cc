// Plug-ins from outside: a good one is judged like any kernel; each bad one gets one verdict or one error, and the run
// goes on.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace assay {
namespace {

std::string plugin(const std::string& name) { return fmt::format("--plugin {}/{}.so", ASSAY_PLUGINS, name); }

constexpr const char* kCase = "--case 'attention sq=3 skv=40 dtype=fp32'";

/// Verdicts by kernel of a run with --json. What plug-ins print stands on the same stream: the document begins at the
/// first line that is a brace alone.
std::map<std::string, nlohmann::json> verdicts(const Outcome& run) {
  std::map<std::string, nlohmann::json> all;
  const std::size_t begin = run.text.rfind("{\n", 0) == 0 ? 0 : run.text.find("\n{\n");
  const nlohmann::json document =
      begin == std::string::npos ? nlohmann::json() : nlohmann::json::parse(run.text.substr(begin), nullptr, false);
  EXPECT_TRUE(document.is_object()) << run.text;
  if (!document.is_object()) return all;
  for (const nlohmann::json& record : document.at("records"))
    EXPECT_TRUE(all.emplace(record.at("kernel"), record.at("verdict")).second) << "two verdicts on one kernel";
  return all;
}

std::string text_of(const nlohmann::json& verdict) {
  return verdict.value("reason", "") + verdict.value("evidence", "");
}

TEST(Plugin, TheExampleIsCleanOnTheSmokeSuite) {
  const Outcome run = assay("check --suite smoke --json " + plugin("attention_plugin"));
  ASSERT_EQ(run.exit, 0) << run.text;
  const nlohmann::json document = nlohmann::json::parse(run.text), summary = document.at("summary");
  EXPECT_GE(summary.at("clean").get<int>(), 7) << summary;
  EXPECT_EQ(summary.at("clean").get<int>() + summary.at("skipped").get<int>(), summary.at("cases").get<int>())
      << summary;
  for (const nlohmann::json& record : document.at("records")) {
    if (record.at("verdict").at("kind") == "clean") {
      EXPECT_EQ(record.at("variant"), "one row at a time");
    }
  }
}

TEST(Plugin, TheCudaExampleIsCleanOnTheSmokeSuiteOrSkippedForWantOfADevice) {
  if (!std::filesystem::exists(std::string(ASSAY_PLUGINS) + "/attention_plugin_cuda.so"))
    GTEST_SKIP() << "built without a CUDA compiler";
  const Outcome run = assay("check --suite smoke --json " + plugin("attention_plugin_cuda"));
  ASSERT_TRUE(run.exit == 0 || run.exit == 6) << run.text;
  const nlohmann::json document = nlohmann::json::parse(run.text);
  const nlohmann::json& summary = document.at("summary");
  EXPECT_EQ(summary.at("clean").get<int>() + summary.at("skipped").get<int>(), summary.at("cases").get<int>()) << summary;
  if (run.exit == 0) {
    EXPECT_GE(summary.at("clean").get<int>(), 7) << summary;
  }
  const std::string first = text_of(document.at("records").at(0).at("verdict"));
  EXPECT_EQ(first.find("device") != std::string::npos, run.exit == 6) << first;
}

TEST(Plugin, EachDeedOfAKernelHasOneVerdictAndTheOthersAreStillJudged) {
  const Outcome run = assay(
      fmt::format("check good prints half_output reshapes overrun underrun writes_input run_fails run_segv run_exit "
                  "run_refuses prepare_fails prepare_segv prepare_exit prepare_refuses out_of_memory release_fails "
                  "release_segv no_zero example_attention fa2_bf16 naive_fp32 {} {} {} --jobs 1 --json",
                  kCase, plugin("misbehaves_plugin"), plugin("attention_plugin")));
  EXPECT_EQ(run.exit, 1);
  const std::map<std::string, nlohmann::json> all = verdicts(run);
  const struct {
    const char *kernel, *kind, *words;
  } expected[] = {
      {"good", "clean", ""},
      {"prints", "clean", ""},
      {"no_zero", "clean", ""},
      {"example_attention", "clean", ""},
      {"naive_fp32", "clean", ""},
      {"half_output", "unclassified", "of 195 elements"},
      {"reshapes", "unclassified", "of 195 elements"},
      {"overrun", "unclassified", "outside"},
      {"underrun", "unclassified", "outside"},
      {"writes_input", "unclassified", "input"},
      {"run_fails", "crashed", "run fails with code -3: launch failed"},
      {"run_segv", "crashed", "in run: signal 11 (SIGSEGV)"},
      {"run_exit", "crashed", "in run: exit 0"},
      {"run_refuses", "skipped", "does not support the case"},
      {"prepare_fails", "crashed", "prepare fails with code 7: no plan for this"},
      {"prepare_segv", "crashed", "in prepare: signal 11 (SIGSEGV)"},
      {"prepare_exit", "crashed", "in prepare: exit 0"},
      {"prepare_refuses", "skipped", "odd lengths are beyond me"},
      {"out_of_memory", "skipped", "out of memory"},
      {"release_fails", "crashed", "release fails with code 9"},
      {"release_segv", "crashed", "in release: signal 11 (SIGSEGV)"},
  };
  for (const auto& [kernel, kind, words] : expected) {
    ASSERT_TRUE(all.contains(kernel)) << kernel;
    EXPECT_EQ(all.at(kernel).at("kind"), kind) << kernel << ": " << all.at(kernel);
    EXPECT_NE(text_of(all.at(kernel)).find(words), std::string::npos) << kernel << ": " << all.at(kernel);
  }
  EXPECT_EQ(all.size(), std::size(expected)) << "fa2_bf16 is not asked about an fp32 case";
  EXPECT_EQ(all.at("overrun").at("level"), "invariant");
  EXPECT_EQ(all.at("writes_input").at("level"), "invariant");
}

TEST(Plugin, AKernelThatNeverReturnsIsHungAndTheNextOneRuns) {
  const Outcome run = assay(fmt::format("check run_hang prepare_hang good {} {} --deadline 5 --jobs 1 --json", kCase,
                                        plugin("misbehaves_plugin")));
  EXPECT_EQ(run.exit, 5);
  const std::map<std::string, nlohmann::json> all = verdicts(run);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all.at("run_hang").at("kind"), "hung");
  EXPECT_EQ(text_of(all.at("run_hang")), "in run: no reply within 5000 ms");
  EXPECT_EQ(all.at("prepare_hang").at("kind"), "hung");
  EXPECT_EQ(text_of(all.at("prepare_hang")), "in prepare: no reply within 5000 ms");
  EXPECT_EQ(all.at("good").at("kind"), "clean");
}

TEST(Plugin, ThatCrashesOrHangsBeforeAnyCaseHasOneVerdictAndTheOthersAreStillJudged) {
  for (const auto& [deed, kind, words] :
       {std::tuple{"load_segv", "crashed", "in load: signal 11 (SIGSEGV)"},
        std::tuple{"load_exit", "crashed", "in load: exit 0"},
        std::tuple{"load_hang", "hung", "in load: no reply within 2000 ms"},
        std::tuple{"describe_segv", "crashed", "in describe: signal 11 (SIGSEGV)"},
        std::tuple{"describe_exit", "crashed", "in describe: exit 3"},
        std::tuple{"describe_hang", "hung", "in describe: no reply within 2000 ms"}}) {
    const Outcome run =
        shell(fmt::format("ASSAY_TEST_DEED={} {} check {} --deadline {} {} {} --json", deed, ASSAY_PROGRAM, kCase,
                          std::string(kind) == "hung" ? 2 : 60, plugin("says_plugin"), plugin("attention_plugin")));
    EXPECT_EQ(run.exit, 5) << deed << run.text;
    const std::map<std::string, nlohmann::json> all = verdicts(run);
    ASSERT_EQ(all.size(), 2U) << deed;
    EXPECT_EQ(all.at("example_attention").at("kind"), "clean") << deed;
    EXPECT_EQ(all.at("says_plugin.so").at("kind"), kind) << deed;
    EXPECT_NE(text_of(all.at("says_plugin.so")).find(words), std::string::npos) << deed << all.at("says_plugin.so");
  }
  const Outcome list =
      shell(fmt::format("ASSAY_TEST_DEED=describe_segv {} list kernels {}", ASSAY_PROGRAM, plugin("says_plugin")));
  EXPECT_EQ(list.exit, 5);
  EXPECT_NE(list.text.find("says_plugin.so: in describe: signal 11 (SIGSEGV)"), std::string::npos) << list.text;
}

TEST(Plugin, EveryWayToBeNoPluginHasItsOwnErrorInOneLine) {
  const auto expect_error = [](const Outcome& run, const std::string& words) {
    EXPECT_EQ(run.exit, 2) << words << "\n" << run.text;
    EXPECT_NE(run.text.find(words), std::string::npos) << run.text;
    EXPECT_EQ(std::count(run.text.begin(), run.text.end(), '\n'), 1) << run.text;
  };
  expect_error(assay("list kernels --plugin /no/such/file.so"), "/no/such/file.so: there is no such plug-in file");
  expect_error(assay("list kernels --plugin /tmp"), "/tmp: there is no such plug-in file");
  const std::string text =
      (std::filesystem::temp_directory_path() / fmt::format("assay_plugin_test_{}.so", getpid())).string();
  std::ofstream(text) << "no shared object";
  expect_error(assay("list kernels --plugin " + text), text + ": cannot be loaded as a shared object");
  std::filesystem::remove(text);
  expect_error(assay("list kernels " + plugin("no_symbol_plugin")),
               "no_symbol_plugin.so: has no symbol assay_get_plugin");
  for (const auto& [deed, words] :
       {std::pair{"no_table", "assay_get_plugin returns no table"},
        std::pair{"version", "abi_version is 7; this assay speaks 1"},
        std::pair{"small", "struct_size is 16; a table has at least 24 bytes"},
        std::pair{"no_describe", "describe is NULL"}, std::pair{"no_run", "run is NULL"},
        std::pair{"describe_fails", "describe fails with code 5: the licence has run out"},
        std::pair{"describe_null", "describe returns no manifest"},
        std::pair{"describe_long", "a manifest of more than"}, std::pair{"not_utf8", "a manifest that is not UTF-8"}})
    expect_error(
        shell(fmt::format("ASSAY_TEST_DEED={} {} check {} {}", deed, ASSAY_PROGRAM, kCase, plugin("says_plugin"))),
        words);
  const auto says = [&](const std::string& manifest, const std::string& words) {
    expect_error(shell(fmt::format("ASSAY_TEST_MANIFEST='{}' {} check {} {}", manifest, ASSAY_PROGRAM, kCase,
                                   plugin("says_plugin"))),
                 "says_plugin.so: manifest" + words);
  };
  says("{", ": is not JSON");
  says("{\"kernels\": []}", ".kernels: expected at least one kernel");
  says("{\"kernels\": [{\"name\": \"fa2_bf16\", \"op\": \"attention\", \"formats\": [\"bf16\"]}]}",
       ": the kernel name fa2_bf16 is taken by a kernel of assay");
  expect_error(shell(fmt::format(
                   "ASSAY_TEST_MANIFEST='{}' {} list kernels {} {}",
                   "{\"kernels\": [{\"name\": \"example_attention\", \"op\": \"attention\", \"formats\": [\"bf16\"]}]}",
                   ASSAY_PROGRAM, plugin("attention_plugin"), plugin("says_plugin"))),
               "the kernel name example_attention is taken by ");
}

TEST(Plugin, ATableWithMembersOfALaterVersionIsRead) {
  const Outcome run =
      shell(fmt::format("ASSAY_TEST_DEED=large ASSAY_TEST_MANIFEST='{}' {} list kernels {}",
                        "{\"kernels\": [{\"name\": \"later\", \"op\": \"softmax\", \"formats\": [\"bf16\"]}]}",
                        ASSAY_PROGRAM, plugin("says_plugin")));
  EXPECT_EQ(run.exit, 0);
  EXPECT_NE(run.text.find("later"), std::string::npos) << run.text;
}

TEST(Plugin, CasesOutsideTheManifestAreRefusedBeforeTheLaunch) {
  for (const auto& [line, words] :
       {std::pair{"attention d=1024 dtype=fp32", "takes d at most 512 only, not d=1024"},
        std::pair{"attention skv=70000 dtype=fp32", "takes skv at most 65536 only, not skv=70000"},
        std::pair{"attention sq=3 skv=9 mask=bool dtype=fp32", "takes mask none or causal only, not mask=bool"},
        std::pair{"attention sq=3 skv=9 softcap=8 dtype=fp32", "takes softcap at its default only, not softcap=8"}}) {
    const Outcome run = assay(fmt::format("check {} --case '{}' --json", plugin("attention_plugin"), line));
    EXPECT_EQ(run.exit, 6) << run.text;
    EXPECT_EQ(text_of(verdicts(run).at("example_attention")), words);
  }
}

TEST(Plugin, MisalignedTensorsAreRefusedBeforeTheLaunch) {
  const std::string manifest =
      "{\"kernels\": [{\"name\": \"aligned\", \"op\": \"attention\", \"formats\": [\"bf16\"], \"alignment\": 16, "
      "\"limits\": {\"sq\": \"any\", \"skv\": \"any\", \"offset\": \"any\", \"pad_dim\": \"any\"}}]}";
  const auto reason = [&](const std::string& line) {
    const Outcome run = shell(fmt::format("ASSAY_TEST_MANIFEST='{}' {} check {} --case '{}' --json", manifest,
                                          ASSAY_PROGRAM, plugin("says_plugin"), line));
    return text_of(verdicts(run).at("aligned"));
  };
  EXPECT_NE(reason("attention sq=3 skv=9 offset=3").find("q: its address is no multiple of 16 bytes"),
            std::string::npos);
  EXPECT_NE(reason("attention sq=3 skv=9 pad_dim=3").find("q: stride 67 of axis 2 is no multiple of 16"),
            std::string::npos);
  EXPECT_EQ(reason("attention sq=4 skv=9 offset=8 pad_dim=8 lse=none"), "takes lse at its default only, not lse=none");
  EXPECT_EQ(reason("attention sq=4 skv=9 offset=8 pad_dim=8"), "run fails with code 3") << "it is launched";
}

TEST(Plugin, ReproToleranceAndListKnowAPluginsKernels) {
  const std::string line = "'attention sq=3 skv=40 dtype=fp32'";
  const Outcome repro = assay(fmt::format("repro {} --kernel example_attention {}", line, plugin("attention_plugin")));
  EXPECT_EQ(repro.exit, 0) << repro.text;
  EXPECT_NE(repro.text.find("example_attention one row at a time"), std::string::npos) << repro.text;
  const Outcome tolerance =
      assay(fmt::format("tolerance {} --kernel example_attention {}", line, plugin("attention_plugin")));
  EXPECT_EQ(tolerance.exit, 0) << tolerance.text;
  EXPECT_EQ(assay(fmt::format("tolerance {} --kernel example_attention", line)).exit, 2)
      << "no plug-in, no such kernel";
  EXPECT_EQ(
      assay(fmt::format("tolerance 'attention d=1024' --kernel example_attention {}", plugin("attention_plugin"))).exit,
      2);
  const Outcome list = assay("list kernels --json " + plugin("attention_plugin"));
  const nlohmann::json kernel = nlohmann::json::parse(list.text).at("kernels").at(0);
  EXPECT_EQ(kernel.at("name"), "example_attention");
  EXPECT_EQ(kernel.at("unknown_fields"), 2) << "tile_n and tanh";
  EXPECT_EQ(kernel.at("takes").at("mask"), "none or causal");
  EXPECT_EQ(assay("repro 'softmax n=70' --kernel example_attention " + plugin("attention_plugin")).exit, 2)
      << "another op";
}

TEST(Plugin, ARecordsCommandNamesThePlugin) {
  const Outcome run = assay(fmt::format("check overrun {} {} --json", kCase, plugin("misbehaves_plugin")));
  std::string repro = nlohmann::json::parse(run.text).at("records").at(0).at("repro");
  EXPECT_NE(repro.find("--kernel overrun --plugin '"), std::string::npos) << repro;
  EXPECT_EQ(shell(repro.replace(0, 5, ASSAY_PROGRAM)).exit, 1) << repro;
}

}  // namespace
}  // namespace assay

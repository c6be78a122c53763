// Device kernels through the programs: listed everywhere, run and sanitized where there is a device, else skipped with
// the reason.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/sanitizer.h"
#include "kernels/worker.h"
#include "oracle/error.h"

namespace assay {
namespace {

struct Outcome {
  int exit = -1;
  std::string text;  ///< standard output and error together
};

Outcome assay(const std::string& arguments) {
  Outcome run;
  const std::string command = "cd / && (" + std::string(ASSAY_PROGRAM) + " " + arguments + ") 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) run.text.append(buffer, n);
  const int status = pclose(pipe);
  run.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

DeviceInfo device() { return worker_runner({{ASSAY_PROGRAM, "worker"}})->device(); }

bool has_sanitizer() {
  try {
    find_sanitizer();
    return true;
  } catch (const EnvironmentError&) {
    return false;
  }
}

constexpr const char* kCases = " --case 'softmax rows=3 n=300 dtype=fp32 lse=e' --case 'softmax n=1 dtype=fp32'";

TEST(DevicePrograms, ListDeviceKernelsWithOrWithoutADevice) {
  const nlohmann::json list = nlohmann::json::parse(assay("list kernels --json").text);
  int found = 0;
  for (const auto& kernel : list.at("kernels"))
    if (kernel.at("name") == "softmax_cuda_fp32" || kernel.at("name") == "softmax_cuda_fp32_overrun") {
      ++found;
      EXPECT_EQ(kernel.at("device"), true);
    }
  EXPECT_EQ(found, 2);
}

TEST(DevicePrograms, WithoutADeviceEveryRunIsSkippedAndDoctorIsContent) {
  if (device().absent.empty()) GTEST_SKIP() << device().text();
  const Outcome run = assay(std::string("check softmax_cuda_fp32 --json") + kCases);
  EXPECT_EQ(run.exit, 6) << run.text;
  const nlohmann::json document = nlohmann::json::parse(run.text);
  for (const auto& record : document.at("records")) {
    EXPECT_EQ(record.at("verdict").at("kind"), "skipped");
    EXPECT_EQ(record.at("verdict").at("reason").get<std::string>().find("no CUDA device ("), 0U) << record;
  }
  const nlohmann::json doctor = nlohmann::json::parse(assay("doctor --json").text);
  for (const auto& check : doctor.at("checks"))
    if (check.at("name") == "device") {
      EXPECT_TRUE(check.at("ok").get<bool>());
      EXPECT_EQ(check.at("text").get<std::string>().find("none: no CUDA device ("), 0U) << check;
    }
}

TEST(DevicePrograms, ASoundKernelIsCleanAndItsRecordNamesTheDevice) {
  if (const DeviceInfo here = device(); !here.absent.empty()) GTEST_SKIP() << here.absent;
  const Outcome run = assay(std::string("check softmax_cuda_fp32 --json") + kCases);
  EXPECT_EQ(run.exit, 0) << run.text;
  const nlohmann::json document = nlohmann::json::parse(run.text);
  EXPECT_EQ(document.at("environment").at("device"), device().text());
  EXPECT_EQ(document.at("records").at(0).at("device"), device().text());
}

TEST(DevicePrograms, PlantedBugsAreFoundByGuardsAndPoison) {
  if (const DeviceInfo here = device(); !here.absent.empty()) GTEST_SKIP() << here.absent;
  const Outcome overrun = assay(std::string("check softmax_cuda_fp32_overrun") + kCases);
  EXPECT_EQ(overrun.exit, 1);
  EXPECT_NE(overrun.text.find("wrote outside output y on the device: byte 0 behind"), std::string::npos)
      << overrun.text;
  EXPECT_EQ(assay(std::string("check softmax_cuda_fp32_workspace_unset") + kCases).exit, 1);
}

TEST(DevicePrograms, PlantedBugsAreFoundByTheSanitizerAndTheSoundKernelIsSilent) {
  if (const DeviceInfo here = device(); !here.absent.empty()) GTEST_SKIP() << here.absent;
  if (!has_sanitizer()) GTEST_SKIP() << "no compute-sanitizer";
  for (const char* tool : {"memcheck", "racecheck", "initcheck", "synccheck"}) {
    const Outcome sound = assay(std::string("check softmax_cuda_fp32 --sanitize ") + tool + kCases);
    EXPECT_EQ(sound.exit, 0) << sound.text;
  }
  for (const auto& [mutant, tool] : {std::pair{"overrun", "memcheck"}, std::pair{"workspace_unset", "initcheck"},
                                     std::pair{"barrier_missing", "racecheck"}}) {
    const Outcome found =
        assay(std::string("check softmax_cuda_fp32_") + mutant + " --json --sanitize " + tool + kCases);
    EXPECT_EQ(found.exit, 1) << found.text;
    const nlohmann::json first = nlohmann::json::parse(found.text).at("records").at(0);
    EXPECT_EQ(first.at("verdict").at("kind"), "finding") << first;
    EXPECT_EQ(first.at("verdict").at("mode"), tool);
  }
}

TEST(DevicePrograms, SanitizeNeedsADeviceKernelAndTheTool) {
  EXPECT_EQ(assay("check fa2_bf16 --sanitize memcheck").exit, 2);
  EXPECT_EQ(assay("check softmax_cuda_fp32 --sanitize leakcheck").exit, 2);
  if (has_sanitizer()) GTEST_SKIP() << "compute-sanitizer is here";
  const Outcome run = assay("check softmax_cuda_fp32 --sanitize memcheck");
  EXPECT_EQ(run.exit, 3);
  EXPECT_EQ(run.text.find("assay: --sanitize needs compute-sanitizer"), 0U) << run.text;
  EXPECT_EQ(run.text.find('\n'), run.text.size() - 1) << run.text;
}

}  // namespace
}  // namespace assay

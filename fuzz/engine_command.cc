// Command lines of the fuzzing engine.
#include "fuzz/engine_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace assay {

std::vector<std::string> EngineCommand::base(const Assignment& task) const {
  std::vector<std::string> argv{(task.mutant ? tools_.mutant_engine : tools_.engine).string(), task.op};
  if (!task.kernels.empty()) argv.push_back(fmt::format("--kernel={}", fmt::join(task.kernels, ",")));
  if (!task.plugin.empty()) argv.push_back("--plugin=" + task.plugin);
  // What the driver maps into a process counts towards libFuzzer's limit of 2 GiB.
  if (task.device) argv.insert(argv.end(), {"--device", "-rss_limit_mb=16384"});
  return argv;
}

std::vector<std::string> EngineCommand::fuzz(const Assignment& task, std::int64_t number, std::uint64_t seed,
                                             double seconds, std::int64_t runs) const {
  std::vector<std::string> argv = base(task);
  argv.insert(argv.end(),
              {"--findings=" + folders_.findings().string(), "--stats=" + folders_.stats(number).string(),
               // Zero would be libFuzzer's own choice by the clock.
               fmt::format("-seed={}", 1 + (seed + static_cast<std::uint64_t>(number)) % 0x7fffffff),
               fmt::format("-timeout={}", deadline_), fmt::format("-report_slow_units={}", deadline_ + 1),
               "-artifact_prefix=" + folders_.artifacts(number).string(), "-reload=1",
               // Smaller inputs are the merge's work: libFuzzer deletes the old file before it writes the new.
               "-reduce_inputs=0",
               // A limit on file sizes is an error of a write, not a death.
               "-handle_xfsz=0"});
  if (seconds > 0) argv.push_back(fmt::format("-max_total_time={}", static_cast<long>(std::ceil(seconds))));
  if (runs > 0) argv.push_back(fmt::format("-runs={}", runs));
  argv.push_back(folders_.corpus(task.op).string());
  for (const std::string& folder : tools_.seeds(task.op)) argv.push_back(folder);
  return argv;
}

std::vector<std::string> EngineCommand::merge(const Assignment& task, const std::filesystem::path& out) const {
  std::vector<std::string> argv = base(task);
  argv.insert(argv.end(),
              {"--findings=" + (folders_.merge() / "findings").string(), "-merge=1",
               fmt::format("-timeout={}", deadline_), "-artifact_prefix=" + (folders_.merge() / "artifacts-").string(),
               "-handle_xfsz=0", out.string(), folders_.corpus(task.op).string()});
  return argv;
}

std::vector<std::string> EngineCommand::repeat(const Assignment& task, const std::string& kernel,
                                               const std::string& input) const {
  Assignment one = task;
  one.kernels = {kernel};
  std::vector<std::string> argv = base(one);
  argv.push_back("--findings=" + folders_.repeat().string());
  for (const char* handler : {"segv", "bus", "abrt", "ill", "fpe"})
    argv.push_back(fmt::format("-handle_{}=0", handler));
  argv.push_back(input);
  return argv;
}

std::vector<std::string> EngineCommand::list_regimes(const Assignment& task) const {
  return {base(task)[0], task.op, "--list-regimes"};
}

std::vector<std::string> visible_devices(int count) {
  std::vector<std::string> devices;
  if (const char* named = std::getenv("CUDA_VISIBLE_DEVICES"); named != nullptr && *named != '\0') {
    std::istringstream list(named);
    for (std::string device; std::getline(list, device, ',');) devices.push_back(device);
  } else {
    for (int i = 0; i < count; ++i) devices.push_back(std::to_string(i));
  }
  return devices;
}

}  // namespace assay

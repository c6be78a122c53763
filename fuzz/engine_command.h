// Command lines of the fuzzing engine, `assay_fuzz` and `assay_mutants_fuzz`, for everything a campaign asks of it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/assignments.h"
#include "fuzz/campaign_state.h"

namespace assay {

/// The programs, and what each engine begins with.
struct EngineTools {
  std::filesystem::path engine, mutant_engine;
  /// Committed inputs of an op: folders that exist.
  std::function<std::vector<std::string>(const std::string& op)> seeds;
};

/// Folders of a campaign. Members of a job array have their own `state` and one `shared`.
struct CampaignFolders {
  std::filesystem::path state, shared;

  std::filesystem::path corpus(const std::string& op) const { return shared / "corpus" / op; }
  std::filesystem::path findings() const { return shared / "findings"; }
  std::filesystem::path quarantine() const { return shared / "quarantine"; }
  std::filesystem::path stats(std::int64_t number) const {
    return state / "stats" / (std::to_string(number) + ".json");
  }
  /// libFuzzer puts the rest of a name behind it.
  std::filesystem::path artifacts(std::int64_t number) const {
    return state / "artifacts" / (std::to_string(number) + "-");
  }
  std::filesystem::path merge() const { return state / "merge"; }
  std::filesystem::path repeat() const { return state / "repeat"; }
};

class EngineCommand {
 public:
  EngineCommand(const CampaignFolders& folders, const EngineTools& tools, int deadline)
      : folders_(folders), tools_(tools), deadline_(deadline) {}

  /// The program, target and kernels: what every command begins with.
  std::vector<std::string> base(const Assignment& task) const;
  /// Fuzzes as engine process `number` for so many seconds (0: no limit) and executions (0: no limit).
  std::vector<std::string> fuzz(const Assignment& task, std::int64_t number, std::uint64_t seed, double seconds,
                                std::int64_t runs) const;
  /// Fills `out` with what the corpus needs beyond what is in `out` already.
  std::vector<std::string> merge(const Assignment& task, const std::filesystem::path& out) const;
  /// Executes one input on one kernel; a signal ends the process as the kernel gave it.
  std::vector<std::string> repeat(const Assignment& task, const std::string& kernel, const std::string& input) const;
  std::vector<std::string> list_regimes(const Assignment& task) const;

 private:
  const CampaignFolders& folders_;
  const EngineTools& tools_;
  int deadline_;
};

/// GPUs that engines may use: the entries of CUDA_VISIBLE_DEVICES where that is set, else 0 .. count-1.
std::vector<std::string> visible_devices(int count);

}  // namespace assay

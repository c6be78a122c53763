// Quarantine: inputs that killed or hung an engine, each once, with a text that says how.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/campaign.h"

namespace assay {

/// What is known of an engine's death.
struct EngineDeath {
  std::string op;
  std::vector<std::string> kernels;
  std::string how;      ///< "exit 77", "signal 9 (SIGKILL)"
  std::string tail;     ///< the end of what it printed
  std::string command;  ///< repeats it, up to the input's path
};

class Quarantine {
 public:
  explicit Quarantine(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Runs a crash's input again and returns what became of it: the one kernel that it kills, and the signal.
  using Repeat = std::function<EngineDeath(const std::filesystem::path& input, const EngineDeath& death)>;

  /// Moves what libFuzzer left under `prefix` ("DIR/artifacts/7-" for DIR/artifacts/7-crash-<sha1>) into the folder, as
  /// crash-<sha1>, beside it .json and .txt. An input that is already there is counted only; so is one more of the same
  /// kind for kernels that have kPerSet. Torn files are deleted. Returns the number of artifacts.
  std::size_t take(const std::filesystem::path& prefix, const EngineDeath& death, const Repeat& repeat) const;
  /// A death that left no input behind: only the texts.
  void take_without_input(const EngineDeath& death) const;
  /// All of them, by name.
  std::vector<QuarantineEntry> entries() const;

  static constexpr std::size_t kPerSet = 32;

 private:
  void add(QuarantineEntry entry, const EngineDeath& death) const;
  std::filesystem::path folder_;
};

}  // namespace assay

// Target: one thing that the fuzz program can be pointed at; the registry of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// What the command line says to a target; readers have no use for any of it.
struct TargetOptions {
  std::vector<std::string> kernels;  ///< empty: every kernel of the op that is no mutant
  std::vector<std::string> plugins;  ///< shared objects whose kernels are linked in as workers
  bool device = false;               ///< only kernels that run on a GPU
  bool signal = true;                ///< false: no features, so that only code coverage steers
  bool recipes = true;               ///< false: byte mutation alone
  std::string findings;  ///< a folder: record findings there and go on; empty: a finding aborts
  std::string stats;     ///< a file, rewritten about once a second
  bool stop = false;     ///< with findings: end after the first
};

class Target {
 public:
  virtual ~Target() = default;
  /// Runs one input. Aborts where the input shows a fault. -1: the input is nothing for this target.
  virtual int run(std::span<const std::uint8_t> input) = 0;
  /// Another input after `input`; nothing if this target leaves that to byte mutation.
  virtual std::string mutate(std::span<const std::uint8_t> input, std::uint64_t seed);
  /// Called once when the program ends by itself.
  virtual void finish() {}
};

struct TargetInfo {
  std::string name, summary;
  std::unique_ptr<Target> (*open)(const std::string& name, const TargetOptions& options) = nullptr;
};

/// Registration of a target that is no op: one static RegisterTarget per file of fuzz/targets.
struct RegisterTarget {
  explicit RegisterTarget(TargetInfo target);
};

/// Every op of the registry, then the others, by name.
std::vector<TargetInfo> all_targets();

}  // namespace assay

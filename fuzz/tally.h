// Tally: what a fuzz process has done so far, by kernel; and the file in which its supervisor reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "fuzz/regimes.h"
#include "reports/record.h"

namespace assay {

struct KernelTally {
  std::int64_t executions = 0;
  std::map<std::string, double> worst;  ///< "T0 o" -> largest share of the bound that an accepted element used
  Regimes regimes{0};
};

class Tally {
 public:
  /// `file`: empty for none. Throws InputError for an op that does not exist.
  Tally(const Op& op, std::string file) : op_(op), file_(std::move(file)) {}

  /// A run; `regimes` if it gave outputs to judge.
  void add(const Record& record, const std::optional<Regimes>& regimes);
  /// An input that no kernel could be asked about.
  void reject() { ++rejected_; }
  std::int64_t executions() const { return executions_; }
  /// Writes the file if a second has passed since it was last written, or `now`. Throws EnvironmentError naming it if it
  /// cannot be written; the file is then as it was.
  void write(bool now);

 private:
  const Op& op_;
  std::string file_;
  std::int64_t executions_ = 0, rejected_ = 0;
  std::map<std::string, std::int64_t> verdicts_;
  std::map<std::string, KernelTally> kernels_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point written_ = start_;
};

}  // namespace assay

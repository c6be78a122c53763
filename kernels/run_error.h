// What a kernel's run may throw to say what became of it; `invoke` turns each into an outcome.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace assay {

/// The machine lacks what the run needs now (a device, memory): the run is skipped.
class CannotRun : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The kernel says that it failed, in words of its own: a crash.
class RunFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The run ended and broke what every kernel must keep: guards, inputs. One sentence per finding.
class InvariantsBroken : public std::runtime_error {
 public:
  explicit InvariantsBroken(std::vector<std::string> findings)
      : std::runtime_error("invariants broken"), findings_(std::move(findings)) {}
  const std::vector<std::string>& findings() const { return findings_; }

 private:
  std::vector<std::string> findings_;
};

/// The run crashed and took with it what later runs of this process need (the device context): the process must end.
class ProcessSpoiled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace assay

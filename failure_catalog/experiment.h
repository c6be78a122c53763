// Experiment: running the kernel under test again, on other inputs or on the same ones; its name stays unknown.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/op.h"

namespace assay {

/// Where a rerun of the same bytes takes place.
enum class Freshness : std::uint8_t {
  kSameProcess,
  kFreshProcess,
  kOtherFill,  ///< same process, memory handed out without content filled with the other pattern
};

/// Bounded: after some dozen runs for one verdict every call returns nothing.
class Experiment {
 public:
  virtual ~Experiment() = default;
  /// Outputs on another problem of the same op; nothing if the kernel refuses it, crashes, hangs, or runs are spent.
  virtual std::optional<std::vector<Tensor>> run(const Problem& problem) = 0;
  /// The same for the problem of the verdict.
  virtual std::optional<std::vector<Tensor>> rerun(Freshness freshness) = 0;
  /// What the kernel declared in the last `run` that gave outputs.
  virtual const Arithmetic& declared() const = 0;
  /// The same kernel asked about another problem, which must outlive it, with runs of its own.
  virtual std::unique_ptr<Experiment> about(const Problem& problem) const = 0;
};

}  // namespace assay

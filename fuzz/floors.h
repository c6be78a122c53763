// Detection floors by probes: what the inputs of suite `probe` prove of one declared arithmetic at any number of keys,
// by planting and by runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/runner.h"
#include "oracle/truth.h"

namespace assay {

/// One output's answer to one fault: planted in an otherwise perfect kernel, at the level asked for.
struct FloorOfOutput {
  std::string role;  ///< "o", "lse"
  bool proven =
      false;  ///< the whole fault is rejected: every key's loss, one ghost key, a scale off by 1e-4 either way
  /// Smallest size seen to be rejected: of a key's weight, for every key; ghost keys; relative to the scale. NaN: none.
  double smallest = 0;
  std::int64_t positions = 0;  ///< dropped key: key positions whose loss is rejected
};

/// Runs with the fault: of a mutant, or of the kernel on inputs that hide the key from it.
struct FloorRuns {
  std::string what;  ///< "key hidden from fa2_bf16 at 16 positions", "fa2_bf16_scale_off_1e-4"
  std::int64_t runs = 0, rejected_o = 0, rejected_lse = 0;
};

struct FaultFloor {
  /// "dropped key"; "ghost key"; "scale off by 1e-4, one key" per row, which only its LSE can show; "scale off by 1e-4,
  /// without LSE"
  std::string fault;
  std::int64_t keys = 0;
  std::string kernel, case_line;
  Level level = Level::kT0;       ///< the highest that the declaration reaches
  std::int64_t covered = 0;       ///< dropped key: keys that are in exactly one row's support
  std::int64_t elements = 0;      ///< of o
  std::int64_t single = 0;        ///< of them: one code is accepted
  std::int64_t false_alarms = 0;  ///< rejected elements of the correct kernel's own outputs; -1: it was not run
  std::vector<FloorOfOutput> outputs;
  std::vector<FloorRuns> runs;
};

/// Elements of an output whose set at the highest level holds one code.
std::int64_t single_valued(const Evaluation& evaluation, std::size_t output);

/// The three faults for one number of keys (a multiple of 2,048) and one kernel of 16-bit inputs. `runner` runs the
/// kernel and its mutants (those that it does not have are left out). Level: the highest to judge by.
std::vector<FaultFloor> probe_floors(std::int64_t keys, const std::string& kernel, Runner& runner, Level level);

}  // namespace assay

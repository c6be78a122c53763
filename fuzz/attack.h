// Attack: a search over cases for the largest share of its bound that each correct kernel uses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cases/case.h"
#include "kernels/kernel.h"
#include "oracle/measure.h"

namespace assay {

struct AttackOptions {
  std::string op = "attention";
  std::vector<std::string> kernels;  ///< empty: every correct kernel of the op
  double seconds = 60;
  std::int64_t evaluations =
      0;  ///< > 0: end after so many, whatever the time; the result then depends on the seed only
  std::uint64_t seed = 1;
  Level level = Level::kT1;                                                     ///< the highest that is attacked
  std::vector<std::string> suites{"smoke", "edge", "adversarial", "llm_like"};  ///< where to begin,
  std::vector<Case> starts;                                                     ///< and the best lines of earlier runs
};

/// One record of the climb: more used than ever before.
struct AttackStep {
  std::int64_t evaluation = 0;  ///< number of kernel runs judged until then
  double used = 0;              ///< ElementReport::used
};

/// The best of one kernel, level and output.
struct AttackPeak {
  std::string kernel, output;
  Level level = Level::kT0;
  std::string case_line;
  ElementReport element;
  std::vector<AttackStep> curve;
  std::vector<std::pair<std::string, double>>
      terms;  ///< T0 only: what the bound at that element consists of, as shares of tau
};

struct AttackResult {
  std::int64_t evaluations = 0, rejected_cases = 0;  ///< runs judged; of them with an element outside its set
  double seconds = 0;
  std::vector<AttackPeak> peaks;         ///< by kernel, level, output
  std::vector<std::string> not_reached;  ///< kernels for which no suite has a small enough case
};

/// Hill climbing from the op's cases of those suites: each kernel in turn, one of its peaks in turn; a few of the best
/// cases of each are kept and mutated. `progress` is called now and then with the result so far. Throws InputError for
/// an unknown op or kernel.
AttackResult attack(const AttackOptions& options, const std::function<void(const AttackResult&)>& progress);

}  // namespace assay

// False alarms: what our rule and every foreign judge say of correct kernels on adversarial cases.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cases/case.h"
#include "fuzz/parallel.h"

namespace assay {

struct FalseAlarmOptions {
  std::size_t cases =
      300;  ///< distinct lines: evenly spaced ones of suite adversarial, or all of it and fresh rows of its plan
  std::uint64_t seed = 1;  ///< of the fresh rows
  unsigned jobs = 1;
  Deadline deadline = {};
};

/// One rule's opinions of outputs of correct kernels.
struct Alarms {
  std::int64_t runs = 0, alarms = 0;          ///< kernel x case
  std::int64_t cases = 0, cases_alarmed = 0;  ///< distinct lines, with some kernel's opinion or alarm
  std::string first;                          ///< "kernel: case: reason" of the first alarm
};

struct FalseAlarms {
  std::int64_t cases = 0;                                                             ///< distinct lines
  std::map<std::string, Alarms> rules;                                                ///< "assay" and the judges
  std::int64_t clean = 0, out_of_range = 0, uncertain = 0, vacuous = 0, skipped = 0;  ///< runs, by our verdict
  std::size_t left_out = 0;  ///< lines that the deadline cut off
};

/// Distinct adversarial lines, at least `count` unless the plan has no more.
std::vector<Case> adversarial_cases(std::size_t count, std::uint64_t seed);

/// Runs every host kernel without a planted fault on every case it takes.
FalseAlarms false_alarms(const FalseAlarmOptions& options, const OpenRunner& open);

}  // namespace assay

// What repeating the call that failed says: the same bits, other bits each time, or other bits once and then no more.
#pragma once

#include <optional>
#include <string>

#include "failure_catalog/mode.h"

namespace assay {

struct Repetition {
  bool settles = false;    ///< two repetitions in a row agree with each other, but not with the first run
  std::string difference;  ///< "o[0,0,3,1] is 0x3f80 and 0x3f81"
};

/// Repeats the call up to `times` times until its bits differ, then twice more. Nothing where the kernel cannot be
/// asked or every repetition writes the bits of the first run.
std::optional<Repetition> repeated(const Scene& scene, int times);

}  // namespace assay

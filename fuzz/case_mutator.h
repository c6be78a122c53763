// CaseMutator: fuzz inputs out of fuzz inputs, as cases of one op.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/mutate.h"

namespace assay {

class CaseMutator {
 public:
  /// `formats`: names of the input formats that cases should have; empty: any.
  CaseMutator(std::string_view op, const MutationLimits& limits, std::vector<std::string> formats = {})
      : op_(op), limits_(limits), formats_(std::move(formats)) {}

  /// One to three mutations of the input's case; now and then, and where the input has none, a fresh case.
  std::string mutate(std::span<const std::uint8_t> input, std::uint64_t seed);

 private:
  Case fresh(const Choose& choose) const;
  /// The case in one of the formats.
  std::string line(Case c, const Choose& choose) const;

  std::string_view op_;
  MutationLimits limits_;
  std::vector<std::string> formats_;
  Case last_ = {};  ///< the last mutant, whose fields others take
};

}  // namespace assay

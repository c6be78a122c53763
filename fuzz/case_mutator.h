// CaseMutator: fuzz inputs out of fuzz inputs, as cases of one op.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/mutate.h"

namespace assay {

class CaseMutator {
 public:
  CaseMutator(std::string_view op, const MutationLimits& limits) : op_(op), limits_(limits) {}

  /// One to three mutations of the input's case; now and then, and where the input has none, a fresh case.
  std::string mutate(std::span<const std::uint8_t> input, std::uint64_t seed);
  /// A child of both inputs' cases; a mutation of the first where there is none.
  std::string cross(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b, std::uint64_t seed);

 private:
  std::string fresh(const Choose& choose) const;

  std::string_view op_;
  MutationLimits limits_;
  Case last_ = {};  ///< the last mutant, whose fields others take
};

}  // namespace assay

// The fixed mix of cases that fuzzing speed is measured on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/case.h"
#include "fuzz/parallel.h"
#include "kernels/runner.h"
#include "oracle/truth.h"

namespace assay {

struct MixCase {
  std::string kernel;
  Case c;
  std::int64_t scores = 0;  ///< keys over all rows
};

/// Lines of "kernel case"; empty ones and those that begin with # are passed over. Throws InputError naming file and line.
std::vector<MixCase> read_mix(const std::string& file);

/// The half of the cases with the fewest scores, in their order.
std::vector<MixCase> small_half(const std::vector<MixCase>& mix);

struct Throughput {
  std::int64_t cases = 0, scores = 0, left_out = 0;  ///< left out: no verdict on the outputs, because the kernel is not there
  double seconds = 0;
  double kernel_seconds = 0, oracle_seconds = 0;  ///< means over the threads
};

/// Whole rounds of the mix, with other seeds in each, until `seconds` have passed: case line to verdict at `level`, on
/// `threads` threads with a runner each. Throws std::runtime_error naming the case for any failure: the mix is for
/// sound kernels.
Throughput verify_mix(const std::vector<MixCase>& mix, const OpenRunner& open, unsigned threads, Level level,
                      double seconds, std::uint64_t seed);

}  // namespace assay

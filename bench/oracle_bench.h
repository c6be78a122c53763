// `assay bench oracle`: how fast the fp64 tier of attention is, beside uncertified fp64 and certified alternatives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::bench {

/// Median nanoseconds per score, one thread's processor time; `ratio` is ours over other's.
struct SpeedEntry {
  std::string name;
  double ours_ns_per_score = 0, other_ns_per_score = 0, ratio = 0;
  double largest_difference = 0;  ///< between our o or LSE and the other's; NaN where the other has none of its own
  double escalated = 0;           ///< share of our rows that ball arithmetic decided
};

/// Two threads against one, elapsed time.
struct Scaling {
  double ours_one = 0, ours_two = 0;        ///< ns per score
  double product_one = 0, product_two = 0;  ///< ns per element of q k^T
  double ratio = 0;                         ///< (ours_one / ours_two) over (product_one / product_two)
};

/// One length of the growth table.
struct GrowthRow {
  std::int64_t queries = 0, keys = 0, d = 0;
  double ns_per_score = 0;
  double peak_bytes = 0;  ///< what one evaluation adds to the largest resident size; NaN where the system does not say
  double operand_bytes = 0, score_array_bytes = 0;  ///< of q, k, v as stored; of an fp64 array of all scores
};

struct OracleBenchOptions {
  int repetitions = 21;      ///< of every timing that takes milliseconds; they are interleaved
  std::int64_t queries = 256, keys = 4096, longest = 65536;
};

struct OracleBench {
  std::vector<SpeedEntry> entries;
  Scaling scaling;
  std::vector<GrowthRow> growth;
};

/// Throws EnvironmentError on a processor without AVX2 and FMA, which the Eigen forms are compiled for.
OracleBench bench_oracle(const OracleBenchOptions& options);

}  // namespace assay::bench

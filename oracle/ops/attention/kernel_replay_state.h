// What a replay holds of a head, of a row, and between two key tiles.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "oracle/ops/attention/kernel_replay.h"

namespace assay {

/// Keys and values as stored, [keys][d] and [keys][dv].
struct KernelReplay::Head {
  std::int64_t keys = 0;
  std::vector<float> k, v;
  bool finite = true;  ///< all of v
};

struct KernelReplay::Row {
  AttentionRow at;
  const Head* head = nullptr;
  std::vector<float> q;
  std::vector<ReplayKey> keys;                      ///< all of the sequence
  std::int64_t first = 0, end = 0;                  ///< from the first to behind the last admissible key
  std::int64_t first_visited = 0, end_visited = 0;  ///< the same for the rows of its query tile
  double scale = 1;                                 ///< |scale q_scale k_scale|, of the first key
  float unit = 1;                                   ///< of a difference of two x, in the exponent of 2
  double sink = -std::numeric_limits<double>::infinity();
};

struct KernelReplay::State {
  float m = -std::numeric_limits<float>::infinity();
  std::array<float, 4> l{};
  std::vector<double> o;
  bool any = false;
  // Of the tile.
  std::int64_t first = 0;
  std::vector<float> x, p;  ///< by column; x of a key without logit is -inf
  std::vector<unsigned char> keep;  ///< bools

  std::vector<double> score;  ///< by key, where the deviation sums them in a narrower format

  float sum() const { return (l[0] + l[2]) + (l[1] + l[3]); }
};

/// A finished row of a split, or of all.
struct KernelReplay::Part {
  std::vector<double> o;
  double lse = -std::numeric_limits<double>::infinity();
  bool empty = true;
};

/// x in a format, overflow as in the kernels; kFp32 is for fp32 numbers that stay.
inline double stored(Format format, double x) {
  if (format == Format::kFp32) return static_cast<double>(static_cast<float>(x));
  return round_to(format, x, Rounding::kNearestEven,
                  bytes_per_element(format) == 1 ? Overflow::kSaturate : Overflow::kIeee);
}

}  // namespace assay

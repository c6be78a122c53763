// P V of one split accumulated as the block-FMA model does it: the exact sum and a bound on the kernel's, per channel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/mma.h"
#include "oracle/ops/attention/tile_walk.h"
#include "oracle/ops/attention/weight_replay.h"

namespace assay {

/// Exponent of a number as the tensor cores align it; zero has the code kNoExponent.
inline constexpr std::int16_t kNoExponent = -10000;
std::int16_t aligned_exponent(double value, int min_exponent);

/// The values of a head and their exponents, [keys][dv].
struct ValueOperand {
  const double* v = nullptr;
  const std::int16_t* exponent = nullptr;
  std::size_t channels = 0;
};

/// How P V is accumulated.
struct ChainForm {
  const MmaModel* model = nullptr;  ///< null: no chain is known; only the sums are formed
  Format operand = Format::kBf16;
  int promote_n =
      0;  ///< keys from a tile's start on whose products are summed from zero, then added in fp32; 0: one chain
  bool own_tile = false;  ///< each tile from zero, scaled by beta, combined as O = alpha O + beta P V (and normalised
                          ///< at every step)
  int tile_n = 0;
  bool magnitudes = false;  ///< form them too
};

/// All in the unit of the split's last maximum, [channels].
struct ValueSums {
  std::vector<double> sum;        ///< sum P~ A v
  std::vector<double> error;      ///< the kernel's accumulated numerator is off by at most this besides the next two
  std::vector<double> ambiguous;  ///< sum gap A |v|
  std::vector<double> factors;    ///< sum P~ A (e^weight_error - 1) |v|
  std::vector<double> magnitude;  ///< sum P~ A |v|; zeros unless asked for
};

void sum_values(const SplitWalk& split, std::span<const std::int32_t> keys, const WeightReplay& weights,
                const ValueOperand& values, const ChainForm& form, ValueSums& out);

}  // namespace assay

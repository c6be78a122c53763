// Which single keys a row cannot lose unseen: for every key of a row, whether an otherwise perfect kernel that left it
// out, or a part of its weight, would be rejected.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/floor.h"

namespace assay {

/// Keys of one judged row with a weight above 2^-60, ascending, and whether their loss leaves the acceptance sets of o
/// and of the LSE.
struct LostKeys {
  std::vector<std::int32_t> keys;
  std::vector<bool> seen_in_o, seen_in_lse;
};

/// Parallel to Truth::rows. A kernel that loses `share` of key j's weight p_j gives
///   o' = (o - share p_j f_j v_j) / (1 - share p_j)        lse' = lse + ln(1 - share p_j)
/// (with a sink the LSE's term counts what the LSE counts), moved by how far the level's centre is from the truth. Rows
/// without a softmax have no keys.
std::vector<LostKeys> visible_losses(const Problem& problem, const Truth& truth, const JudgedLevel& level,
                                     double share);

}  // namespace assay

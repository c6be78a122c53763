// Orders in which the channels of a vector may be confused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

/// Channel c is taken from from[c].
struct ChannelOrder {
  std::string what;
  std::vector<std::size_t> from;
};

/// Neighbours swapped, halves for pairs and back, lanes of 16 bytes for groups and back, halves swapped; without the
/// order that is right.
std::vector<ChannelOrder> channel_orders(std::size_t channels, std::size_t element_bytes);

}  // namespace assay

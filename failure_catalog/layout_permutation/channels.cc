// Channel orders of fragments, rotary pairs and split layouts.
#include "failure_catalog/layout_permutation/channels.h"

#include <algorithm>
#include <functional>

namespace assay {

std::vector<ChannelOrder> channel_orders(std::size_t channels, std::size_t element_bytes) {
  std::vector<ChannelOrder> all;
  const auto add = [&](std::string what, const std::function<std::size_t(std::size_t)>& from) {
    ChannelOrder order{std::move(what), std::vector<std::size_t>(channels)};
    bool moves = false;
    for (std::size_t c = 0; c < channels; ++c) {
      order.from[c] = from(c);
      moves = moves || order.from[c] != c;
    }
    const auto same = [&](const ChannelOrder& other) { return other.from == order.from; };
    if (moves && std::none_of(all.begin(), all.end(), same)) all.push_back(std::move(order));
  };
  const std::size_t half = channels / 2, lanes = 16 / element_bytes;
  add("neighbouring channels swapped", [&](std::size_t c) { return (c | 1) < channels ? c ^ 1 : c; });
  const auto in_pairs = [&](const std::function<std::size_t(std::size_t)>& from) {  // an odd last channel stays
    return [half, from](std::size_t c) { return c < 2 * half ? from(c) : c; };
  };
  add("channels 2 i and 2 i + 1 taken from i and d/2 + i",
      in_pairs([&](std::size_t c) { return c / 2 + c % 2 * half; }));
  add("channels i and d/2 + i taken from 2 i and 2 i + 1",
      in_pairs([&](std::size_t c) { return c < half ? 2 * c : 2 * (c - half) + 1; }));
  add("halves swapped", in_pairs([&](std::size_t c) { return (c + half) % (2 * half); }));
  if (channels % lanes == 0) {
    const std::size_t groups = channels / lanes;
    add("lanes of 16 bytes taken for groups", [&](std::size_t c) { return c % groups * lanes + c / groups; });
    add("groups taken for lanes of 16 bytes", [&](std::size_t c) { return c % lanes * groups + c / lanes; });
  }
  return all;
}

}  // namespace assay

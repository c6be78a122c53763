// M22: running maximum, sum and accumulator are not carried, not rescaled, or relative to different maxima.
#include <fmt/format.h>

#include "failure_catalog/deviations.h"

namespace assay {
namespace {

void attention(Deviations& all) {
  const Arithmetic& a = all.structure();
  if (a.max_policy == MaxPolicy::kGlobal) return;
  const std::string tiles = a.tile_n > 0 ? fmt::format("tiles of {}", a.tile_n) : std::string("key tiles");
  all.add(Deviation{.o_power = 0}, "O keeps its old scale when the maximum rises, l does not (" + tiles + ")");
  all.add(Deviation{.l_power = 0}, "l keeps its old scale when the maximum rises, O does not (" + tiles + ")");
  all.add(Deviation{.o_power = 0, .l_power = 0}, "O and l keep their old scale when the maximum rises (" + tiles + ")");
  all.add(Deviation{.o_power = 2}, "O is rescaled twice when the maximum rises (" + tiles + ")");
  all.add(Deviation{.l_power = 2}, "l is rescaled twice when the maximum rises (" + tiles + ")");
  all.add(Deviation{.o_power = 2, .l_power = 2}, "O and l are rescaled twice when the maximum rises (" + tiles + ")");
  if (a.max_policy == MaxPolicy::kOwnTile) {
    all.add(Deviation{.l_left_out = true},
            "O is divided by l after every tile and its old l is not multiplied in before (" + tiles + ")");
    all.add(Deviation{.tile_frame_kept = true},
            "P V of a tile stays relative to the tile's own maximum (" + tiles + ")");
    return;
  }
  all.add(Deviation{.frame = Deviation::Frame::kTileOnly},
          "the maximum is that of the last tile, not of all before it (" + tiles + ")");
  all.add(Deviation{.frame = Deviation::Frame::kStale},
          "P of a tile is relative to the maximum before the tile (" + tiles + ")");
}

void softmax(Deviations& all) {
  if (all.softmax()->tiled()) {
    all.add(SoftmaxDeviation{.l_power = 0}, "l keeps its old scale when the maximum rises");
    all.add(SoftmaxDeviation{.tile_maximum = true}, "the maximum is that of the last tile, not of all before it");
  }
  for (const std::int64_t tile : {16, 32, 64, 128, 256})
    if (tile < all.softmax()->problem().params().n || tile == 64)
      all.add(SoftmaxDeviation{.unshifted = tile},
              fmt::format("the last tile of {} keys takes e^x, not e^(x - m)", tile));
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  Deviations all(scene);
  if (all.attention() != nullptr) attention(all);
  if (all.softmax() != nullptr) softmax(all);
  return all.take();
}

const RegisterMode kRegister(
    {.name = "state_frame", .id = "M22", .title = "Running state in the wrong frame", .hypotheses = hypotheses});

}  // namespace
}  // namespace assay

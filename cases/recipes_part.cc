// Recipes for partial states of a merge: log-sum-exps by part and row, empty parts, and what stands in the output of an
// empty part.
#include <algorithm>
#include <array>
#include <limits>

#include "cases/families.h"

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void part_levels(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), f.args[1], f.args[0] * static_cast<double>(row.position), out);
}

void part_near_ties(const Field& f, const Row& row, std::span<double> out) {
  const double value = round_to(f.format, f.args[0], Rounding::kNearestEven, Overflow::kSaturate);
  const double above = decode(f.format, next_up(f.format, encode(f.format, value)));
  const Stream choice = stream_of(f, row);
  for (std::size_t r = 0; r < out.size(); ++r)
    out[r] = unit_uniform(choice.bits(static_cast<std::int64_t>(r))) < f.args[1] ? above : value;
}

/// Parts are positions; rows are the elements of a run of log-sum-exps and the heads of outputs, so both see the same
/// holes.
bool is_hole(std::int64_t part, std::int64_t row, double every) {
  return (part + row) % static_cast<std::int64_t>(every) == 0;
}

void part_holes(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), f.args[2], 0.0, out);
  for (std::size_t r = 0; r < out.size(); ++r)
    if (is_hole(row.position, static_cast<std::int64_t>(r), f.args[0])) out[r] = f.args[1] < 0 ? -kInfinity : kInfinity;
}

void hole_values(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), 1.0, 0.0, out);
  if (!is_hole(row.position, row.head, f.args[0])) return;
  const std::array<double, 4> kinds{0.0, info(f.format).max_finite, std::numeric_limits<double>::quiet_NaN(),
                                    kInfinity};
  std::fill(out.begin(), out.end(), kinds[static_cast<std::size_t>(f.args[1])]);
}

}  // namespace

std::vector<Recipe> part_recipes() {
  return {
      {"part_levels",
       {{"step", 1, -1e30, 1e30}, {"std", 0, 0, kHuge}},
       "for lse_parts: step times the part's number, plus normal(std)",
       part_levels},
      {"part_near_ties",
       {{"value", 1, -kHuge, kHuge}, {"p", 0.5, 0, 1}},
       "for lse_parts: every one is `value`, with probability p one step of the format higher",
       part_near_ties},
      {"part_holes",
       {{"every", 3, 1, kMany, true}, {"sign", -1, -1, 1}, {"std", 1, 0, kHuge}},
       "for lse_parts: normal(std); every n-th part, counted from part = -row, has sign infinity",
       part_holes,
       Fits::kNumbers,
       true,
       false,
       false,
       true},
      {"hole_values",
       {{"every", 3, 1, kMany, true}, {"kind", 2, 0, 3, true}},
       "for o_parts with lse_parts=part_holes: normal; in the holes 0, the largest number, NaN or infinity (kind 0 to "
       "3)",
       hole_values,
       Fits::kVectors,
       true,
       false,
       false,
       true},
  };
}

}  // namespace assay

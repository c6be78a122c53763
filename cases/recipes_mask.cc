// Recipes for masks: boolean ones (u8, 1 = attend) and additive ones.
#include <algorithm>
#include <limits>

#include "cases/families.h"

namespace assay {
namespace {

/// `hit` with probability p, else `miss`, independently for each key.
void choose(const Field& f, const Row& row, double p, double hit, double miss, std::span<double> out) {
  const Stream stream = stream_of(f, row);
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = unit_uniform(stream.bits(static_cast<std::int64_t>(k))) < p ? hit : miss;
}

void all(const Field&, const Row&, std::span<double> out) { std::fill(out.begin(), out.end(), 1.0); }

void keep(const Field& f, const Row& row, std::span<double> out) { choose(f, row, f.args[0], 1.0, 0.0, out); }

void block(const Field& f, const Row& row, std::span<double> out) {
  Row blocks = row;
  blocks.position = row.position / static_cast<std::int64_t>(f.args[0]);
  const Stream stream = stream_of(f, blocks);
  const auto columns = static_cast<std::size_t>(f.args[1]);
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = unit_uniform(stream.bits(static_cast<std::int64_t>(k / columns))) < f.args[2] ? 1.0 : 0.0;
}

void empty_rows(const Field& f, const Row& row, std::span<double> out) {
  std::fill(out.begin(), out.end(), row.position % static_cast<std::int64_t>(f.args[0]) == 0 ? 0.0 : 1.0);
}

void bias(const Field& f, const Row& row, std::span<double> out) {
  fill_normal(stream_of(f, row), f.args[0], 0.0, out);
}

void neg_inf(const Field& f, const Row& row, std::span<double> out) {
  choose(f, row, f.args[0], -std::numeric_limits<double>::infinity(), 0.0, out);
}

void neg_inf_rows(const Field& f, const Row& row, std::span<double> out) {
  const bool empty = row.position % static_cast<std::int64_t>(f.args[0]) == 0;
  std::fill(out.begin(), out.end(), empty ? -std::numeric_limits<double>::infinity() : 0.0);
}

void finite_min(const Field& f, const Row& row, std::span<double> out) {
  choose(f, row, f.args[0], -info(f.format).max_finite, 0.0, out);
}

}  // namespace

std::vector<Recipe> mask_recipes() {
  return {
      {"all", {}, "bool mask: every key admitted", all, Fits::kBoolMask, false},
      {"keep", {{"p", 0.5, 0, 1}}, "bool mask: each key admitted with probability p", keep, Fits::kBoolMask},
      {"block",
       {{"rows", 64, 1, kMany, true}, {"columns", 64, 1, kMany, true}, {"p", 0.5, 0, 1}},
       "bool mask: whole blocks of rows x columns admitted with probability p",
       block,
       Fits::kBoolMask},
      {"empty_rows",
       {{"every", 2, 1, kMany, true}},
       "bool mask: every n-th row, from row 0 on, admits no key, the others all",
       empty_rows,
       Fits::kBoolMask,
       false},
      {"bias", {{"std", 1, 0, kHuge}}, "additive mask: normal(std)", bias, Fits::kScoreMask},
      {"neg_inf",
       {{"p", 0.25, 0, 1}},
       "additive mask: -inf with probability p, else 0",
       neg_inf,
       Fits::kScoreMask,
       true,
       false,
       false,
       true},
      {"neg_inf_rows",
       {{"every", 2, 1, kMany, true}},
       "additive mask: every n-th row, from row 0 on, is -inf, the others 0",
       neg_inf_rows,
       Fits::kScoreMask,
       false,
       false,
       false,
       true},
      {"finite_min",
       {{"p", 0.25, 0, 1}},
       "additive mask: the format's lowest finite number with probability p, else 0",
       finite_min,
       Fits::kScoreMask},
  };
}

}  // namespace assay

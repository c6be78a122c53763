// Attention and merge cases drawn at run time, none of them a witness, in which the catalogue's mutants have a chance
// to fail.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "kernels/runner.h"
#include "tests/oracle/problems.h"

namespace assay {

/// A normal tensor of a fresh seed.
inline std::string drawn_normal(Dice& dice, double sigma = 1, double mean = 0) {
  return fmt::format("normal({},{})@{}", sigma, mean, dice.between(1, 1000000));
}

inline std::string drawn_merge(Dice& dice) {
  return fmt::format("merge parts={} rows={} dv={} dtype=fp32 base={} o_parts={} lse_parts={}", dice.between(2, 20),
                     dice.between(1, 12), dice.pick<int>({4, 8, 16, 32}), dice.pick({"e", "2"}), drawn_normal(dice),
                     drawn_normal(dice));
}

inline std::string drawn_lengths(Dice& dice, std::int64_t batch, std::int64_t longest) {
  std::vector<std::int64_t> lens{longest};
  for (std::int64_t b = 1; b < batch; ++b) lens.push_back(dice.between(1, longest));
  return fmt::format("{}", fmt::join(lens, ","));
}

/// Shapes, masks, layouts and stores of all kinds; `kernel` decides the dtype and the store.
inline std::string drawn_attention(Dice& dice, const KernelIdentity& kernel) {
  const std::int64_t batch = dice.between(1, 3), group = dice.pick<std::int64_t>({1, 1, 2, 3, 12});
  const std::int64_t kv_heads = group > 3 ? dice.between(1, 2) : dice.pick<std::int64_t>({1, 1, 2, 3, 4});
  const std::int64_t queries = group > 3 ? dice.between(1, 5) : dice.pick<std::int64_t>({1, 2, 5, 17, 70, 100});
  const std::int64_t keys = dice.between(1, dice.pick<std::int64_t>({20, 100, 300, queries > 17 ? 150 : 700}));
  const std::int64_t dim = dice.pick<std::int64_t>({16, 32, 64, 96});
  std::string line = fmt::format("attention b={} hq={} hkv={} sq={} skv={} d={} dtype={}", batch, kv_heads * group,
                                 kv_heads, queries, keys, dim, kernel.dtypes.front());
  const bool paged = kernel.name.starts_with("paged"), cascade = kernel.name.starts_with("cascade");
  std::int64_t kind = dice.between(0, 2);  // dense, packed, padded
  if (paged) {
    line += fmt::format(" kv={} page={} page_seed={}",
                        kernel.name.starts_with("paged_f") ? dice.pick({"nhd", "hnd"}) : dice.pick({"vllm", "vllm_x"}),
                        dice.pick<int>({8, 16, 32}), dice.between(0, 9));
    line += " kv_lens=" + drawn_lengths(dice, batch, keys);
    kind = 0;
  } else if (cascade && keys > 4) {
    line += fmt::format(" prefix={}", dice.between(1, keys - 1));
    kind = 0;
  }
  if (kind > 0)
    line += fmt::format(" batch={} q_lens={} kv_lens={}", kind == 1 ? "packed" : "padded",
                        drawn_lengths(dice, batch, queries), drawn_lengths(dice, batch, keys));
  switch (dice.between(0, 7)) {
    case 0:
    case 1: line += " mask=causal"; break;
    case 2: line += fmt::format(" window={},{}", dice.between(0, 40), dice.between(-1, 5)); break;
    case 3: line += fmt::format(" mask=causal window={},-1", dice.between(0, 40)); break;
    case 4: line += fmt::format(" mask=bool mask.data=keep(0.6)@{}", dice.between(1, 1000)); break;
    case 5: line += fmt::format(" mask=additive mask.data=bias(2)@{}", dice.between(1, 1000)); break;
    case 6: line += " segments=1"; break;
    default: break;
  }
  if (dice.one_in(4)) line += " align=tl";
  if (kind != 1 && !paged) {
    line += fmt::format(" layout={}", dice.pick({"bhsd", "bshd", "bhds"}));
    if (dice.one_in(3)) line += fmt::format(" pad_rows={} pad_dim={}", dice.between(0, 3), dice.between(0, 8));
  }
  if (dice.one_in(6)) line += fmt::format(" sink={}", dice.pick({"in_lse", "out_of_lse"}));
  if (dice.one_in(6)) line += " lse=2";
  return line + fmt::format(" q={} k={} v={}", drawn_normal(dice, dice.pick<double>({0.5, 1, 2})), drawn_normal(dice),
                            drawn_normal(dice, 1, dice.pick<double>({0, 0, 0.5})));
}

}  // namespace assay

// Attention problems built by meaning, for relations between answers that hold whatever the answer is.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "oracle/ops/attention/row_truth.h"
#include "tests/oracle/problems.h"

namespace assay {

using Entry = std::function<double(std::int64_t b, std::int64_t head, std::int64_t position, std::int64_t last)>;

/// A problem by meaning: what each sequence, head, position and channel holds, wherever that lies in memory. Entries
/// that the params do not ask for may be empty.
struct Meaning {
  Params params;
  Entry q, k, v;        ///< values of the input format; of shared keys (prefix, expand) those of b = 0 or head 0 count
  Entry mask;           ///< (b, head, query, key), by blocks for a block mask, (b, head, query, n) for a list
  Entry slopes, sink;   ///< (b, head)
  Entry seg_q, seg_kv;  ///< (b, 0, position)
  Entry q_scale, k_scale, v_scale;  ///< (b, head, block)
};

/// Writes the vectors of one sequence's keys, wherever they lie.
inline void fill_keys(Problem& problem, const AttentionParams& p, const std::string& role, const Entry& entry) {
  const auto at = [&](const char* tensor, auto... index) {
    const TensorView t = input(problem, tensor).view();
    return static_cast<std::int64_t>(t.value(t.element(index...)));
  };
  Tensor& own = input(problem, role);
  const OutputView t = own.output();
  const std::int64_t channels = role == "k" ? p.dim_qk : p.dim_v;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t len = p.lens_kv.empty() ? p.len_kv : p.lens_kv[static_cast<std::size_t>(b)];
    for (std::int64_t j = 0; j < len; ++j)
      for (std::int64_t g = 0; g < p.heads_kv; ++g)
        for (std::int64_t c = 0; c < channels; ++c) {
          const bool shared = j < p.prefix;
          const std::uint64_t code =
              encode(t.format(), entry(shared || p.expand_batch ? 0 : b, p.expand_heads ? 0 : g, j, c));
          if (p.kv_store == KvStore::kContiguous) {
            const std::int64_t i = j - p.prefix;
            if (shared) {
              const OutputView prefix = input(problem, role + "_prefix").output();
              prefix.set_code(prefix.element(g, j, c), code);
            } else if (p.batching == Batching::kPacked) {
              t.set_code(t.element(at("cu_seqlens_kv", b) + i, g, c), code);
            } else {
              t.set_code(t.element(b, g, i, c), code);
            }
            continue;
          }
          const bool lists = p.kv_store == KvStore::kNhd || p.kv_store == KvStore::kHnd;
          const std::int64_t page =
              lists ? at("kv_indices", at("kv_indptr", b) + j / p.page) : at("block_table", b, j / p.page);
          const std::int64_t slot = j % p.page, x = 16 / bytes_per_element(p.input);
          switch (p.kv_store) {
            case KvStore::kHnd: t.set_code(t.element(page, g, slot, c), code); break;
            case KvStore::kVllmX:
              if (role == "k")
                t.set_code(t.element(page, g, c / x, slot, c % x), code);
              else
                t.set_code(t.element(page, g, c, slot), code);
              break;
            default: t.set_code(t.element(page, slot, g, c), code);
          }
        }
  }
}

/// Memory that no sequence uses holds NaN or a large number.
inline Problem build(const Meaning& meaning) {
  const AttentionParams p = attention_params(meaning.params);
  std::uint64_t unused = 0;
  Problem problem = make_problem(meaning.params, [&](const TensorLayout& t) {
    if (t.format == Format::kUint8) return std::uint64_t{1};
    return encode(t.format, ++unused % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : info(t.format).max_finite);
  });
  const OutputView q = input(problem, "q").output();
  for (std::int64_t b = 0, token = 0; b < p.batch; ++b) {
    const std::int64_t used = p.lens_q.empty() ? p.len_q : p.lens_q[static_cast<std::size_t>(b)];
    for (std::int64_t i = 0; i < used; ++i, ++token)
      for (std::int64_t h = 0; h < p.heads_q; ++h)
        for (std::int64_t c = 0; c < p.dim_qk; ++c)
          q.set_code(p.batching == Batching::kPacked ? q.element(token, h, c) : q.element(b, h, i, c),
                     encode(q.format(), meaning.q(b, h, i, c)));
  }
  fill_keys(problem, p, "k", meaning.k);
  if (!p.v_in_k) fill_keys(problem, p, "v", meaning.v);
  // The rest: small tensors without unused elements that matter, filled whole. `axes` are those of the entry's
  // arguments.
  const auto fill = [&](std::string_view role, const Entry& entry, const std::vector<std::size_t>& axes) {
    for (Tensor& tensor : problem.inputs) {
      if (tensor.layout.role != role) continue;
      const OutputView t = tensor.output();
      std::vector<std::int64_t> index(tensor.layout.shape.size(), 0);
      for (std::int64_t e = 0; e < tensor.layout.count(); ++e) {
        std::int64_t rest = e, args[4] = {};
        for (std::size_t axis = index.size(); axis-- > 0; rest /= tensor.layout.shape[axis])
          args[axes[axis]] = rest % tensor.layout.shape[axis];
        t.set_code(e, encode(t.format(), entry(args[0], args[1], args[2], args[3])));
      }
    }
  };
  fill("mask", meaning.mask, {0, 1, 2, 3});
  fill("slopes", meaning.slopes, p.slopes_per_batch ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1});
  fill("sink", meaning.sink, {1});
  fill("seg_q", meaning.seg_q, {0, 2});
  fill("seg_kv", meaning.seg_kv, {0, 2});
  const std::vector<std::size_t> factor =
      p.descale == Descale::kTensor ? std::vector<std::size_t>{3} : std::vector<std::size_t>{0, 1, 2};
  fill("q_scale", meaning.q_scale, factor);
  fill("k_scale", meaning.k_scale, factor);
  fill("v_scale", meaning.v_scale, factor);
  return problem;
}

struct Known {
  double mid = 0, radius = 0;
  ClassSet classes = 0;
};

struct Row {
  std::vector<Known> o;
  Known lse;  ///< natural
};

/// By (b, h, i).
using Answer = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Row>;

inline Answer answer_of(const Truth& truth) {
  Answer answer;
  for (std::size_t output = 0; output < truth.outputs.size(); ++output) {
    const OutputTruth& t = truth.outputs[output];
    for (std::size_t at = 0; at < t.mid.size(); ++at) {
      const RowFacts& facts = truth.rows[static_cast<std::size_t>(t.row[at])];
      Row& row = answer[{facts.batch, facts.head, facts.query}];
      const Known known{t.mid[at], t.radius[at], t.classes[at]};
      if (output == 0)
        row.o.push_back(known);
      else
        row.lse = known;
    }
  }
  return answer;
}

struct Evaluator {
  const char* name;
  Truth (*truth)(const Problem&);
};

class Identity : public testing::TestWithParam<Evaluator> {
 protected:
  Answer solve(const Meaning& meaning) const { return answer_of(GetParam().truth(build(meaning))); }
};
/// Both evaluators of the oracle.
inline auto evaluators() {
  return testing::Values(Evaluator{"balls", [](const Problem& p) { return attention_reference(p, 128); }},
                         Evaluator{"fp64", [](const Problem& p) {
                                     return op_named("attention").evaluate(p, Arithmetic{}, Level::kT0).truth;
                                   }});
}
inline std::string evaluator_name(const testing::TestParamInfo<Evaluator>& param) { return param.param.name; }

/// The balls (a + offset) and b meet; `slack` covers roundings of `offset` and of the test's own sums.
inline void expect_meet(const Known& a, const Known& b, double offset = 0, double slack = 0) {
  ASSERT_EQ(a.classes, b.classes);
  if ((a.classes & kNumber) == 0) return;
  ASSERT_LT(a.radius, 1e-9 * (1 + std::abs(a.mid)));
  ASSERT_LT(b.radius, 1e-9 * (1 + std::abs(b.mid)));
  const double own = offset == 0 && slack == 0 ? 0 : 0x1p-50 * (std::abs(a.mid) + std::abs(b.mid) + std::abs(offset));
  ASSERT_LE(std::abs(a.mid + offset - b.mid), (a.radius + b.radius) * (1 + 0x1p-50) + own + slack)
      << a.mid << " + " << offset << " against " << b.mid;
}

inline void expect_meet(const Row& a, const Row& b, double lse_offset = 0) {
  ASSERT_EQ(a.o.size(), b.o.size());
  for (std::size_t c = 0; c < a.o.size(); ++c) expect_meet(a.o[c], b.o[c]);
  expect_meet(a.lse, b.lse, lse_offset);
}

inline void expect_meet(const Answer& a, const Answer& b, double lse_offset = 0) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (const auto& [row, known] : a) {
    ASSERT_TRUE(b.contains(row));
    expect_meet(known, b.at(row), lse_offset);
  }
}

inline bool same_bits(const Known& a, const Known& b) {
  return std::bit_cast<std::uint64_t>(a.mid) == std::bit_cast<std::uint64_t>(b.mid) &&
         std::bit_cast<std::uint64_t>(a.radius) == std::bit_cast<std::uint64_t>(b.radius) && a.classes == b.classes;
}
inline bool same_bits(const Row& a, const Row& b) {
  for (std::size_t c = 0; c < a.o.size(); ++c)
    if (!same_bits(a.o[c], b.o[c])) return false;
  return same_bits(a.lse, b.lse) && a.o.size() == b.o.size();
}
inline bool same_bits(const Answer& a, const Answer& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same_bits(x.second, y.second); });
}

/// A repeatable number in [-2, 2] with 9 bits, so that every input format holds it and sums of two.
inline Entry noise(std::uint64_t seed) {
  return [seed](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
    std::uint64_t x = seed;
    for (const std::int64_t part : {b, h, i, c}) {
      x = (x ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15U;
      x ^= x >> 29;
    }
    return static_cast<double>(static_cast<std::int64_t>(x % 129) - 64) / 32;
  };
}

inline Params with(Params params, std::initializer_list<std::pair<std::string, std::string>> items) {
  for (const auto& [key, value] : items) params.set(key, value);
  return params;
}

inline constexpr int kProblems = 6;

/// Small problems without structure masks; sq <= skv, so that causal rows are never empty.
inline Meaning random_meaning(Dice& dice) {
  const std::int64_t len_q = dice.between(1, 6);
  const std::int64_t group = dice.between(1, 2), heads_kv = dice.between(1, 3);
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  Meaning m;
  m.params = make_params({{"b", text(dice.between(1, 3))},
                          {"hq", text(group * heads_kv)},
                          {"hkv", text(heads_kv)},
                          {"sq", text(len_q)},
                          {"skv", text(len_q + dice.between(0, 20))},
                          {"d", text(dice.between(1, 16))},
                          {"dv", text(dice.between(1, 8))},
                          {"dtype", dice.pick({"bf16", "fp16", "fp32"})},
                          {"scale", dice.pick({"0.5", "-0.3", "1.7", "0"})}});
  m.q = noise(dice.bits());
  m.k = noise(dice.bits());
  m.v = noise(dice.bits());
  return m;
}

/// noise, thinned to a mask in which key 0 always takes part.
inline Entry keep_some(std::uint64_t seed) {
  const Entry draw = noise(seed);
  return [draw](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    return j == 0 || draw(b, h, i, j) > 0 ? 1.0 : 0.0;
  };
}

inline Entry bias_of(Entry keep) {
  return [keep](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    return keep(b, h, i, j) != 0 ? 0.0 : -std::numeric_limits<double>::infinity();
  };
}

}  // namespace assay

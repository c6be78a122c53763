// An attention call for tests: parameters from text, inputs from a small generator, NaN in every byte that no element
// uses.
#pragma once

#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/runner.h"
#include "oracle/ops/attention/attention.h"
#include "oracle/ops/attention/layouts.h"

namespace assay {

inline Params parse(const std::string& text) {
  Params params;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    params.set(word.substr(0, equals), word.substr(equals + 1));
  }
  return params;
}

/// A small generator: uniform in (-1, 1).
inline double uniform(std::uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return static_cast<double>(static_cast<std::int64_t>(state)) * 0x1p-63;
}

struct Scenario {
  Params params;
  AttentionParams p;
  std::vector<Tensor> inputs;
  std::vector<TensorLayout> outputs;

  explicit Scenario(const std::string& text) : params(parse(text)), p(attention_params(params)) {
    for (const InputSpec& spec : attention_inputs(params)) {
      Tensor& t = inputs.emplace_back(Tensor{spec.layout, {}});
      fill_canary(t);  // NaN wherever no element lies
      if (spec.axes.find('c') != std::string::npos) continue;
      for (std::int64_t n = 0; n < t.layout.count(); ++n)
        t.output().set_code(
            t.layout.offset + n,
            encode(t.layout.format, spec.values.empty()
                                        ? entry(t.layout, n)
                                        : static_cast<double>(spec.values[static_cast<std::size_t>(n)])));
    }
    fill_vectors();
    outputs = attention_outputs(params);
  }

  std::int64_t len(bool q, std::int64_t b) const {
    const std::vector<std::int64_t>& lens = q ? p.lens_q : p.lens_kv;
    return lens.empty() ? (q ? p.len_q : p.len_kv) : lens[static_cast<std::size_t>(b)];
  }
  Tensor& input(std::string_view role) {
    for (Tensor& t : inputs)
      if (t.layout.role == role) return t;
    throw std::logic_error("no such input");
  }

  /// Element (b, h, row, c) of q, o or lse (c < 0).
  std::int64_t at(const TensorLayout& layout, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c) const {
    const TensorView t{&layout, nullptr};
    if (p.batching != Batching::kPacked) return c < 0 ? t.element(b, h, row) : t.element(b, h, row, c);
    for (std::int64_t before = 0; before < b; ++before) row += len(true, before);
    return c < 0 ? t.element(row, h) : t.element(row, h, c);
  }

  /// Where channel c of q, or of the k or v at a key position, is stored.
  std::pair<Tensor*, std::int64_t> place(std::string_view role, std::int64_t b, std::int64_t h, std::int64_t row,
                                         std::int64_t c) {
    if (role == "v" && p.v_in_k) role = "k";
    if (role == "q") return {&input("q"), at(input("q").layout, b, h, row, c)};
    const bool paged = p.kv_store != KvStore::kContiguous;
    if (!paged && row < p.prefix) {
      Tensor& t = input(std::string(role) + "_prefix");
      return {&t, t.view().element(h, row, c)};
    }
    Tensor& t = input(role);
    const TensorView view = t.view();
    if (!paged) {
      row -= p.prefix;
      if (p.batching != Batching::kPacked) return {&t, view.element(b, h, row, c)};
      for (std::int64_t before = 0; before < b; ++before) row += len(false, before) - p.prefix;
      return {&t, view.element(row, h, c)};
    }
    const std::int64_t page = page_of(b, row / p.page), slot = row % p.page;
    switch (p.kv_store) {
      case KvStore::kHnd: return {&t, view.element(page, h, slot, c)};
      case KvStore::kVllmX:
        if (t.layout.shape.size() == 4) return {&t, view.element(page, h, c, slot)};
        return {&t, view.element(page, h, c / view.extent(4), slot, c % view.extent(4))};
      default: return {&t, view.element(page, slot, h, c)};
    }
  }
  double value(std::string_view role, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c) {
    const auto [t, element] = place(role, b, h, row, c);
    return t->view().value(element);
  }
  void set(std::string_view role, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c, double value) {
    const auto [t, element] = place(role, b, h, row, c);
    t->output().set_code(element, encode(t->layout.format, value));
  }
  void scale_all(std::string_view role, double factor) {
    Tensor& t = input(role);
    for (std::int64_t e = 0; e < t.layout.storage; ++e)
      t.output().set_code(e, encode(t.layout.format, t.view().value(e) * factor));
  }
  /// Element of an input by its axes.
  template <class... Index>
  double entry_of(std::string_view role, Index... index) {
    const TensorView view = input(role).view();
    return view.value(view.element(index...));
  }

 private:
  std::int64_t page_of(std::int64_t b, std::int64_t index) {
    if (p.kv_store == KvStore::kVllm || p.kv_store == KvStore::kVllmX)
      return static_cast<std::int64_t>(entry_of("block_table", b, index));
    const auto first = static_cast<std::int64_t>(entry_of("kv_indptr", b));
    return static_cast<std::int64_t>(entry_of("kv_indices", first + index));
  }

  /// Values of q, k and v depend on (sequence, head, position, channel) alone, so that the same call in another store
  /// is the same problem. Keys of a shared prefix are written once per sequence: all are the first's.
  void fill_vectors() {
    for (std::int64_t b = p.batch; b-- > 0;) {
      const auto fill = [&](std::string_view role, std::int64_t heads, std::int64_t rows, std::int64_t dim) {
        for (std::int64_t h = heads; h-- > 0;)
          for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t c = 0; c < dim; ++c) {
              const std::int64_t index = ((b * 64 + h) * 65536 + row) * 1024 + c;
              std::uint64_t state =
                  (static_cast<std::uint64_t>(index) * 3 + static_cast<std::uint64_t>(role[0])) * 0x9e3779b97f4a7c15U;
              uniform(state);
              state ^= state >> 29;
              set(role, b, h, row, c, 2 * uniform(state));
            }
      };
      fill("q", p.heads_q, len(true, b), p.dim_qk);
      if (!p.v_in_k) fill("v", p.heads_kv, len(false, b), p.dim_v);
      fill("k", p.heads_kv, len(false, b), p.dim_qk);
    }
  }

  /// Element n of masks, factors, slopes, sinks and segments.
  double entry(const TensorLayout& layout, std::int64_t n) const {
    std::uint64_t state = static_cast<std::uint64_t>(n) * 0x9e3779b97f4a7c15U + 77;
    const double draw = uniform(state);
    const std::int64_t extent = layout.shape.back(), last = n % extent;
    if (layout.format == Format::kUint8) return draw > -0.5 ? 1 : 0;
    if (layout.role == "mask" && layout.format == Format::kInt32)  // distinct keys in no order, a few of them outside
      return static_cast<double>((n / extent + last * 7) % (p.len_kv + 4) - 2);
    if (layout.role == "mask") return last % 5 == 2 ? -std::numeric_limits<double>::infinity() : 2 * draw;
    if (layout.role == "slopes") return 0.05 * static_cast<double>(1 + n % 5);
    if (layout.role == "seg_q" || layout.role == "seg_kv") return static_cast<double>(last * 3 / extent);
    if (layout.role == "sink") return 2 * draw;
    return 1 + draw / 2;  // descales
  }
};

}  // namespace assay

// An attention call for tests: parameters from text, inputs from a small generator, NaN in every byte that no element
// uses.
#pragma once

#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
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
    std::uint64_t state = 17;
    for (const InputSpec& spec : attention_inputs(params)) {
      Tensor t{spec.layout, {}};
      fill_canary(t);  // NaN wherever no element lies, and in the unused rows of padded batches
      const auto count = static_cast<std::size_t>(t.layout.count());
      for (std::size_t n = 0; n < count; ++n) {
        std::vector<std::int64_t> index(t.layout.shape.size());
        std::int64_t at = t.layout.offset;
        std::size_t rest = n;
        for (std::size_t axis = index.size(); axis-- > 0;) {
          const auto extent = static_cast<std::size_t>(t.layout.shape[axis]);
          index[axis] = static_cast<std::int64_t>(rest % extent);
          rest /= extent;
          at += index[axis] * t.layout.strides[axis];
        }
        const bool heads = spec.axes == "bhsc";
        const std::int64_t used = heads ? len(spec.layout.role == "q", index[0]) : 0;
        if (heads && index[2] >= used) continue;
        double value = 2 * uniform(state);
        if (!spec.values.empty())
          value = static_cast<double>(spec.values[n]);
        else if (t.layout.format == Format::kUint8)
          value = value > -1 ? 1 : 0;
        else if (spec.layout.role == "mask" && index.back() % 5 == 2)
          value = -std::numeric_limits<double>::infinity();
        t.output().set_code(at, encode(t.layout.format, value));
      }
      inputs.push_back(std::move(t));
    }
    outputs = attention_outputs(params);
  }

  std::int64_t len(bool q, std::int64_t b) const {
    if (p.batching == Batching::kDense) return q ? p.len_q : p.len_kv;
    return (q ? p.lens_q : p.lens_kv)[static_cast<std::size_t>(b)];
  }
  Tensor& input(std::string_view role) {
    for (Tensor& t : inputs)
      if (t.layout.role == role) return t;
    throw std::logic_error("no such input");
  }
  std::int64_t at(const TensorLayout& layout, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c) const {
    const bool q_side = layout.role != "k" && layout.role != "v";
    const TensorView t{&layout, nullptr};
    if (p.batching != Batching::kPacked) return c < 0 ? t.element(b, h, row) : t.element(b, h, row, c);
    for (std::int64_t before = 0; before < b; ++before) row += len(q_side, before);
    return c < 0 ? t.element(row, h) : t.element(row, h, c);
  }
  double value(std::string_view role, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c) {
    const Tensor& t = input(role);
    return t.view().value(at(t.layout, b, h, row, c));
  }
  void set(std::string_view role, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t c, double value) {
    Tensor& t = input(role);
    t.output().set_code(at(t.layout, b, h, row, c), encode(t.layout.format, value));
  }
  void scale_all(std::string_view role, double factor) {
    Tensor& t = input(role);
    for (std::int64_t e = 0; e < t.layout.storage; ++e)
      t.output().set_code(e, encode(t.layout.format, t.view().value(e) * factor));
  }
};

}  // namespace assay

// Attention problems built straight from parameters and a function that chooses codes; independent of cases/.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/attention/layouts.h"

namespace assay {

/// Uniform integers from a seeded engine, the same with every standard library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t bits() { return engine_(); }
  /// in [low, high]
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  double real(double low, double high) { return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<std::int64_t>(choices.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

inline Params make_params(std::initializer_list<std::pair<std::string, std::string>> items) {
  Params params;
  for (const auto& [key, value] : items) params.set(key, value);
  return params;
}

/// `code(layout)` is asked for every element of the storage of q, k, v and mask, used or not.
template <class Code>
Problem make_problem(const Params& params, Code code) {
  Problem problem;
  problem.params = params;
  problem.outputs = attention_outputs(params);
  for (const InputSpec& spec : attention_inputs(params)) {
    Tensor t;
    t.layout = spec.layout;
    t.bytes.resize(static_cast<std::size_t>(t.layout.storage_bytes()));
    for (std::int64_t e = 0; e < t.layout.storage; ++e)
      store_code(
          t.bytes.data(), t.layout.format, e,
          spec.values.empty() ? code(t.layout) : static_cast<std::uint64_t>(spec.values[static_cast<std::size_t>(e)]));
    problem.inputs.push_back(std::move(t));
  }
  return problem;
}

inline Tensor& input(Problem& problem, std::string_view role) {
  for (Tensor& t : problem.inputs)
    if (t.layout.role == role) return t;
  throw std::out_of_range("no input " + std::string(role));
}

}  // namespace assay

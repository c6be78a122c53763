// Rows, loads and stores of an attention call.
#include "kernels/attention/call.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

#include "kernels/fault.h"
#include "kernels/narrow.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

bool subnormal(Format format, double value) {
  const double magnitude = value < 0 ? -value : value;
  return magnitude > 0 && magnitude < info(format).min_normal;
}

/// Each channel of some vectors is divided by its largest magnitude and multiplied by it again.
void scale_and_back(std::int64_t vectors, std::int64_t stride, std::int64_t channels, float* x) {
  for (std::int64_t c = 0; c < channels; ++c) {
    float largest = 0.0F;
    for (std::int64_t j = 0; j < vectors; ++j) largest = std::max(largest, std::abs(x[j * stride + c]));
    if (!(largest < kInfinity)) continue;
    for (std::int64_t j = 0; j < vectors; ++j) x[j * stride + c] *= largest / largest;
  }
}

/// x[2 i], x[2 i + 1] = x[i], x[dim / 2 + i]
void pair_with_halves(std::int64_t dim, float* x) {
  const std::vector<float> halves(x, x + dim);
  for (std::int64_t c = 0; c < dim / 2 * 2; ++c) x[c] = halves[static_cast<std::size_t>(c / 2 + c % 2 * (dim / 2))];
}

/// min and max in the order in which NaN loses.
float clamped(Format format, float x) {
  const auto limit = static_cast<float>(info(format).max_finite);
  const float below = x < limit ? x : limit;
  return below > -limit ? below : -limit;
}

}  // namespace

AttentionCall::AttentionCall(const Call& call)
    : params_(attention_params(call.params)),
      queries_(query_sequences(call.inputs, params_)),
      keys_(call.inputs, params_),
      rules_(call.inputs, params_),
      descales_(call.inputs, params_),
      q_(required_input(call.inputs, "q")),
      rows_(find_view(call.inputs, "rows")),
      o_(find_view(call.outputs, "o")),
      lse_(find_view(call.outputs, "lse")) {
  if (o_.layout == nullptr || (params_.lse != LseBase::kNone && lse_.layout == nullptr))
    throw std::invalid_argument("attention needs its outputs o and lse");
}

std::vector<HeadRows> AttentionCall::rows() const {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> heads;
  if (rows_.layout != nullptr) {
    for (std::int64_t r = 0; r < rows_.extent(0); ++r) {
      const auto at = [&](int column) { return int_element(rows_, r, column); };
      if (at(0) < 0 || at(0) >= params_.batch || at(1) < 0 || at(1) >= params_.heads_q || at(2) < 0 ||
          at(2) >= q_len(at(0)))
        throw std::invalid_argument("rows: row " + std::to_string(r) + " does not exist");
      heads[{at(0), at(1)}].push_back(at(2));
    }
  } else {
    for (std::int64_t b = 0; b < params_.batch; ++b)
      for (std::int64_t h = 0; h < params_.heads_q; ++h)
        for (std::int64_t i = 0; i < q_len(b); ++i) heads[{b, h}].push_back(i);
  }
  std::vector<HeadRows> result;
  for (auto& [at, queries] : heads) {
    std::sort(queries.begin(), queries.end());
    result.push_back({at.first, at.second, std::move(queries)});
  }
  return result;
}

std::int64_t AttentionCall::row_element(const TensorLayout& layout, std::int64_t batch, std::int64_t head,
                                        std::int64_t query) const {
  const TensorView t{&layout, nullptr};
  return params_.batching == Batching::kPacked
             ? t.element(queries_.starts[static_cast<std::size_t>(batch)] + query, head)
             : t.element(batch, head, query);
}

void AttentionCall::load_q(std::int64_t batch, std::int64_t head, std::int64_t query, float* out) const {
  std::int64_t first = row_element(*q_.layout, batch, head, query), stride = q_.layout->strides.back();
  if (faulty(Fault::kQueryOffsetWraps)) first %= 0x8000;
  if (faulty(Fault::kQueryContiguous) && params_.batching != Batching::kPacked) {
    first = dense_element(*q_.layout, {batch, head, query, 0});
    stride = 1;
  }
  load_vector(q_, {first, stride, params_.dim_qk, 0}, params_.dim_qk, out);
  if (faulty(Fault::kZeroRowScale)) scale_and_back(params_.dim_qk, 1, 1, out);
}

HeadMatrix AttentionCall::load_k(std::int64_t batch, std::int64_t kv_head, KeyRange keys, std::int64_t rows,
                                 std::int64_t cols) const {
  HeadMatrix m{rows, cols, std::vector<float>(static_cast<std::size_t>(rows * cols), 0.0F)};
  for (std::int64_t j = 0; j < keys.size(); ++j) keys_.load_k(batch, kv_head, keys.first + j, m.data.data() + j * cols);
  if (faulty(Fault::kPairsHalved))
    for (std::int64_t j = 0; j < keys.size(); ++j) pair_with_halves(params_.dim_qk, m.data.data() + j * cols);
  return m;
}

HeadMatrix AttentionCall::load_v(std::int64_t batch, std::int64_t kv_head, KeyRange keys, std::int64_t rows,
                                 std::int64_t cols) const {
  HeadMatrix m{rows, cols, std::vector<float>(static_cast<std::size_t>(rows * cols), 0.0F)};
  const std::int64_t count = std::min(rows, keys_.readable(batch) - keys.first);
  for (std::int64_t j = 0; j < (params_.v_in_k ? keys.size() : count); ++j)
    keys_.load_v(batch, kv_head, keys.first + j, m.data.data() + j * cols);
  if (faulty(Fault::kZeroChannelScale)) scale_and_back(keys.size(), cols, params_.dim_v, m.data.data());
  if (faulty(Fault::kSubnormalFlush))
    for (float& value : m.data)
      if (subnormal(params_.input, static_cast<double>(value))) value = 0.0F;
  return m;
}

void AttentionCall::store(std::int64_t batch, std::int64_t head, std::int64_t query, const float* o, float lse) const {
  std::int64_t first = row_element(*o_.layout, batch, head, query), stride = o_.layout->strides.back();
  if (faulty(Fault::kOutputContiguous) && params_.batching != Batching::kPacked &&
      o_.layout->count() == o_.layout->storage) {
    first = dense_element(*o_.layout, {batch, head, query, 0});
    stride = 1;
  }
  for (std::int64_t c = 0; c < params_.dim_v; ++c) {
    const float value = faulty(Fault::kOutputClamped) ? clamped(o_.format(), o[c]) : o[c];
    std::uint64_t code = encode(o_.format(), static_cast<double>(value),
                                faulty(Fault::kOutputTruncated) ? Rounding::kTowardZero : Rounding::kNearestEven);
    if (faulty(Fault::kSubnormalFlush) && is_subnormal(o_.format(), code)) code = 0;
    const std::int64_t channel = faulty(Fault::kColumnsSwizzled) && (c | 1) < params_.dim_v ? c ^ 1 : c;
    o_.set_code(first + channel * stride, code);
  }
  if (params_.lse == LseBase::kNone) return;
  if (faulty(Fault::kLseTimesLn2)) lse *= 0x1.62e43p-1F;
  if (faulty(Fault::kLseInFp16)) lse = narrowed(Format::kFp16, lse);
  lse_.set_code(row_element(*lse_.layout, batch, head, query), encode(Format::kFp32, static_cast<double>(lse)));
}

}  // namespace assay

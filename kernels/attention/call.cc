// Lengths, addresses, loads and stores of an attention call.
#include "kernels/attention/call.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

#include "kernels/fault.h"

namespace assay {
namespace {

TensorView required(std::span<const TensorView> inputs, std::string_view role) {
  const TensorView view = find_view(inputs, role);
  if (view.layout == nullptr) throw std::invalid_argument("attention needs a tensor " + std::string(role));
  return view;
}

std::vector<std::int64_t> integers(const TensorView& view) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < view.extent(0); ++i)
    values.push_back(static_cast<std::int32_t>(view.code(view.element(i))));
  return values;
}

/// Sequence starts and lengths, from whichever tensor the batching has.
void read_lengths(std::span<const TensorView> inputs, Batching batching, std::string_view side, std::int64_t batch,
                  std::int64_t limit, std::vector<std::int64_t>& starts, std::vector<std::int64_t>& lens) {
  starts.assign(static_cast<std::size_t>(batch), 0);
  lens.assign(static_cast<std::size_t>(batch), limit);
  if (batching == Batching::kDense) return;
  const bool packed = batching == Batching::kPacked;
  const std::string role = (packed ? "cu_seqlens_" : "seqlens_") + std::string(side);
  const std::vector<std::int64_t> values = integers(required(inputs, role));
  if (values.size() != static_cast<std::size_t>(batch) + (packed ? 1 : 0))
    throw std::invalid_argument(role + " has " + std::to_string(values.size()) + " elements");
  for (std::size_t b = 0; b < lens.size(); ++b) {
    starts[b] = packed ? values[b] : 0;
    lens[b] = packed ? values[b + 1] - values[b] : values[b];
    if (starts[b] < 0 || lens[b] < 0 || starts[b] + lens[b] > limit)
      throw std::invalid_argument(role + " does not fit the tensor at sequence " + std::to_string(b));
  }
}

bool subnormal(Format format, double value) {
  const double magnitude = value < 0 ? -value : value;
  return magnitude > 0 && magnitude < info(format).min_normal;
}

/// out[c] = element first + c * stride, widened.
void load_vector(const TensorView& t, std::int64_t first, std::int64_t count, float* out) {
  const std::int64_t stride = t.layout->strides.back();
  const std::byte* at = t.storage + first * bytes_per_element(t.format());
  switch (t.format()) {
    case Format::kBf16:
      for (std::int64_t c = 0; c < count; ++c) {
        std::uint16_t code = 0;
        std::memcpy(&code, at + c * stride * 2, 2);
        out[c] = std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
      }
      break;
    case Format::kFp32:
      for (std::int64_t c = 0; c < count; ++c) std::memcpy(out + c, at + c * stride * 4, 4);
      break;
    default:
      for (std::int64_t c = 0; c < count; ++c) out[c] = static_cast<float>(t.value(first + c * stride));
  }
}

}  // namespace

HeadMatrix transposed(const HeadMatrix& m) {
  HeadMatrix t{m.cols, m.rows, std::vector<float>(m.data.size())};
  constexpr std::int64_t kBlock = 16;  // rows whose cache lines are written together
  for (std::int64_t first = 0; first < m.rows; first += kBlock)
    for (std::int64_t c = 0; c < m.cols; ++c)
      for (std::int64_t r = first; r < std::min(first + kBlock, m.rows); ++r)
        t.data[static_cast<std::size_t>(c * m.rows + r)] = m.row(r)[c];
  return t;
}

AttentionCall::AttentionCall(const Call& call) : params_(attention_params(call.params)) {
  q_ = required(call.inputs, "q");
  k_ = required(call.inputs, "k");
  v_ = required(call.inputs, "v");
  if (params_.data_mask != DataMask::kNone) mask_ = required(call.inputs, "mask");
  rows_ = find_view(call.inputs, "rows");
  o_ = find_view(call.outputs, "o");
  lse_ = find_view(call.outputs, "lse");
  if (o_.layout == nullptr || (params_.lse != LseBase::kNone && lse_.layout == nullptr))
    throw std::invalid_argument("attention needs its outputs o and lse");
  const std::size_t position = params_.batching == Batching::kPacked ? 0 : 2;  // the axis of tokens
  read_lengths(call.inputs, params_.batching, "q", params_.batch, q_.extent(position), q_starts_, q_lens_);
  read_lengths(call.inputs, params_.batching, "kv", params_.batch, k_.extent(position), kv_starts_, kv_lens_);
}

std::vector<HeadRows> AttentionCall::rows() const {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> heads;
  if (rows_.layout != nullptr) {
    for (std::int64_t r = 0; r < rows_.extent(0); ++r) {
      const auto at = [&](int column) { return static_cast<std::int32_t>(rows_.code(rows_.element(r, column))); };
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

std::int64_t AttentionCall::first_element(const TensorLayout& layout, const std::vector<std::int64_t>& starts,
                                          std::int64_t batch, std::int64_t head, std::int64_t row) const {
  const TensorView t{&layout, nullptr};
  return params_.batching == Batching::kPacked ? t.element(starts[static_cast<std::size_t>(batch)] + row, head)
                                               : t.element(batch, head, row);
}

void AttentionCall::load_q(std::int64_t batch, std::int64_t head, std::int64_t query, float* out) const {
  load_vector(q_, first_element(*q_.layout, q_starts_, batch, head, query), params_.dim_qk, out);
}

HeadMatrix AttentionCall::load(const TensorView& t, std::int64_t batch, std::int64_t kv_head, std::int64_t dim,
                               std::int64_t rows, std::int64_t cols) const {
  HeadMatrix m{rows, cols, std::vector<float>(static_cast<std::size_t>(rows * cols), 0.0F)};
  for (std::int64_t j = 0; j < kv_len(batch); ++j) {
    load_vector(t, first_element(*t.layout, kv_starts_, batch, kv_head, j), dim, m.data.data() + j * cols);
  }
  return m;
}

HeadMatrix AttentionCall::load_k(std::int64_t batch, std::int64_t kv_head, std::int64_t rows, std::int64_t cols) const {
  return load(k_, batch, kv_head, params_.dim_qk, rows, cols);
}

HeadMatrix AttentionCall::load_v(std::int64_t batch, std::int64_t kv_head, std::int64_t rows, std::int64_t cols) const {
  HeadMatrix m = load(v_, batch, kv_head, params_.dim_v, rows, cols);
  if (faulty(Fault::kSubnormalFlush))
    for (float& value : m.data)
      if (subnormal(v_.format(), static_cast<double>(value))) value = 0.0F;
  return m;
}

void AttentionCall::store(std::int64_t batch, std::int64_t head, std::int64_t query, const float* o, float lse) const {
  const std::int64_t first = first_element(*o_.layout, q_starts_, batch, head, query);
  for (std::int64_t c = 0; c < params_.dim_v; ++c) {
    std::uint64_t code = encode(o_.format(), static_cast<double>(o[c]));
    if (faulty(Fault::kSubnormalFlush) && is_subnormal(o_.format(), code)) code = 0;
    o_.set_code(first + c * o_.layout->strides.back(), code);
  }
  if (params_.lse == LseBase::kNone) return;
  lse_.set_code(first_element(*lse_.layout, q_starts_, batch, head, query),
                encode(Format::kFp32, static_cast<double>(lse)));
}

}  // namespace assay

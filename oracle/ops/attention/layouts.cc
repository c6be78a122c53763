// Where attention's inputs and outputs lie in memory, and the row lists and lengths that travel as tensors.
#include "oracle/ops/attention/layouts.h"

#include <set>

#include "oracle/error.h"

namespace assay {
namespace {

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& lens) {
  std::vector<std::int64_t> starts{0};
  for (std::int64_t len : lens) starts.push_back(starts.back() + len);
  return starts;
}

/// [b, h, s, c] in memory order bhsd or bshd, with unused rows and elements; or packed [t, h, c].
TensorLayout heads_layout(const AttentionParams& p, std::string role, Format format, std::int64_t heads,
                          std::int64_t len, const std::vector<std::int64_t>& lens, std::int64_t dim) {
  TensorLayout t;
  t.role = std::move(role);
  t.format = format;
  const std::int64_t vector = dim + p.pad_dim;
  if (p.batching == Batching::kPacked) {
    const std::int64_t tokens = starts_of(lens).back();
    t.shape = {tokens, heads, dim};
    t.strides = {heads * vector, vector, 1};
    t.storage = (tokens + p.pad_rows) * heads * vector;
  } else {
    const std::int64_t rows = len + p.pad_rows;
    t.shape = {p.batch, heads, len, dim};
    t.strides = p.layout == Layout::kBhsd ? std::vector<std::int64_t>{heads * rows * vector, rows * vector, vector, 1}
                                          : std::vector<std::int64_t>{rows * heads * vector, vector, heads * vector, 1};
    t.storage = p.batch * heads * rows * vector;
  }
  return t;
}

TensorLayout contiguous(std::string role, Format format, std::vector<std::int64_t> shape) {
  TensorLayout t;
  t.role = std::move(role);
  t.format = format;
  t.shape = std::move(shape);
  t.strides.assign(t.shape.size(), 1);
  for (std::size_t axis = t.shape.size(); axis-- > 1;) t.strides[axis - 1] = t.strides[axis] * t.shape[axis];
  t.storage = t.count();
  return t;
}

InputSpec integers_spec(std::string role, std::vector<std::int64_t> shape, std::vector<std::int64_t> values) {
  InputSpec spec;
  spec.axes = std::string(shape.size(), 'x');
  spec.layout = contiguous(std::move(role), Format::kInt32, std::move(shape));
  spec.values = std::move(values);
  return spec;
}

/// splitmix64: a bijection that spreads a counter over 64 bits.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// `sampled_rows` distinct (b, h, i), sorted; always with the first and the last row of the case.
std::vector<std::int64_t> sampled_rows(const AttentionParams& p) {
  std::set<std::int64_t> chosen;
  std::int64_t total = 0;
  for (std::int64_t b = 0; b < p.batch; ++b)
    total += p.heads_q * (p.batching == Batching::kDense ? p.len_q : p.lens_q[static_cast<std::size_t>(b)]);
  if (p.sampled_rows > total)
    throw InputError("case: attention rows=" + std::to_string(p.sampled_rows) + ": the case has only " +
                     std::to_string(total) + " rows");
  if (p.sampled_rows >= 1) chosen.insert(0);
  if (p.sampled_rows >= 2) chosen.insert(total - 1);
  for (std::uint64_t i = 0; static_cast<std::int64_t>(chosen.size()) < p.sampled_rows; ++i) {
    const std::uint64_t draw = mixed(static_cast<std::uint64_t>(p.rows_seed) * 0x100000001b3U + i);
    chosen.insert(static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(total)));
  }
  const std::vector<std::int64_t> rows(chosen.begin(), chosen.end());
  std::vector<std::int64_t> triples;
  std::int64_t first = 0;
  std::size_t next = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t len = p.batching == Batching::kDense ? p.len_q : p.lens_q[static_cast<std::size_t>(b)];
    for (; next < rows.size() && rows[next] < first + p.heads_q * len; ++next)
      triples.insert(triples.end(), {b, (rows[next] - first) / len, (rows[next] - first) % len});
    first += p.heads_q * len;
  }
  return triples;
}

}  // namespace

std::vector<InputSpec> attention_inputs(const Params& params) {
  const AttentionParams p = attention_params(params);
  const bool packed = p.batching == Batching::kPacked;
  std::vector<InputSpec> specs;
  const auto heads = [&](std::string role, std::int64_t count, std::int64_t len, const std::vector<std::int64_t>& lens,
                         std::int64_t dim, std::string source) {
    InputSpec spec;
    spec.layout = heads_layout(p, std::move(role), p.input, count, len, lens, dim);
    spec.axes = packed ? "thc" : "bhsc";
    if (packed) spec.starts = starts_of(lens);
    if (p.batching == Batching::kPadded) spec.used = lens;
    spec.default_source = std::move(source);
    specs.push_back(std::move(spec));
  };
  heads("q", p.heads_q, p.len_q, p.lens_q, p.dim_qk, "normal@1");
  heads("k", p.heads_kv, p.len_kv, p.lens_kv, p.dim_qk, "normal@2");
  heads("v", p.heads_kv, p.len_kv, p.lens_kv, p.dim_v, "normal@3");
  if (p.data_mask != DataMask::kNone) {
    InputSpec spec;
    const bool boolean = p.data_mask == DataMask::kBool;
    spec.layout = contiguous("mask", boolean ? Format::kUint8 : Format::kFp32, {p.batch, p.heads_q, p.len_q, p.len_kv});
    spec.axes = "bhqk";
    spec.default_source = boolean ? "keep(0.75)@4" : "bias(1)@4";
    specs.push_back(std::move(spec));
  }
  if (packed) {
    specs.push_back(integers_spec("cu_seqlens_q", {p.batch + 1}, starts_of(p.lens_q)));
    specs.push_back(integers_spec("cu_seqlens_kv", {p.batch + 1}, starts_of(p.lens_kv)));
  } else if (p.batching == Batching::kPadded) {
    specs.push_back(integers_spec("seqlens_q", {p.batch}, p.lens_q));
    specs.push_back(integers_spec("seqlens_kv", {p.batch}, p.lens_kv));
  }
  if (p.sampled_rows > 0) specs.push_back(integers_spec("rows", {p.sampled_rows, 3}, sampled_rows(p)));
  return specs;
}

std::vector<TensorLayout> attention_outputs(const Params& params) {
  const AttentionParams p = attention_params(params);
  std::vector<TensorLayout> outputs{heads_layout(p, "o", p.output, p.heads_q, p.len_q, p.lens_q, p.dim_v)};
  if (p.lse != LseBase::kNone) {
    if (p.batching == Batching::kPacked)
      outputs.push_back(contiguous("lse", Format::kFp32, {starts_of(p.lens_q).back(), p.heads_q}));
    else
      outputs.push_back(contiguous("lse", Format::kFp32, {p.batch, p.heads_q, p.len_q}));
  }
  return outputs;
}

}  // namespace assay

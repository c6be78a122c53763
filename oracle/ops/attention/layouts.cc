// Where attention's inputs and outputs lie in memory, and the row lists and lengths that travel as tensors.
#include "oracle/ops/attention/layouts.h"

#include <algorithm>
#include <set>

#include "oracle/error.h"
#include "oracle/ops/attention/page_plan.h"

namespace assay {
namespace {

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& lens) {
  std::vector<std::int64_t> starts{0};
  for (std::int64_t len : lens) starts.push_back(starts.back() + len);
  return starts;
}

/// Tokens of q, k, v or o: how many heads and positions, and which axes exist only once.
struct Tokens {
  std::int64_t heads = 1, len = 1;
  std::vector<std::int64_t> lens = {};  ///< not dense: of each sequence
  bool one_batch = false, one_head = false;
};

/// [b, h, s, c] in memory order bhsd, bshd or bhds, with unused rows and elements; or packed [t, h, c].
TensorLayout token_layout(const AttentionParams& p, std::string role, Format format, const Tokens& tokens,
                          std::int64_t dim) {
  TensorLayout t;
  t.role = std::move(role);
  t.format = format;
  t.offset = p.offset;
  const std::int64_t vector = dim + p.pad_dim;
  if (p.batching == Batching::kPacked) {
    const std::int64_t count = starts_of(tokens.lens).back();
    t.shape = {count, tokens.heads, dim};
    t.strides = {tokens.heads * vector, vector, 1};
    t.storage = p.offset + (count + p.pad_rows) * tokens.heads * vector;
    return t;
  }
  const std::int64_t rows = tokens.len + p.pad_rows, heads = tokens.one_head ? 1 : tokens.heads;
  t.shape = {p.batch, tokens.heads, tokens.len, dim};
  switch (p.layout) {
    case Layout::kBhsd: t.strides = {heads * rows * vector, rows * vector, vector, 1}; break;
    case Layout::kBshd: t.strides = {rows * heads * vector, vector, heads * vector, 1}; break;
    case Layout::kBhds: t.strides = {heads * vector * rows, vector * rows, 1, rows}; break;
  }
  if (tokens.one_batch) t.strides[0] = 0;
  if (tokens.one_head) t.strides[1] = 0;
  t.storage = p.offset + (tokens.one_batch ? 1 : p.batch) * heads * rows * vector;
  return t;
}

/// Pages of keys or values; pad_dim stands behind each head vector, in kv=vllm_x behind each page of a head.
InputSpec page_spec(const AttentionParams& p, std::string role, std::int64_t pages, std::int64_t dim, bool split_by_x) {
  InputSpec spec;
  TensorLayout& t = spec.layout;
  t.role = std::move(role);
  t.format = p.input;
  t.offset = p.offset;
  const std::int64_t heads = p.heads_kv, page = p.page, vector = dim + p.pad_dim, block = dim * page + p.pad_dim;
  const std::int64_t x = 16 / bytes_per_element(p.input);
  if (p.kv_store == KvStore::kHnd) {
    spec.axes = "phoc";
    t.shape = {pages, heads, page, dim};
    t.strides = {heads * page * vector, page * vector, vector, 1};
  } else if (p.kv_store != KvStore::kVllmX) {
    spec.axes = "pohc";
    t.shape = {pages, page, heads, dim};
    t.strides = {page * heads * vector, heads * vector, vector, 1};
  } else if (split_by_x) {
    spec.axes = "phgoc";
    t.shape = {pages, heads, dim / x, page, x};
    t.strides = {heads * block, block, page * x, x, 1};
  } else {
    spec.axes = "phco";
    t.shape = {pages, heads, dim, page};
    t.strides = {heads * block, block, page, 1};
  }
  t.storage = p.offset + pages * t.strides[0];
  return spec;
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

/// Collects the inputs of one case.
class Inputs {
 public:
  explicit Inputs(const AttentionParams& p)
      : p_(p), packed_(p.batching == Batching::kPacked), paged_(p.kv_store != KvStore::kContiguous) {}

  std::vector<InputSpec> all() {
    tokens("q", {.heads = p_.heads_q, .len = p_.len_q, .lens = p_.lens_q}, p_.dim_qk, 0, "normal@1");
    keys();
    masks();
    scores();
    lengths();
    if (p_.sampled_rows > 0) integers("rows", {p_.sampled_rows, 3}, sampled_rows(p_));
    return std::move(specs_);
  }

 private:
  void add(InputSpec spec, std::string source) {
    spec.default_source = std::move(source);
    specs_.push_back(std::move(spec));
  }
  void integers(std::string role, std::vector<std::int64_t> shape, std::vector<std::int64_t> values) {
    InputSpec spec;
    spec.axes = std::string(shape.size(), 'x');
    spec.layout = contiguous(std::move(role), Format::kInt32, std::move(shape));
    spec.values = std::move(values);
    specs_.push_back(std::move(spec));
  }
  void plain(std::string role, Format format, std::vector<std::int64_t> shape, std::string axes, std::string source) {
    InputSpec spec;
    spec.axes = std::move(axes);
    spec.layout = contiguous(std::move(role), format, std::move(shape));
    add(std::move(spec), std::move(source));
  }
  void tokens(std::string role, const Tokens& tokens, std::int64_t dim, std::int64_t first_position,
              std::string source) {
    InputSpec spec;
    spec.layout = token_layout(p_, std::move(role), p_.input, tokens, dim);
    spec.axes = packed_ ? "thc" : "bhsc";
    spec.first_position = first_position;
    if (packed_) spec.starts = starts_of(tokens.lens);
    if (p_.batching == Batching::kPadded) spec.used = tokens.lens;
    add(std::move(spec), std::move(source));
  }

  void keys() {
    if (paged_) {
      plan_ = plan_pages(p_);
      const auto pages = static_cast<std::int64_t>(plan_.uses.size());
      const auto stored = [&](std::string role, std::int64_t dim, bool split_by_x, std::string source) {
        InputSpec spec = page_spec(p_, std::move(role), pages, dim, split_by_x);
        spec.pages = plan_.uses;
        add(std::move(spec), std::move(source));
      };
      stored("k", p_.dim_qk, true, "normal@2");
      if (!p_.v_in_k) stored("v", p_.dim_v, false, "normal@3");
      return;
    }
    Tokens own{.heads = p_.heads_kv,
               .len = p_.len_kv - p_.prefix,
               .lens = p_.lens_kv,
               .one_batch = p_.expand_batch,
               .one_head = p_.expand_heads};
    for (std::int64_t& len : own.lens) len -= p_.prefix;
    tokens("k", own, p_.dim_qk, p_.prefix, "normal@2");
    if (!p_.v_in_k) tokens("v", own, p_.dim_v, p_.prefix, "normal@3");
    if (p_.prefix == 0) return;
    prefix("k_prefix", p_.dim_qk, "k");
    if (!p_.v_in_k) prefix("v_prefix", p_.dim_v, "v");
  }
  void prefix(std::string role, std::int64_t dim, std::string source) {
    InputSpec spec;
    spec.layout = contiguous(std::move(role), p_.input, {p_.heads_kv, p_.prefix, dim});
    const std::int64_t vector = dim + p_.pad_dim;
    spec.layout.strides = {p_.prefix * vector, vector, 1};
    spec.layout.offset = p_.offset;
    spec.layout.storage = p_.offset + p_.heads_kv * p_.prefix * vector;
    spec.axes = "hsc";
    spec.used = {p_.lens_kv.empty() ? p_.len_kv
                                    : p_.lens_kv[0]};  // the sequence that it begins: recipes may ask how long
    add(std::move(spec), std::move(source));
  }

  void masks() {
    const auto rows_by = [&](std::int64_t last) { return std::vector{p_.batch, p_.heads_q, p_.len_q, last}; };
    const auto blocks = [](std::int64_t len, std::int64_t size) { return (len + size - 1) / size; };
    switch (p_.data_mask) {
      case DataMask::kNone: break;
      case DataMask::kBool: plain("mask", Format::kUint8, rows_by(p_.len_kv), "bhqk", "keep(0.75)@4"); break;
      case DataMask::kAdditive: plain("mask", Format::kFp32, rows_by(p_.len_kv), "bhqk", "bias(1)@4"); break;
      case DataMask::kBlock:
        plain("mask", Format::kUint8,
              {p_.batch, p_.heads_q, blocks(p_.len_q, p_.block_q), blocks(p_.len_kv, p_.block_kv)}, "bhqk",
              "keep(0.75)@4");
        break;
      case DataMask::kList:
        plain("mask", Format::kInt32, rows_by(p_.list_len), "bhqx",
              "indices(" + std::to_string(std::max<std::int64_t>(1, p_.len_kv)) + ")@4");
        break;
    }
    if (!p_.segments) return;
    const std::string two =
        "segments(" + std::to_string((std::max({std::int64_t{1}, p_.len_q, p_.len_kv}) + 1) / 2) + ")";
    plain("seg_q", Format::kInt32, {p_.batch, p_.len_q}, "bs", two);
    specs_.back().used = p_.lens_q;
    plain("seg_kv", Format::kInt32, {p_.batch, p_.len_kv}, "bs", two);
    specs_.back().used = p_.lens_kv;
  }

  void scores() {
    if (p_.alibi != Alibi::kNone) {
      if (p_.slopes_per_batch)
        plain("slopes", Format::kFp32, {p_.batch, p_.heads_q}, "bh", "slopes");
      else
        plain("slopes", Format::kFp32, {p_.heads_q}, "h", "slopes");
    }
    if (p_.sink != Sink::kNone) plain("sink", Format::kFp32, {p_.heads_q}, "h", "normal@5");
    if (p_.descale == Descale::kNone) return;
    const auto factors = [&](std::string role, std::int64_t heads, std::int64_t len, std::string source) {
      source = "uniform(0.5,1.5)@" + source;
      const std::int64_t blocks = std::max<std::int64_t>(1, (len + p_.scale_block - 1) / p_.scale_block);
      if (p_.descale == Descale::kTensor)
        plain(std::move(role), Format::kFp32, {1}, "x", std::move(source));
      else if (p_.descale == Descale::kHead)
        plain(std::move(role), Format::kFp32, {p_.batch, p_.heads_kv}, "bh", std::move(source));
      else
        plain(std::move(role), Format::kFp32, {p_.batch, heads, blocks}, "bhx", std::move(source));
    };
    factors("q_scale", p_.heads_q, p_.len_q, "6");
    factors("k_scale", p_.heads_kv, p_.len_kv, "7");
    factors("v_scale", p_.heads_kv, p_.len_kv, "8");
  }

  void lengths() {
    std::vector<std::int64_t> own = p_.lens_kv;
    for (std::int64_t& len : own) len -= p_.prefix;
    if (packed_) integers("cu_seqlens_q", {p_.batch + 1}, starts_of(p_.lens_q));
    if (packed_ && !paged_) integers("cu_seqlens_kv", {p_.batch + 1}, starts_of(own));
    if (p_.batching == Batching::kPadded) integers("seqlens_q", {p_.batch}, p_.lens_q);
    if (p_.batching == Batching::kPadded && !paged_) integers("seqlens_kv", {p_.batch}, own);
    if (p_.kv_store == KvStore::kVllm || p_.kv_store == KvStore::kVllmX) {
      integers("block_table", {p_.batch, table_columns(p_)}, block_table(p_, plan_));
      integers("seqlens_kv", {p_.batch}, p_.lens_kv);
    } else if (paged_) {
      PageLists lists = page_lists(p_, plan_);
      integers("kv_indptr", {p_.batch + 1}, std::move(lists.indptr));
      integers("kv_indices", {static_cast<std::int64_t>(lists.indices.size())}, lists.indices);
      integers("kv_last_page_len", {p_.batch}, std::move(lists.last_page_len));
    }
  }

  const AttentionParams& p_;
  const bool packed_, paged_;
  PagePlan plan_;
  std::vector<InputSpec> specs_;
};

}  // namespace

std::vector<InputSpec> attention_inputs(const Params& params) {
  const AttentionParams p = attention_params(params);
  return Inputs(p).all();
}

std::vector<TensorLayout> attention_outputs(const Params& params) {
  const AttentionParams p = attention_params(params);
  const Tokens queries{.heads = p.heads_q, .len = p.len_q, .lens = p.lens_q};
  std::vector<TensorLayout> outputs{token_layout(p, "o", p.output, queries, p.dim_v)};
  if (p.lse == LseBase::kNone) return outputs;
  if (p.batching == Batching::kPacked)
    outputs.push_back(contiguous("lse", Format::kFp32, {starts_of(p.lens_q).back(), p.heads_q}));
  else
    outputs.push_back(contiguous("lse", Format::kFp32, {p.batch, p.heads_q, p.len_q}));
  return outputs;
}

}  // namespace assay

// Sequence lengths from cu_seqlens, seqlens, page lists or the tensors' extents.
#include "kernels/attention/lengths.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/attention/vectors.h"
#include "kernels/fault.h"

namespace assay {
namespace {

[[noreturn]] void bad(const std::string& role, std::size_t sequence) {
  throw std::invalid_argument(role + " does not fit the tensor at sequence " + std::to_string(sequence));
}

TensorView list(std::span<const TensorView> inputs, const std::string& role, std::int64_t count) {
  const TensorView view = required_input(inputs, role);
  if (view.extent(0) != count)
    throw std::invalid_argument(role + " has " + std::to_string(view.extent(0)) + " elements");
  return view;
}

/// SequenceSpans of a tensor with `limit` rows or tokens.
SequenceSpans sequences(std::span<const TensorView> inputs, const AttentionParams& p, std::string_view side,
                        std::int64_t limit) {
  const auto batch = static_cast<std::size_t>(p.batch);
  SequenceSpans s{std::vector<std::int64_t>(batch, 0), std::vector<std::int64_t>(batch, limit)};
  if (p.batching == Batching::kDense) return s;
  const bool packed = p.batching == Batching::kPacked;
  if (faulty(Fault::kSequencesJoined) && packed && side == "kv" && !p.segments && p.data_mask == DataMask::kNone) return s;
  const std::string role = (packed ? "cu_seqlens_" : "seqlens_") + std::string(side);
  const TensorView values = list(inputs, role, p.batch + (packed ? 1 : 0));
  for (std::size_t b = 0; b < batch; ++b) {
    s.starts[b] = packed ? int_element(values, b) : 0;
    s.lens[b] = packed ? int_element(values, b + 1) - s.starts[b] : int_element(values, b);
    if (s.starts[b] < 0 || s.lens[b] < 0 || s.starts[b] + s.lens[b] > limit) bad(role, b);
  }
  return s;
}

/// As many keys as the call before had, if it had as many sequences and fewer keys.
void shorten_to_the_call_before(std::vector<std::int64_t>& lens) {
  static std::vector<std::int64_t> before;
  const std::vector<std::int64_t> now = lens;
  if (before.size() == lens.size())
    for (std::size_t b = 0; b < lens.size(); ++b) lens[b] = std::min(lens[b], before[b]);
  before = now;
}

/// Lengths in a block table with room for `pages` pages a sequence.
SequenceSpans table_sequences(std::span<const TensorView> inputs, const AttentionParams& p) {
  const TensorView lens = list(inputs, "seqlens_kv", p.batch);
  const std::int64_t room = required_input(inputs, "block_table").extent(1) * p.page;
  SequenceSpans s{std::vector<std::int64_t>(static_cast<std::size_t>(p.batch), 0), {}};
  for (std::size_t b = 0; b < s.starts.size(); ++b) {
    s.lens.push_back(int_element(lens, b));
    if (s.lens[b] < 0 || s.lens[b] > room) bad("seqlens_kv", b);
  }
  if (faulty(Fault::kStaleLengths)) shorten_to_the_call_before(s.lens);
  return s;
}

/// Lengths from a page list: full pages but for the last one.
SequenceSpans page_list_sequences(std::span<const TensorView> inputs, const AttentionParams& p) {
  const TensorView indptr = list(inputs, "kv_indptr", p.batch + 1);
  const TensorView last = list(inputs, "kv_last_page_len", p.batch);
  const std::int64_t listed = required_input(inputs, "kv_indices").extent(0);
  SequenceSpans s{std::vector<std::int64_t>(static_cast<std::size_t>(p.batch), 0), {}};
  for (std::size_t b = 0; b < s.starts.size(); ++b) {
    const std::int64_t first = int_element(indptr, b), end = int_element(indptr, b + 1);
    if (first < 0 || end < first || end > listed) bad("kv_indptr", b);
    if (end > first && (int_element(last, b) < 1 || int_element(last, b) > p.page)) bad("kv_last_page_len", b);
    s.lens.push_back(end > first ? (end - first - 1) * p.page + int_element(last, b) : 0);
  }
  return s;
}

std::int64_t token_axis(const AttentionParams& p) { return p.batching == Batching::kPacked ? 0 : 2; }

}  // namespace

SequenceSpans query_sequences(std::span<const TensorView> inputs, const AttentionParams& params) {
  return sequences(inputs, params, "q",
                   required_input(inputs, "q").extent(static_cast<std::size_t>(token_axis(params))));
}

SequenceSpans key_sequences(std::span<const TensorView> inputs, const AttentionParams& params) {
  switch (params.kv_store) {
    case KvStore::kVllm:
    case KvStore::kVllmX: return table_sequences(inputs, params);
    case KvStore::kNhd:
    case KvStore::kHnd: return page_list_sequences(inputs, params);
    case KvStore::kContiguous: break;
  }
  SequenceSpans s =
      sequences(inputs, params, "kv", required_input(inputs, "k").extent(static_cast<std::size_t>(token_axis(params))));
  for (std::int64_t& len : s.lens) len += params.prefix;
  return s;
}

}  // namespace assay

// Reads lengths, starts and page lists of sequences, and refuses entries that point outside.
#include "oracle/ops/attention/sequences.h"

#include <algorithm>
#include <string>

#include "oracle/error.h"

namespace assay {
namespace {

std::int64_t integer_at(const TensorView& t, std::initializer_list<std::int64_t> index) {
  std::int64_t element = t.layout->offset;
  std::size_t axis = 0;
  for (std::int64_t at : index) element += at * t.stride(axis++);
  return static_cast<std::int64_t>(t.value(element));
}

/// Starts of a packed batch of at most `tokens` tokens, no sequence longer than `longest`.
void read_starts(const TensorView& t, std::int64_t batch, std::int64_t tokens, std::int64_t longest, Sequences& out) {
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t start = entry_within(t, {b}, 0, tokens, "a token of the batch");
    const std::int64_t end = entry_within(t, {b + 1}, start, tokens, "between the start before it and the last token");
    if (end - start > longest)
      refuse_entry(
          t, {b + 1},
          "the sequence has " + std::to_string(end - start) + " tokens, the case at most " + std::to_string(longest));
    out.starts.push_back(start);
    out.lens.push_back(end - start);
  }
}

void read_lengths(const TensorView& t, std::int64_t batch, std::int64_t longest, Sequences& out) {
  for (std::int64_t b = 0; b < batch; ++b) out.lens.push_back(entry_within(t, {b}, 0, longest, "a length of the case"));
}

/// vLLM: lengths and a table with a row per sequence.
void read_table(const AttentionParams& p, const Problem& problem, std::int64_t pages, Sequences& out) {
  const TensorView table = input_view(problem, "block_table"), lens = input_view(problem, "seqlens_kv");
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t most = std::min(p.len_kv, table.extent(1) * p.page);
    const std::int64_t len = entry_within(lens, {b}, p.prefix, most, "a length of the case");
    std::vector<std::int64_t> list;
    for (std::int64_t page = 0; page * p.page < len; ++page)
      list.push_back(entry_within(table, {b, page}, 0, pages - 1, "a page of the cache"));
    out.lens.push_back(len);
    out.pages.push_back(std::move(list));
  }
}

/// FlashInfer: indptr into a list of pages, and how full the last one is.
void read_lists(const AttentionParams& p, const Problem& problem, std::int64_t pages, Sequences& out) {
  const TensorView indptr = input_view(problem, "kv_indptr"), indices = input_view(problem, "kv_indices");
  const TensorView last = input_view(problem, "kv_last_page_len");
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t first = entry_within(indptr, {b}, 0, indices.extent(0), "an index into kv_indices");
    const std::int64_t end = entry_within(indptr, {b + 1}, first, indices.extent(0),
                                          "an index into kv_indices, not before the one before it");
    std::vector<std::int64_t> list;
    for (std::int64_t i = first; i < end; ++i)
      list.push_back(entry_within(indices, {i}, 0, pages - 1, "a page of the cache"));
    const std::int64_t full = std::max<std::int64_t>(0, end - first - 1) * p.page;
    if (end > first) entry_within(last, {b}, 1, p.page, "the used slots of a page");
    const std::int64_t len = end > first ? full + integer_at(last, {b}) : 0;
    if (len > p.len_kv || len < p.prefix)
      refuse_entry(indptr, {b + 1},
                   "the sequence has " + std::to_string(len) + " keys, the case " + std::to_string(p.prefix) + " to " +
                       std::to_string(p.len_kv));
    out.lens.push_back(len);
    out.pages.push_back(std::move(list));
  }
}

}  // namespace

TensorView input_view(const Problem& problem, std::string_view role) {
  for (const Tensor& tensor : problem.inputs)
    if (tensor.layout.role == role) return tensor.view();
  return {};
}

void refuse_entry(const TensorView& t, std::initializer_list<std::int64_t> index, std::string_view why) {
  std::string text;
  for (std::int64_t at : index) text += (text.empty() ? "" : ",") + std::to_string(at);
  throw InputError("case: attention " + t.layout->role + "[" + text + "]=" + std::to_string(integer_at(t, index)) +
                   ": " + std::string(why));
}

std::int64_t entry_within(const TensorView& t, std::initializer_list<std::int64_t> index, std::int64_t low,
                          std::int64_t high, std::string_view what) {
  const std::int64_t value = integer_at(t, index);
  if (value < low || value > high)
    refuse_entry(t, index,
                 "is not " + std::string(what) + ", [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  return value;
}

Sequences query_sequences(const AttentionParams& p, const Problem& problem) {
  Sequences out;
  switch (p.batching) {
    case Batching::kDense: out.lens.assign(static_cast<std::size_t>(p.batch), p.len_q); break;
    case Batching::kPadded: read_lengths(input_view(problem, "seqlens_q"), p.batch, p.len_q, out); break;
    case Batching::kPacked:
      read_starts(input_view(problem, "cu_seqlens_q"), p.batch, input_view(problem, "q").extent(0), p.len_q, out);
  }
  return out;
}

Sequences key_sequences(const AttentionParams& p, const Problem& problem) {
  Sequences out;
  const TensorView k = input_view(problem, "k");
  switch (p.kv_store) {
    case KvStore::kVllm:
    case KvStore::kVllmX: read_table(p, problem, k.extent(0), out); return out;
    case KvStore::kNhd:
    case KvStore::kHnd: read_lists(p, problem, k.extent(0), out); return out;
    case KvStore::kContiguous: break;
  }
  const std::int64_t own = p.len_kv - p.prefix;
  switch (p.batching) {
    case Batching::kDense: out.lens.assign(static_cast<std::size_t>(p.batch), own); break;
    case Batching::kPadded: read_lengths(input_view(problem, "seqlens_kv"), p.batch, own, out); break;
    case Batching::kPacked: read_starts(input_view(problem, "cu_seqlens_kv"), p.batch, k.extent(0), own, out);
  }
  for (std::int64_t& len : out.lens) len += p.prefix;
  return out;
}

}  // namespace assay

// Addresses of key and value vectors in every store.
#include "kernels/attention/key_memory.h"

#include <stdexcept>
#include <string>

#include "kernels/fault.h"

namespace assay {
namespace {

/// The table itself if the one before had another size.
TensorView table_of_the_call_before(const TensorView& table) {
  static std::vector<std::byte> before, now;
  before.swap(now);
  now.assign(table.storage, table.storage + table.layout->storage_bytes());
  return before.size() == now.size() ? TensorView{table.layout, before.data()} : table;
}

}  // namespace

KeyMemory::KeyMemory(std::span<const TensorView> inputs, const AttentionParams& params)
    : params_(params), sequences_(key_sequences(inputs, params)), prefix_in_front_(0) {
  const auto pair = [&](std::string_view k, std::string_view v) {
    const TensorView keys = required_input(inputs, k);
    return Pair{keys, params.v_in_k ? keys : required_input(inputs, v)};
  };
  own_ = pair("k", "v");
  switch (params.kv_store) {
    case KvStore::kVllm:
    case KvStore::kVllmX: table_ = required_input(inputs, "block_table"); break;
    case KvStore::kNhd:
    case KvStore::kHnd:
      table_ = required_input(inputs, "kv_indices");
      indptr_ = required_input(inputs, "kv_indptr");
      break;
    case KvStore::kContiguous:
      prefix_in_front_ = params.prefix;
      if (params.prefix > 0) prefix_ = pair("k_prefix", "v_prefix");
  }
  if (faulty(Fault::kStaleTable) && table_.layout != nullptr) stale_ = table_of_the_call_before(table_);
}

std::int64_t KeyMemory::readable(std::int64_t batch) const {
  const std::int64_t used = length(batch);
  if (faulty(Fault::kTailValuesLoaded) && params_.batching == Batching::kPadded && params_.prefix == 0)
    return own_.v.extent(2);
  if (faulty(Fault::kPageTailLoaded)) return round_up(used, params_.page);
  return used;
}

std::int64_t KeyMemory::page_of(std::int64_t batch, std::int64_t key) const {
  std::int64_t index = key / params_.page;
  if (faulty(Fault::kTableOfFirst)) batch = 0;
  if (faulty(Fault::kTableIgnored)) return index;
  if (faulty(Fault::kLastPageRepeats) && index > 0 && index == (length(batch) - 1) / params_.page) --index;
  const auto entry = [&](const TensorView& table) {
    return indptr_.layout == nullptr ? int_element(table, batch, index)
                                     : int_element(table, int_element(indptr_, batch) + index);
  };
  std::int64_t page = entry(table_);
  if (faulty(Fault::kStaleTable))
    if (const std::int64_t stale = entry(stale_); stale >= 0 && stale < own_.k.extent(0)) page = stale;
  if (page < 0 || page >= own_.k.extent(0))
    throw std::invalid_argument(table_.layout->role + ": page " + std::to_string(page) + " does not exist");
  return page;
}

VectorPlace KeyMemory::in_page(const TensorView& t, std::int64_t page, std::int64_t head, std::int64_t slot) const {
  switch (params_.kv_store) {
    case KvStore::kHnd: return {t.element(page, head, slot), t.stride(3), t.extent(3), 0};
    case KvStore::kVllmX:
      if (t.layout->shape.size() == 5 && faulty(Fault::kSplitLanesSwapped))
        return {t.element(page, head, 0, slot), t.stride(2), t.extent(2), t.stride(4)};
      if (t.layout->shape.size() == 5)  // K [page, head, d / x, slot, x]
        return {t.element(page, head, 0, slot), t.stride(4), t.extent(4), t.stride(2)};
      return {t.element(page, head, 0, slot), t.stride(2), t.extent(2), 0};  // V [page, head, dv, slot]
    default: return {t.element(page, slot, head), t.stride(3), t.extent(3), 0};
  }
}

VectorPlace KeyMemory::place(const TensorView& t, std::int64_t batch, std::int64_t head, std::int64_t key) const {
  if (key < 0 || key >= readable(batch)) throw std::invalid_argument("key " + std::to_string(key) + " does not exist");
  const std::int64_t channels = t.layout->shape.back(), stride = t.layout->strides.back();
  if (key < prefix_in_front_) return {t.element(head, key), stride, channels, 0};
  if (params_.kv_store != KvStore::kContiguous) return in_page(t, page_of(batch, key), head, key % params_.page);
  const std::int64_t own = key - prefix_in_front_;
  if (params_.batching == Batching::kPacked)
    return {t.element(sequences_.starts[static_cast<std::size_t>(batch)] + own, head), stride, channels, 0};
  return {t.element(batch, head, own), stride, channels, 0};
}

void KeyMemory::load_k(std::int64_t batch, std::int64_t head, std::int64_t key, float* out) const {
  const TensorView& k = region(key).k;
  VectorPlace at = place(k, batch, head, key);
  if (faulty(Fault::kKeyOffsetWraps)) at.first %= 0x10000;
  load_vector(k, at, params_.dim_qk, out);
}

void KeyMemory::load_v(std::int64_t batch, std::int64_t head, std::int64_t key, float* out) const {
  const TensorView& v = region(key).v;
  const std::int64_t slot = key % params_.page;
  if (faulty(Fault::kPageCursorOfPair) && key / params_.page % 2 == 1) key -= params_.page;
  if (faulty(Fault::kValueSlotOff) && slot + 1 < params_.page && key + 1 < length(batch)) ++key;
  VectorPlace at = place(v, batch, head, key);
  if (faulty(Fault::kValueOffsetWraps)) at.first %= 0x8000;
  if (faulty(Fault::kValuesContiguous) && params_.batching != Batching::kPacked && key >= prefix_in_front_ &&
      params_.kv_store == KvStore::kContiguous)
    at = {dense_element(*v.layout, {batch, head, key - prefix_in_front_, 0}), 1, at.group, 0};
  load_vector(v, at, params_.dim_v, out);
}

}  // namespace assay

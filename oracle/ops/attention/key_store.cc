// Finds keys and values in their tensors and decodes them.
#include "oracle/ops/attention/key_store.h"

#include <algorithm>

#include "oracle/ops/attention/decode_run.h"

namespace assay {

KeyStore::KeyStore(const AttentionParams& p, const Problem& problem)
    : sequences_(key_sequences(p, problem)), packed_(p.batching == Batching::kPacked) {
  k_ = vectors(p, input_view(problem, "k"));
  v_ = p.v_in_k ? k_ : vectors(p, input_view(problem, "v"));
  if (p.kv_store != KvStore::kContiguous) {
    page_ = p.page;
  } else if (p.prefix > 0) {
    prefix_ = p.prefix;
    k_prefix_ = vectors(p, input_view(problem, "k_prefix"));
    v_prefix_ = p.v_in_k ? k_prefix_ : vectors(p, input_view(problem, "v_prefix"));
  }
}

KeyStore::Vectors KeyStore::vectors(const AttentionParams& p, const TensorView& t) {
  Vectors v;
  v.t = t;
  const std::size_t axes = t.layout->shape.size();
  v.group = t.extent(axes - 1);
  v.channel_stride = t.stride(axes - 1);
  switch (p.kv_store) {
    case KvStore::kContiguous: break;
    case KvStore::kVllm:
    case KvStore::kNhd: v.axis_slot = 1, v.axis_head = 2; break;
    case KvStore::kHnd: v.axis_head = 1, v.axis_slot = 2; break;
    case KvStore::kVllmX:
      v.axis_head = 1;
      v.axis_slot = 3;
      if (axes == 5) {  // k [pages, hkv, d / x, page, x]
        v.group_stride = t.stride(2);
      } else {  // v [pages, hkv, dv, page]
        v.group = t.extent(2);
        v.channel_stride = t.stride(2);
      }
  }
  return v;
}

std::int64_t KeyStore::first_element(const Vectors& v, std::int64_t batch, std::int64_t head, std::int64_t key) const {
  const auto b = static_cast<std::size_t>(batch);
  if (page_ > 0)
    return v.t.layout->offset + sequences_.pages[b][static_cast<std::size_t>(key / page_)] * v.t.stride(v.axis_page) +
           key % page_ * v.t.stride(v.axis_slot) + head * v.t.stride(v.axis_head);
  if (packed_) return v.t.element(sequences_.starts[b] + key, head);
  return v.t.element(batch, head, key);
}

void KeyStore::load(const Vectors& own, const Vectors& prefix, std::int64_t batch, std::int64_t head, std::int64_t key,
                    std::span<double> out) const {
  const Vectors& v = key < prefix_ ? prefix : own;
  std::int64_t first = key < prefix_ ? v.t.element(head, key) : first_element(v, batch, head, key - prefix_);
  const auto group = static_cast<std::size_t>(v.group);
  for (std::size_t c = 0; c < out.size(); c += group, first += v.group_stride)
    decode_run(v.t, first, v.channel_stride, out.subspan(c, std::min(group, out.size() - c)));
}

}  // namespace assay

// Where a key and its value lie: contiguous, packed, behind a shared prefix, or in pages; with channels in any stride.
#pragma once

#include <cstdint>
#include <span>

#include "oracle/ops/attention/sequences.h"

namespace assay {

/// Non-owning views of the tensors of one problem, which must outlive it.
class KeyStore {
 public:
  KeyStore() = default;
  /// Throws InputError for index tensors that point outside (sequences.h).
  KeyStore(const AttentionParams& p, const Problem& problem);

  std::int64_t length(std::int64_t batch) const { return sequences_.lens[static_cast<std::size_t>(batch)]; }
  /// The first k.size() or v.size() channels of key or value `key` of a sequence.
  void load_k(std::int64_t batch, std::int64_t head, std::int64_t key, std::span<double> k) const {
    load(k_, k_prefix_, batch, head, key, k);
  }
  void load_v(std::int64_t batch, std::int64_t head, std::int64_t key, std::span<double> v) const {
    load(v_, v_prefix_, batch, head, key, v);
  }

 private:
  /// A tensor of vectors. Channel c lies at (c / group) group_stride + (c mod group) channel_stride from the vector's
  /// start.
  struct Vectors {
    TensorView t;
    std::size_t axis_page = 0, axis_slot = 0, axis_head = 0;  ///< paged
    std::int64_t group = 0, group_stride = 0, channel_stride = 1;
  };
  static Vectors vectors(const AttentionParams& p, const TensorView& t);
  std::int64_t first_element(const Vectors& v, std::int64_t batch, std::int64_t head, std::int64_t own_key) const;
  void load(const Vectors& own, const Vectors& prefix, std::int64_t batch, std::int64_t head, std::int64_t key,
            std::span<double> out) const;

  Vectors k_, v_, k_prefix_, v_prefix_;
  Sequences sequences_;
  std::int64_t prefix_ = 0;  ///< keys in tensors of their own
  std::int64_t page_ = 0;    ///< 0: not paged
  bool packed_ = false;
};

}  // namespace assay

// Where the key and value vectors of a call lie: contiguous, behind a shared prefix, or in pages.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention/lengths.h"
#include "kernels/attention/vectors.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

class KeyMemory {
 public:
  /// Throws std::invalid_argument if a tensor is missing or the lengths do not fit.
  KeyMemory(std::span<const TensorView> inputs, const AttentionParams& params);

  std::int64_t length(std::int64_t batch) const { return sequences_.lens[static_cast<std::size_t>(batch)]; }

  /// Positions that may be loaded: length(batch), and under a fault storage that no key uses.
  std::int64_t readable(std::int64_t batch) const;

  /// Loads the key (value) vector at position `key` < length(batch) into out[0 .. d) (out[0 .. dv)), exactly. Reads no
  /// entry of a page table but the one of the key's page; throws std::invalid_argument if that names no page.
  void load_k(std::int64_t batch, std::int64_t head, std::int64_t key, float* out) const;
  void load_v(std::int64_t batch, std::int64_t head, std::int64_t key, float* out) const;

 private:
  /// K and V tensors of one region. V may lie in K (MLA); then it is K's view.
  struct Pair {
    TensorView k, v;
  };
  const Pair& region(std::int64_t key) const { return key < prefix_in_front_ ? prefix_ : own_; }
  VectorPlace place(const TensorView& t, std::int64_t batch, std::int64_t head, std::int64_t key) const;
  VectorPlace in_page(const TensorView& t, std::int64_t page, std::int64_t head, std::int64_t slot) const;
  std::int64_t page_of(std::int64_t batch, std::int64_t key) const;

  AttentionParams params_;
  SequenceSpans sequences_;
  std::int64_t prefix_in_front_;  ///< keys that lie in tensors of their own
  Pair own_, prefix_;
  TensorView table_, indptr_;  ///< block_table, or kv_indices with kv_indptr
  TensorView stale_;           ///< under a fault: the table of the call before
};

}  // namespace assay

// Lengths, starts and page lists of sequences as the oracle reads them from index tensors.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

struct Sequences {
  std::vector<std::int64_t> lens;                ///< of each sequence; of keys: with the prefix
  std::vector<std::int64_t> starts;              ///< packed: first token of each sequence
  std::vector<std::vector<std::int64_t>> pages;  ///< paged keys: physical page of each run of `page` positions
};

/// Read from the tensors of `problem`, as a kernel would; parameters decide only where nothing in memory says it
/// (dense). An entry that points outside its tensor or passes the longest length is an InputError; entries behind a
/// sequence's last page are never looked at.
Sequences query_sequences(const AttentionParams& p, const Problem& problem);
Sequences key_sequences(const AttentionParams& p, const Problem& problem);

/// The input with that role, or a view with null storage.
TensorView input_view(const Problem& problem, std::string_view role);

/// The integer at `index`. Throws InputError naming tensor, index and value unless it lies in [low, high].
std::int64_t entry_within(const TensorView& t, std::initializer_list<std::int64_t> index, std::int64_t low,
                          std::int64_t high, std::string_view what);

[[noreturn]] void refuse_entry(const TensorView& t, std::initializer_list<std::int64_t> index, std::string_view why);

}  // namespace assay

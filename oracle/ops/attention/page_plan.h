// Which physical page holds which positions of which sequence, and the tables that say so, from a case's parameters.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

struct PagePlan {
  std::vector<std::vector<std::int64_t>>
      pages;                  ///< of each sequence, in order of position; the prefix's pages come first
  std::vector<PageUse> uses;  ///< of each physical page
};

/// Pages are dealt out in order: the prefix's, then each sequence's own. page_seed = 0: ascending, spare pages behind
/// them; else the physical order is a pseudo-random permutation of the used and the spare ones.
PagePlan plan_pages(const AttentionParams& p);

/// vLLM's table, row-major [b, table_columns(p)]: one entry more than the longest sequence could need, so that every
/// sequence has an entry behind its last page; those hold what table_pad says.
std::vector<std::int64_t> block_table(const AttentionParams& p, const PagePlan& plan);
std::int64_t table_columns(const AttentionParams& p);

/// FlashInfer's page lists; kv_indices has one entry behind the last, by table_pad.
struct PageLists {
  std::vector<std::int64_t> indptr, indices, last_page_len;
};
PageLists page_lists(const AttentionParams& p, const PagePlan& plan);

/// splitmix64: a bijection that spreads a counter over 64 bits.
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace assay

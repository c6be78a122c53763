// Deals physical pages out to sequences.
#include "oracle/ops/attention/page_plan.h"

#include <algorithm>
#include <numeric>

namespace assay {
namespace {

std::int64_t pages_for(const AttentionParams& p, std::int64_t len) { return (len + p.page - 1) / p.page; }

/// The physical pages in the order in which they are dealt out.
std::vector<std::int64_t> physical_order(const AttentionParams& p, std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (p.page_seed == 0) return order;
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::uint64_t draw = mixed(static_cast<std::uint64_t>(p.page_seed) * 0x100000001b3U + i);
    std::swap(order[i - 1], order[draw % i]);
  }
  return order;
}

/// The entry behind the last page of sequence b.
std::int64_t pad_entry(const AttentionParams& p, const PagePlan& plan, std::size_t b) {
  switch (p.table_pad) {
    case TablePad::kZero: return 0;
    case TablePad::kMinusOne: return -1;
    case TablePad::kHuge: return 0x7fffffff;
    case TablePad::kShared: break;
  }
  for (std::size_t step = 1; step <= plan.pages.size(); ++step)
    if (const auto& other = plan.pages[(b + step) % plan.pages.size()]; !other.empty()) return other.back();
  return 0;
}

}  // namespace

PagePlan plan_pages(const AttentionParams& p) {
  const std::int64_t shared = p.prefix / p.page;
  std::int64_t used = shared;
  for (std::int64_t len : p.lens_kv) used += pages_for(p, len) - shared;
  const std::vector<std::int64_t> order = physical_order(p, used + p.spare_pages);
  PagePlan plan;
  plan.uses.resize(order.size());
  auto next = order.begin() + shared;
  for (std::size_t b = 0; b < p.lens_kv.size(); ++b) {
    const std::int64_t len = p.lens_kv[b];
    std::vector<std::int64_t> pages(order.begin(), order.begin() + shared);
    for (std::int64_t page = shared; page < pages_for(p, len); ++page) pages.push_back(*next++);
    for (std::size_t page = 0; page < pages.size(); ++page) {
      PageUse& use = plan.uses[static_cast<std::size_t>(pages[page])];
      if (use.batch >= 0) continue;  // of the prefix
      const std::int64_t first = static_cast<std::int64_t>(page) * p.page;
      use = {static_cast<std::int64_t>(b), first, std::min(p.page, len - first)};
    }
    plan.pages.push_back(std::move(pages));
  }
  return plan;
}

std::int64_t table_columns(const AttentionParams& p) { return pages_for(p, p.len_kv) + 1; }

std::vector<std::int64_t> block_table(const AttentionParams& p, const PagePlan& plan) {
  std::vector<std::int64_t> table;
  for (std::size_t b = 0; b < plan.pages.size(); ++b) {
    table.insert(table.end(), plan.pages[b].begin(), plan.pages[b].end());
    table.resize((b + 1) * static_cast<std::size_t>(table_columns(p)), pad_entry(p, plan, b));
  }
  return table;
}

PageLists page_lists(const AttentionParams& p, const PagePlan& plan) {
  PageLists lists;
  lists.indptr.push_back(0);
  for (std::size_t b = 0; b < plan.pages.size(); ++b) {
    const std::vector<std::int64_t>& pages = plan.pages[b];
    lists.indices.insert(lists.indices.end(), pages.begin(), pages.end());
    lists.indptr.push_back(static_cast<std::int64_t>(lists.indices.size()));
    const auto full = static_cast<std::int64_t>(pages.size()) - 1;
    lists.last_page_len.push_back(pages.empty() ? 0 : p.lens_kv[b] - full * p.page);
  }
  lists.indices.push_back(pad_entry(p, plan, plan.pages.size() - 1));
  return lists;
}

}  // namespace assay

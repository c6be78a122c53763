// Groups rows that agree in what is wrong with their keys, and says it in words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "failure_catalog/tomography.h"

namespace assay {
namespace {

std::vector<KeyRun> counted_from(const std::vector<KeyRun>& runs, std::int64_t zero) {
  std::vector<KeyRun> out;
  for (const KeyRun& run : runs) out.push_back({run.first - zero, run.last - zero});
  return out;
}

bool differs(const RowWeights& row) { return !row.right_keys() || row.unequal > 0; }

bool neighbours(const RowWeights& a, const RowWeights& b) {
  return a.row.batch == b.row.batch && a.row.head == b.row.head && a.row.query + 1 == b.row.query;
}

/// Whether `row` continues a group of rows of one head. A group of one may still turn to counting from the diagonal.
bool continues(KeyDifference& group, const Tomography& t, const RowWeights& row) {
  const RowWeights& last = t.rows[group.rows.back()];
  if (!neighbours(last, row) || group.finite != row.finite) return false;
  if (!row.finite) return true;
  if (!group.from_diagonal && group.missing == row.missing && group.extra == row.extra) return true;
  if (!group.from_diagonal && group.rows.size() > 1) return false;
  const RowWeights& first = t.rows[group.rows[0]];
  const auto missing = counted_from(row.missing, row.position), extra = counted_from(row.extra, row.position);
  if (counted_from(first.missing, first.position) != missing || counted_from(first.extra, first.position) != extra)
    return false;
  group.from_diagonal = true;
  group.missing = missing;
  group.extra = extra;
  return true;
}

void absorb(KeyDifference& group, std::size_t index, const RowWeights& row) {
  if (group.rows.empty()) group.factor_low = group.factor_high = row.factor;
  group.rows.push_back(index);
  group.spread = std::max(group.spread, row.spread);
  group.factor_low = std::min(group.factor_low, row.factor);
  group.factor_high = std::max(group.factor_high, row.factor);
  group.unequal = std::max(group.unequal, row.unequal);
}

/// The queries of a group's rows in each of its heads, when they are the same in all.
std::vector<std::int64_t> queries_of(const KeyDifference& group, const Tomography& t) {
  std::set<std::int64_t> queries;
  for (const std::size_t r : group.rows) queries.insert(t.rows[r].row.query);
  return {queries.begin(), queries.end()};
}

bool same_fault(const KeyDifference& a, const KeyDifference& b, const Tomography& t) {
  return a.from_diagonal == b.from_diagonal && a.missing == b.missing && a.extra == b.extra && a.finite == b.finite &&
         (a.unequal > 0) == (b.unequal > 0) && queries_of(a, t) == queries_of(b, t);
}

std::string range_text(const char* one, const char* many, std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{} {}", one, first) : fmt::format("{} {}..{}", many, first, last);
}

std::string runs_text(const std::vector<KeyRun>& runs, bool from_diagonal) {
  constexpr std::size_t kMost = 4;
  std::string text;
  std::int64_t left = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i >= kMost) {
      left += runs[i].last - runs[i].first + 1;
      continue;
    }
    if (i > 0) text += ", ";
    const auto [first, last] = runs[i];
    if (from_diagonal)
      text += first == last ? fmt::format("{:+}", first) : fmt::format("{:+}..{:+}", first, last);
    else
      text += first == last ? fmt::format("{}", first) : fmt::format("{}..{}", first, last);
  }
  if (left > 0) text += fmt::format(" and {} more", left);
  const bool one = runs.size() == 1 && runs[0].first == runs[0].last;
  return fmt::format("key{} {}{}", one ? "" : "s", from_diagonal ? "diagonal " : "", text);
}

/// "b 0 h 1", "b 0 h 0..7", "all 16 heads".
std::string heads_text(const KeyDifference& d, const Tomography& t) {
  std::set<std::pair<std::int64_t, std::int64_t>> heads, all;
  for (const std::size_t r : d.rows) heads.insert({t.rows[r].row.batch, t.rows[r].row.head});
  for (const RowWeights& row : t.rows) all.insert({row.row.batch, row.row.head});
  const auto [batch, head] = *heads.begin();
  if (heads.size() == 1) return fmt::format("b {} h {}", batch, head);
  if (heads == all) return fmt::format("all {} heads", all.size());
  const auto [last_batch, last_head] = *heads.rbegin();
  if (batch == last_batch && last_head - head + 1 == static_cast<std::int64_t>(heads.size()))
    return fmt::format("b {} h {}..{}", batch, head, last_head);
  return fmt::format("{} heads, the first b {} h {}", heads.size(), batch, head);
}

std::string percent(double share) { return fmt::format("{:.2g} %", 100 * share); }

}  // namespace

std::vector<KeyDifference> key_differences(const Tomography& t) {
  std::vector<KeyDifference> by_head;
  for (std::size_t r = 0; r < t.rows.size(); ++r) {
    const RowWeights& row = t.rows[r];
    if (!differs(row)) continue;
    if (by_head.empty() || !continues(by_head.back(), t, row)) {
      KeyDifference fresh;
      fresh.missing = row.missing;
      fresh.extra = row.extra;
      fresh.finite = row.finite;
      by_head.push_back(std::move(fresh));
    }
    absorb(by_head.back(), r, row);
  }
  std::vector<KeyDifference> out;
  for (KeyDifference& group : by_head) {
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const KeyDifference& other) { return same_fault(other, group, t); });
    if (same == out.end()) {
      out.push_back(std::move(group));
      continue;
    }
    for (const std::size_t r : group.rows) absorb(*same, r, t.rows[r]);
  }
  return out;
}

std::string describe(const KeyDifference& d, const Tomography& t) {
  const std::vector<std::int64_t> queries = queries_of(d, t);
  const bool one_piece = queries.back() - queries.front() + 1 == static_cast<std::int64_t>(queries.size());
  std::string text = one_piece ? range_text("row", "rows", queries.front(), queries.back())
                               : fmt::format("{} rows, the first {}", queries.size(), queries.front());
  text += fmt::format(" ({}): ", heads_text(d, t));
  if (!d.finite) return text + "weights are NaN or infinite";
  if (!d.missing.empty()) text += runs_text(d.missing, d.from_diagonal) + " missing, ";
  if (!d.extra.empty()) text += runs_text(d.extra, d.from_diagonal) + " extra, ";
  const bool wrong_keys = !d.missing.empty() || !d.extra.empty();
  text += fmt::format("weights of {} within {}", wrong_keys ? "the others" : "all keys", percent(d.spread));
  if (d.unequal > 0) text += fmt::format(", {} beyond rounding", d.unequal);
  const double far = std::max(std::abs(d.factor_low - 1), std::abs(d.factor_high - 1));
  if (far > t.rounding)
    text += d.factor_low == d.factor_high
                ? fmt::format(" of {:.3f} times theirs", d.factor_low)
                : fmt::format(" of {:.3f} to {:.3f} times theirs", d.factor_low, d.factor_high);
  return text;
}

std::vector<std::string> foreign_origins(const Tomography& t, const AttentionParams& p) {
  std::vector<std::string> out;
  const std::int64_t group = p.heads_q / p.heads_kv;
  std::string last;
  for (const RowWeights& row : t.rows) {
    const std::int64_t own = row.row.batch * p.heads_kv + row.row.head / group;
    for (std::size_t from = 0; from < row.origin.size(); ++from) {
      const double share = static_cast<double>(row.origin[from]);
      if (static_cast<std::int64_t>(from) == own || share == 0) continue;
      const auto b = static_cast<std::int64_t>(from) / p.heads_kv, g = static_cast<std::int64_t>(from) % p.heads_kv;
      std::string text =
          fmt::format("b {} h {}: weight from kv head {} of sequence {} (its own: kv head {} of sequence {})",
                      row.row.batch, row.row.head, g, b, own % p.heads_kv, row.row.batch);
      if (text == last) continue;
      out.push_back(text);
      last = std::move(text);
    }
  }
  return out;
}

}  // namespace assay

// What every rendered report shares: counting, grouping and the wording of one record.
#include "reports/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <nlohmann/json.hpp>

namespace assay {

namespace {

bool judged(CaseVerdict kind) {
  return kind == CaseVerdict::kClean || kind == CaseVerdict::kFinding || kind == CaseVerdict::kUnclassified;
}

bool failed(CaseVerdict kind) {
  return kind == CaseVerdict::kFinding || kind == CaseVerdict::kUnclassified || kind == CaseVerdict::kCrashed ||
         kind == CaseVerdict::kHung;
}

/// Every maximal run of digits (with decimal points and exponents' signs left as they are) becomes one '#', so that
/// "residual 31.2 > 16" and "residual 40.9 > 16" are one cause.
std::string mask_numbers(const std::string& text) {
  std::string masked;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit)
      masked += c;
    else if (masked.empty() || masked.back() != '#')
      masked += '#';
  }
  return masked;
}

std::vector<Group> grouped(const std::vector<Record>& records, bool failures, bool by_kernel) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> known;
  for (const Record& record : records) {
    const CaseVerdict kind = record.verdict.kind;
    if (kind == CaseVerdict::kClean || failed(kind) != failures) continue;
    const std::string cause = kind == CaseVerdict::kFinding ? record.verdict.mode : mask_numbers(verdict_text(record));
    const std::string kernel = by_kernel ? record.kernel : std::string();
    const std::string key = fmt::format("{}\n{}\n{}", verdict_name(kind), kernel, cause);
    const auto [it, is_new] = known.emplace(key, groups.size());
    if (is_new) groups.push_back({kind, kernel, cause, {}});
    groups[it->second].records.push_back(&record);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.records.size() > b.records.size(); });
  return groups;
}

void flatten(const nlohmann::json& value, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& lines) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) flatten(member, path.empty() ? name : path + "." + name, lines);
  } else {
    lines.emplace_back(path, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

}  // namespace

std::string_view outcome_name(int exit_code) {
  switch (exit_code) {
    case 0: return "PASS";
    case 1: return "FAIL";
    case 5: return "CRASHED";
    default: return "NOTHING TESTED";
  }
}

std::string verdict_line(const std::vector<Record>& records) {
  const Summary s = summarize(records);
  std::string counts;
  const auto count = [&](std::int64_t n, const char* one, const char* many) {
    if (n > 0) counts += fmt::format(", {} {}", n, n == 1 ? one : many);
  };
  count(s.findings, "finding", "findings");
  count(s.unclassified, "unclassified failure", "unclassified failures");
  count(s.crashed, "crashed", "crashed");
  count(s.hung, "hung", "hung");
  count(s.clean, "clean", "clean");
  count(s.out_of_range, "out of range", "out of range");
  count(s.vacuous, "vacuous", "vacuous");
  count(s.uncertain, "uncertain", "uncertain");
  count(s.skipped, "skipped", "skipped");
  count(s.warned, "with a warning", "with warnings");
  std::set<std::string> levels;
  for (const Record& record : records)
    if (judged(record.verdict.kind)) levels.insert(record.bound_level);
  const std::string bounds = levels.empty() ? "" : fmt::format("; bounds {}", fmt::join(levels, ", "));
  const int code = exit_code(s);
  return fmt::format("{}: {} {}{}{}; exit {}", outcome_name(code), s.cases, s.cases == 1 ? "case" : "cases", counts,
                     bounds, code);
}

std::string shell_quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + quoted + "'";
}

std::string repro_command(const Record& record) {
  if (!record.repro.empty()) return record.repro;
  return fmt::format("assay repro {} --kernel {}", shell_quoted(record.case_line), record.kernel);
}

ElementReport worst_element(const OutputMeasure& output) {
  if (output.worst.rejected) return output.worst;
  for (const TierMeasure& tier : output.tiers)
    if (tier.worst.rejected) return tier.worst;
  return output.worst;
}

const OutputMeasure* worst_output(const Record& record) {
  const OutputMeasure* worst = nullptr;
  for (const OutputMeasure& output : record.measurement.outputs)
    if (output.worst.element >= 0 && (worst == nullptr || worst_element(output).used > worst_element(*worst).used)) worst = &output;
  return worst;
}

double worst_used(const Record& record) {
  const OutputMeasure* worst = worst_output(record);
  return worst == nullptr ? 0 : worst_element(*worst).used;
}

std::string describe_worst(const Record& record) {
  const OutputMeasure* worst = worst_output(record);
  if (worst == nullptr) return "";
  const ElementReport e = worst_element(*worst);
  std::string text = fmt::format("{} element {} (row {}): {:#x} = {}, truth {} +- {:.2g}, tau {}, used {}; {} of {} rejected",
                                 worst->role, e.element, e.row, e.code, short_number(e.value), short_number(e.mid), e.radius,
                                 short_number(e.tau), short_number(e.used), worst->rejected, worst->judged);
  for (const TierMeasure& tier : worst->tiers) text += fmt::format(", {} at {}", tier.rejected, level_name(tier.level));
  return text;
}

std::string verdict_text(const Record& record) {
  const Verdict& verdict = record.verdict;
  std::string text = verdict.kind == CaseVerdict::kFinding ? verdict.mode : std::string();
  for (const std::string* part : {&verdict.evidence, &verdict.reason})
    if (!part->empty()) text += (text.empty() ? "" : ": ") + *part;
  if (!verdict.rivals.empty()) text += fmt::format(" (this input cannot tell it from {})", fmt::join(verdict.rivals, ", "));
  return text.empty() ? std::string(verdict_name(verdict.kind)) : text;
}

std::string short_number(double value) { return fmt::format("{:.4g}", value); }

std::vector<TableRow> table(const std::vector<Record>& records) {
  std::vector<TableRow> rows;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const Record& record : records) {
    const auto [it, is_new] = known.emplace(std::pair(record.kernel, record.suite), rows.size());
    if (is_new) rows.push_back({record.kernel, record.suite, {}, 0});
    TableRow& row = rows[it->second];
    add(row.summary, record);
    if (judged(record.verdict.kind)) row.worst_used = std::max(row.worst_used, worst_used(record));
  }
  return rows;
}

const std::vector<std::string>& table_header() {
  static const std::vector<std::string> header = {"kernel",       "suite",        "cases",     "clean",     "finding",
                                                  "unclassified", "out of range", "vacuous",   "uncertain", "skipped",
                                                  "crashed",      "hung",         "worst used"};
  return header;
}

std::vector<std::string> table_cells(const TableRow& row) {
  const Summary& s = row.summary;
  std::vector<std::string> cells = {row.kernel, row.suite};
  for (const std::int64_t n : {s.cases, s.clean, s.findings, s.unclassified, s.out_of_range, s.vacuous, s.uncertain,
                               s.skipped, s.crashed, s.hung})
    cells.push_back(fmt::format("{}", n));
  const bool any = s.clean + s.findings + s.unclassified > 0;
  cells.push_back(any ? short_number(row.worst_used) : "-");
  return cells;
}

std::vector<Group> failures(const std::vector<Record>& records) { return grouped(records, true, true); }

std::vector<Group> not_judged(const std::vector<Record>& records) { return grouped(records, false, false); }

std::vector<Tightness> tightness(const std::vector<Record>& records) {
  std::vector<Tightness> rows;
  std::vector<std::vector<double>> ulps;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
  const auto see = [&](const Record& record, const std::string& role, std::string_view level, std::int64_t elements,
                       std::int64_t rejected, std::int64_t equal, double tau_ulp, double used) {
    const auto [it, is_new] = known.emplace(std::tuple(record.kernel, role, std::string(level)), rows.size());
    if (is_new) rows.push_back({.kernel = record.kernel, .role = role, .level = std::string(level)}), ulps.emplace_back();
    Tightness& row = rows[it->second];
    ++row.records;
    row.elements += elements;
    row.rejected += rejected;
    row.bit_equal += static_cast<double>(equal);
    if (std::isfinite(tau_ulp)) ulps[it->second].push_back(tau_ulp);
    if (!failed(record.verdict.kind)) row.worst_used = std::max(row.worst_used, used);
  };
  for (const Record& record : records) {
    if (!judged(record.verdict.kind)) continue;
    for (const OutputMeasure& o : record.measurement.outputs) {
      if (o.judged == o.unconstrained) continue;
      see(record, o.role, level_name(Level::kT0), o.judged - o.unconstrained, o.rejected, o.bit_equal, o.median_tau_ulp,
          o.worst.used);
      for (const TierMeasure& tier : o.tiers)
        see(record, o.role, level_name(tier.level), tier.judged, tier.rejected, tier.bit_equal, tier.median_tau_ulp,
            tier.worst.used);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].bit_equal /= static_cast<double>(std::max<std::int64_t>(1, rows[i].elements));
    std::sort(ulps[i].begin(), ulps[i].end());
    if (!ulps[i].empty()) rows[i].median_tau_ulp = ulps[i][ulps[i].size() / 2];
  }
  return rows;
}

const std::vector<std::string>& tightness_header() {
  static const std::vector<std::string> header = {"kernel",   "output",           "level",     "records",   "elements",
                                                  "rejected", "median tau / ulp", "bit-equal", "worst used"};
  return header;
}

std::vector<std::string> tightness_cells(const Tightness& row) {
  return {row.kernel,
          row.role,
          row.level,
          fmt::format("{}", row.records),
          fmt::format("{}", row.elements),
          fmt::format("{}", row.rejected),
          short_number(row.median_tau_ulp),
          fmt::format("{:.1f} %", 100 * row.bit_equal),
          short_number(row.worst_used)};
}

std::vector<std::pair<std::string, std::int64_t>> warnings(const std::vector<Record>& records) {
  std::vector<std::pair<std::string, std::int64_t>> groups;
  std::map<std::string, std::size_t> known;
  for (const Record& record : records)
    for (const std::string& warning : record.warnings) {
      const std::string text = record.kernel + ": " + warning;
      const auto [it, is_new] = known.emplace(mask_numbers(text), groups.size());
      if (is_new) groups.emplace_back(text, 0);
      ++groups[it->second].second;
    }
  return groups;
}

std::map<std::string, std::pair<std::int64_t, std::int64_t>> detection(const std::vector<Record>& records) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> counts;
  for (const Record& record : records) {
    if (!judged(record.verdict.kind)) continue;
    for (const KnownWrong& wrong : record.known_wrong) {
      auto& [rejected, applicable] = counts[wrong.name];
      if (!wrong.applicable) continue;
      ++applicable;
      if (wrong.rejected) ++rejected;
    }
  }
  return counts;
}

std::map<std::string, std::int64_t> assumptions(const std::vector<Record>& records) {
  std::map<std::string, std::int64_t> counts;
  for (const Record& record : records)
    if (judged(record.verdict.kind))
      for (const std::string& assumption : record.assumptions) ++counts[assumption];
  return counts;
}

std::vector<std::pair<std::string, std::string>> environment_lines(const nlohmann::json& environment) {
  std::vector<std::pair<std::string, std::string>> lines;
  flatten(environment, "", lines);
  return lines;
}

}  // namespace assay

// The report in Markdown: tables, and code blocks for what a reader will copy.
#include "reports/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/view.h"

namespace assay {

namespace {

// A step summary is cut off at 1 MiB: groups are counted in full, but only this many are written out.
constexpr std::size_t kGroupsShown = 40;

/// A fence longer than any run of backticks inside, so that no case line can end the block.
std::string code_block(const std::string& text) {
  std::size_t run = 0, longest = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fmt::format("{}\n{}\n{}\n", fence, text, fence);
}

/// The record of the group that left its bound farthest; the first one among equals.
const Record& worst_of(const Group& group) {
  const Record* worst = group.records.front();
  for (const Record* record : group.records)
    if (worst_used(*record) > worst_used(*worst)) worst = record;
  return *worst;
}

void append_failures(std::string& out, const std::vector<Record>& records) {
  const auto groups = failures(records);
  if (groups.empty()) return;
  out += "\n## Failures\n";
  for (std::size_t i = 0; i < std::min(kGroupsShown, groups.size()); ++i) {
    const Group& group = groups[i];
    const Record& record = worst_of(group);
    const std::string mode = group.kind == CaseVerdict::kFinding ? markdown_cell(group.cause) + ", " : std::string();
    out += fmt::format("\n**{} in {}**: {}{} {}. Worst:\n\n", verdict_name(group.kind), markdown_cell(group.kernel),
                       mode, group.records.size(), group.records.size() == 1 ? "case" : "cases");
    std::string text = verdict_text(record) + "\n";
    if (const std::string worst = describe_worst(record); !worst.empty()) text += worst + "\n";
    out += code_block(text + repro_command(record));
  }
  if (groups.size() > kGroupsShown)
    out += fmt::format("\n{} more groups are in the JSON.\n", groups.size() - kGroupsShown);
}

void append_not_judged(std::string& out, const std::vector<Record>& records) {
  const auto groups = not_judged(records);
  if (groups.empty()) return;
  out += "\n## Not judged\n\n";
  append_header(out, {"verdict", "cases", "reason of the first one"});
  for (std::size_t i = 0; i < std::min(kGroupsShown, groups.size()); ++i)
    append_row(out, {std::string(verdict_name(groups[i].kind)), fmt::format("{}", groups[i].records.size()),
                     verdict_text(*groups[i].records.front())});
  if (groups.size() > kGroupsShown)
    out += fmt::format("\n{} more reasons are in the JSON.\n", groups.size() - kGroupsShown);
}

}  // namespace

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    switch (c) {
      case '|': cell += "\\|"; break;
      case '<': cell += "&lt;"; break;
      case '>': cell += "&gt;"; break;
      case '&': cell += "&amp;"; break;
      case '`': cell += "\\`"; break;
      case '*': cell += "\\*"; break;
      case '\\': cell += "\\\\"; break;
      case '\n':
      case '\r': cell += " "; break;
      default: cell += c;
    }
  }
  return cell;
}

void append_row(std::string& out, const std::vector<std::string>& cells) {
  out += "|";
  for (const std::string& cell : cells) out += " " + markdown_cell(cell) + " |";
  out += "\n";
}

void append_header(std::string& out, const std::vector<std::string>& cells) {
  append_row(out, cells);
  out += "|";
  for (std::size_t i = 0; i < cells.size(); ++i) out += " --- |";
  out += "\n";
}

std::string markdown_report(const std::vector<Record>& records, const nlohmann::json& environment) {
  std::string out = fmt::format("**{}**\n", verdict_line(records));
  append_failures(out, records);
  out += "\n## Kernels and suites\n\n";
  append_header(out, table_header());
  for (const TableRow& row : table(records)) append_row(out, table_cells(row));
  out += "\n\"worst used\": largest part of the tolerance that one element used; above 1 it is outside.\n";
  if (const auto rows = tightness(records); !rows.empty()) {
    out += "\n## How tight\n\nPer kernel, output and level, over the judged cases. Bit-equal: to the level's rounded answer.\n\n";
    append_header(out, tightness_header());
    for (const Tightness& row : rows) append_row(out, tightness_cells(row));
  }
  if (const auto groups = warnings(records); !groups.empty()) {
    out += "\n## Warnings\n\nEvidence, not failures.\n\n";
    for (const auto& [text, count] : groups) out += fmt::format("- {} ({} records)\n", markdown_cell(text), count);
  }
  append_not_judged(out, records);
  if (const auto counts = detection(records); !counts.empty()) {
    out += "\n## What this run could have seen\n\n";
    append_header(out, {"known-wrong output", "rejected", "of judged cases where it differs"});
    for (const auto& [name, count] : counts)
      append_row(out, {name, fmt::format("{}", count.first), fmt::format("{}", count.second)});
  }
  if (const auto counts = assumptions(records); !counts.empty()) {
    out += "\n## Assumptions\n\n";
    for (const auto& [text, count] : counts) out += fmt::format("- {} ({} records)\n", markdown_cell(text), count);
  }
  out += "\n## Environment\n\n";
  append_header(out, {"what", "value"});
  for (const auto& [name, value] : environment_lines(environment)) append_row(out, {name, value});
  return out;
}

}  // namespace assay

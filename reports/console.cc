// The report for a terminal: aligned columns and indented lists.
#include "reports/console.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/view.h"

namespace assay {

namespace {

/// Columns in which every row has 0 are left out, except clean and finding; the verdict line has left them out too.
void append_table(std::string& out, const std::vector<Record>& records) {
  std::vector<std::vector<std::string>> lines = {table_header()};
  for (const TableRow& row : table(records)) lines.push_back(table_cells(row));
  constexpr std::size_t kTextColumns = 2, kAlwaysShown = 5;
  std::vector<std::size_t> width(lines[0].size(), 0);
  std::vector<bool> shown(lines[0].size(), false);
  for (std::size_t i = 0; i < width.size(); ++i) {
    shown[i] = i < kAlwaysShown;
    for (std::size_t row = 0; row < lines.size(); ++row) {
      width[i] = std::max(width[i], lines[row][i].size());
      if (row > 0 && lines[row][i] != "0") shown[i] = true;
    }
  }
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i)
      if (shown[i])
        text +=
            i < kTextColumns ? fmt::format("{:<{}}  ", line[i], width[i]) : fmt::format("{:>{}}  ", line[i], width[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
}

void append_failures(std::string& out, const std::vector<Record>& records, std::size_t examples) {
  for (const Group& group : failures(records)) {
    const std::string mode = group.kind == CaseVerdict::kFinding ? group.cause + ", " : std::string();
    out += fmt::format("\n{} in {}: {}{} {}\n", verdict_name(group.kind), group.kernel, mode, group.records.size(),
                       group.records.size() == 1 ? "case" : "cases");
    const std::size_t shown = std::min(examples, group.records.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const Record& record = *group.records[i];
      out += fmt::format("  {}\n", verdict_text(record));
      if (const std::string worst = describe_worst(record); !worst.empty()) out += fmt::format("    {}\n", worst);
      out += fmt::format("    {}\n", repro_command(record));
    }
    if (shown < group.records.size()) out += fmt::format("  and {} more\n", group.records.size() - shown);
  }
}

}  // namespace

std::string console_report(const std::vector<Record>& records, int examples) {
  std::string out = verdict_line(records) + "\n\n";
  append_table(out, records);
  append_failures(out, records, static_cast<std::size_t>(std::max(examples, 1)));
  if (const auto groups = warnings(records); !groups.empty()) {
    out += "\nwarnings (evidence, not failures), with the first of each kind:\n";
    for (const auto& [text, count] : groups) out += fmt::format("  {:>5} {}\n", count, text);
  }
  if (const auto groups = not_judged(records); !groups.empty()) {
    out += "\nnot judged, with the reason of the first of each kind:\n";
    for (const Group& group : groups)
      out += fmt::format("  {:>5} {}: {}\n", group.records.size(), verdict_name(group.kind),
                         verdict_text(*group.records.front()));
  }
  if (const auto counts = detection(records); !counts.empty()) {
    out +=
        "\nknown-wrong outputs these cases would have rejected (of the judged cases where each differs from the "
        "truth):\n";
    for (const auto& [name, count] : counts) out += fmt::format("  {:<24} {} of {}\n", name, count.first, count.second);
  }
  return out;
}

}  // namespace assay

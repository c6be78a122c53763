// The tables of `assay mutants`: one builder, printed as aligned text or as Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/mutants_report.h"
#include "failure_catalog/judges/judge.h"

namespace assay {
namespace {

struct Table {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

std::string share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-" : fmt::format("{}/{}", part, whole);
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string votes(const std::map<std::string, Votes>& all, std::string_view judge) {
  const auto at = all.find(std::string(judge));
  return at == all.end() ? "-" : share(at->second.killed, at->second.cases);
}

Table mutant_table(const KillMatrix& matrix) {
  Table table{
      "What kills each mutant: the weakest level, cases by their weakest level, and foreign judges on their own inputs "
      "/ on our suites",
      {"mutant", "mode", "weakest"},
      {}};
  for (const std::string_view level : kKillLevels) table.head.emplace_back(level);
  for (const char* column : {"cases", "changed", "warn", "error"}) table.head.emplace_back(column);
  for (const Judge* judge : all_judges()) table.head.emplace_back(judge->name);
  for (const MutantResult& m : matrix.mutants) {
    const std::optional<KillLevel> weakest = m.weakest();
    std::vector<std::string> row{m.mutant.name, m.mutant.expects.empty() ? "-" : m.mutant.expects,
                                 weakest ? std::string(kill_level_name(*weakest)) : "SURVIVES"};
    for (const int killed : m.killed) row.push_back(killed == 0 ? "." : std::to_string(killed));
    row.insert(row.end(), {std::to_string(m.cases), std::to_string(m.changed), share(m.warned, m.looked_at),
                           m.mutant.op == "attention" ? fmt::format("{:.2g}", m.largest_error) : "-"});
    for (const Judge* judge : all_judges())
      row.push_back(votes(m.on_own, judge->name) + " " + votes(m.on_suites, judge->name));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// A mutant counts as killed by a rule on some inputs if the rule rejects one of its runs there.
struct Killed {
  int mutants = 0, killed = 0;
};
Killed killed(const KillMatrix& matrix, std::map<std::string, Votes> MutantResult::*votes, const std::string& judge) {
  Killed sum;
  for (const MutantResult& m : matrix.mutants) {
    const auto at = (m.*votes).find(judge);
    if (at == (m.*votes).end() || at->second.cases == 0) continue;
    ++sum.mutants;
    sum.killed += at->second.killed > 0;
  }
  return sum;
}

Table judge_table(const MutantsReport& report) {
  Table table{"Mutants killed by each rule, and its alarms on correct kernels",
              {"rule", "mutants killed on its inputs", "assay's on its inputs", "mutants killed on our suites",
               "false alarms (runs)", "false alarms (cases)"},
              {}};
  const auto cell = [](const Killed& k) { return share(k.killed, k.mutants); };
  const auto row = [&](const std::string& name, const std::string& own, const std::string& ours,
                       const std::string& suites) {
    std::vector<std::string> cells{name, own, ours, suites, "-", "-"};
    if (report.alarms && report.alarms->rules.contains(name)) {
      const Alarms& a = report.alarms->rules.at(name);
      cells[4] = fmt::format("{} ({})", share(a.alarms, a.runs), percent(a.alarms, a.runs));
      cells[5] = fmt::format("{} ({})", share(a.cases_alarmed, a.cases), percent(a.cases_alarmed, a.cases));
      if (a.alarms == 0 && a.cases > 0)
        cells[5] += fmt::format(", below {:.2g} % at 95 %", 300.0 / static_cast<double>(a.cases));
    }
    table.rows.push_back(std::move(cells));
  };
  std::string ours = "-";
  if (report.matrix)
    ours = share(static_cast<std::int64_t>(report.matrix->mutants.size() - survivors(*report.matrix).size()),
                 static_cast<std::int64_t>(report.matrix->mutants.size()));
  row("assay", "-", "-", ours);
  for (const Judge* judge : all_judges()) {
    const std::string name(judge->name);
    if (report.matrix)
      row(name, cell(killed(*report.matrix, &MutantResult::on_own, name)),
          cell(killed(*report.matrix, &MutantResult::ours_on_own, name)),
          cell(killed(*report.matrix, &MutantResult::on_suites, name)));
    else
      row(name, "-", "-", "-");
  }
  return table;
}

Table confusion_table(const Confusion& c) {
  Table table{
      "Failing cases of each planted mode, by the mode named", {"planted", "failures", "named first", "others"}, {}};
  for (const auto& [planted, named] : c.named) {
    int all = 0, own = 0;
    std::string others;
    for (const auto& [mode, count] : named) {
      all += count;
      if (mode == planted)
        own = count;
      else
        others += fmt::format("{}{} {}", others.empty() ? "" : ", ", mode.empty() ? "unclassified" : mode, count);
    }
    table.rows.push_back({planted, std::to_string(all), std::to_string(own), others.empty() ? "-" : others});
  }
  return table;
}

std::string aligned(const Table& table) {
  std::vector<std::size_t> width(table.head.size(), 0);
  const auto measure = [&](const std::vector<std::string>& row) {
    for (std::size_t n = 0; n < row.size(); ++n) width[n] = std::max(width[n], row[n].size());
  };
  measure(table.head);
  for (const auto& row : table.rows) measure(row);
  std::string text = table.title + "\n";
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t n = 0; n < row.size(); ++n) line += fmt::format("{:<{}}  ", row[n], width[n]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add(table.head);
  for (const auto& row : table.rows) add(row);
  return text + "\n";
}

std::string marked_down(const Table& table) {
  std::string text = "## " + table.title + "\n\n";
  const auto add = [&](const std::vector<std::string>& row) { text += fmt::format("| {} |\n", fmt::join(row, " | ")); };
  add(table.head);
  add(std::vector<std::string>(table.head.size(), "---"));
  for (const auto& row : table.rows) add(row);
  return text + "\n";
}

std::string summary(const MutantsReport& report) {
  const MutantCounts n = counts_of(report.mutants);
  std::string text = fmt::format("{} mutants: {} faults at {} sites over {} modes, {} after public reports\n",
                                 n.mutants, n.faults, n.sites, n.modes, n.after_reports);
  if (report.matrix) {
    const KillMatrix& matrix = *report.matrix;
    const std::vector<std::string> alive = survivors(matrix), same = nearly_equivalent(matrix);
    const auto small = std::count_if(matrix.mutants.begin(), matrix.mutants.end(),
                                     [](const MutantResult& m) { return m.largest_error < 1e-2; });
    text += fmt::format("largest error below 1e-2 on the judges' inputs: {} of {}\n", small, matrix.mutants.size());
    text += fmt::format("survivors: {}\n", alive.empty() ? "none" : fmt::format("{}", fmt::join(alive, ", ")));
    if (!same.empty()) text += fmt::format("change bits on fewer than 3 cases: {}\n", fmt::join(same, ", "));
    if (matrix.left_out > 0) text += fmt::format("the budget left {} pieces of work out\n", matrix.left_out);
  }
  if (report.alarms)
    text += fmt::format(
        "correct kernels on {} distinct adversarial cases: {} clean, {} out of range, {} uncertain, {} vacuous, {} "
        "skipped\n",
        report.alarms->cases, report.alarms->clean, report.alarms->out_of_range, report.alarms->uncertain,
        report.alarms->vacuous, report.alarms->skipped);
  if (report.confusion)
    text += fmt::format(
        "confusion: the planted mode is named first in {} of {} failing cases ({}), among the rivals in {} more; {} "
        "unclassified\n",
        report.confusion->first, report.confusion->failures,
        percent(report.confusion->first, report.confusion->failures), report.confusion->rival,
        report.confusion->unclassified);
  return text;
}

template <class Print>
std::string tables(const MutantsReport& report, Print&& print) {
  std::string text;
  if (report.matrix) text += print(mutant_table(*report.matrix));
  if (report.matrix || report.alarms) text += print(judge_table(report));
  if (report.confusion) text += print(confusion_table(*report.confusion));
  return text;
}

}  // namespace

std::string mutants_text(const MutantsReport& report) { return tables(report, aligned) + summary(report); }

std::string mutants_markdown(const MutantsReport& report, const nlohmann::json& environment) {
  std::string text = "# Planted faults, our levels and the rules of others\n\n";
  const std::string lines = summary(report);
  for (std::size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1)
    text += "- " + lines.substr(at, end - at) + "\n";
  text += "\n" + tables(report, marked_down) + "## Rules\n\n";
  for (const Judge* judge : all_judges())
    text += fmt::format("- {}: {} ({})\n", judge->name, judge->rule, judge->source);
  const nlohmann::json& build = environment.at("build");
  return text + fmt::format("\nCommit {}, {}.\n", build.at("commit").get<std::string>(),
                            environment.at("date").get<std::string>().substr(0, 10));
}

}  // namespace assay

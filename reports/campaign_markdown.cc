// The Markdown view of a campaign.
#include "reports/campaign_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/markdown.h"
#include "reports/view.h"

namespace assay {
namespace {

std::string list(const std::vector<std::string>& items) { return fmt::format("{}", fmt::join(items, ", ")); }

void append_findings(std::string& out, const CampaignSummary& s) {
  if (s.findings.empty()) return;
  out += "\n## Findings\n\n";
  append_header(out, {"kernel", "signature", "smallest case", "worst error / bound", "times", "known as", "folder"});
  for (const CampaignFinding& f : s.findings)
    append_row(out, {f.kernel, f.signature, f.smallest, short_number(f.worst_used), fmt::format("{}", f.times), f.known,
                     f.folder});
}

void append_quarantine(std::string& out, const CampaignSummary& s) {
  if (s.quarantine.empty()) return;
  out += "\n## Quarantine\n\n";
  append_header(out, {"input", "verdict", "kernels", "ended", "times", "known as"});
  for (const QuarantineEntry& e : s.quarantine)
    append_row(out, {e.name, e.kind, list(e.kernels), e.how, fmt::format("{}", e.times), e.known});
}

void append_list(std::string& out, const std::string& title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  out += "\n## " + title + "\n\n";
  for (const std::string& item : items) out += "- " + markdown_cell(item) + "\n";
}

void append_kernels(std::string& out, const CampaignSummary& s) {
  out += "\n## Kernels\n\n";
  append_header(out, {"kernel", "executions", "regimes reached", "worst error / bound by level and output"});
  for (const auto& [name, kernel] : s.done.kernels) {
    std::vector<std::string> worst;
    for (const auto& [where, used] : kernel.worst) worst.push_back(where + " " + short_number(used));
    append_row(out,
               {name, fmt::format("{}", kernel.executions), fmt::format("{}", kernel.regimes.size()), list(worst)});
  }
}

void append_regimes(std::string& out, const CampaignSummary& s) {
  for (const auto& [op, reached] : s.reached) {
    const auto never = s.never_reached.find(op);
    const std::size_t missing = never == s.never_reached.end() ? 0 : never->second.size();
    out +=
        fmt::format("\n## Regimes of {}\n\n{} reached, {} never reached", markdown_cell(op), reached.size(), missing);
    out += missing > 0 ? ": " + markdown_cell(list(never->second)) + ".\n" : ".\n";
  }
}

}  // namespace

std::string campaign_verdict(const CampaignSummary& s) {
  const auto known = [](const auto& items) {
    return std::count_if(items.begin(), items.end(), [](const auto& item) { return !item.known.empty(); });
  };
  const auto size = [](const auto& items) { return static_cast<std::ptrdiff_t>(items.size()); };
  const int code = exit_code(s);
  std::string line = fmt::format("{}: {} executions in {:.0f} s, {} judged, {} clean", outcome_name(code),
                                 s.done.executions, s.seconds, s.done.judged(), s.done.verdict("clean"));
  const auto count = [&](std::ptrdiff_t n, std::string_view what) {
    if (n > 0) line += fmt::format(", {} {}{}", n, what, n == 1 ? "" : "s");
  };
  count(size(s.findings) - known(s.findings), "finding");
  count(size(s.quarantine) - known(s.quarantine), "crashing or hanging input");
  count(known(s.findings) + known(s.quarantine), "known failure");
  if (!s.passes.empty()) line += fmt::format(", {} not as the ledger says", s.passes.size());
  return line + fmt::format("; exit {}", code);
}

std::string campaign_markdown(const CampaignSummary& s, const nlohmann::json& environment) {
  std::string out = fmt::format("**{}**\n", markdown_cell(campaign_verdict(s)));
  append_findings(out, s);
  append_quarantine(out, s);
  append_list(out, "Not as the ledger says", s.passes);
  append_list(out, "Given up", s.given_up);
  append_kernels(out, s);
  append_regimes(out, s);
  out += "\n## Verdicts\n\n";
  append_header(out, {"verdict", "executions"});
  for (const auto& [name, count] : s.done.verdicts) append_row(out, {name, fmt::format("{}", count)});
  out += "\n## Campaign\n\n";
  append_header(out, {"what", "value"});
  append_row(out, {"command", s.command});
  append_row(out, {"executions per second of an engine",
                   s.done.seconds > 0 ? short_number(static_cast<double>(s.done.executions) / s.done.seconds) : "-"});
  for (const auto& [op, files] : s.corpus) append_row(out, {"corpus of " + op, fmt::format("{} inputs", files)});
  append_row(out, {"restarts after a death", fmt::format("{}", s.restarts)});
  append_row(out, {"torn files removed", fmt::format("{}", s.torn)});
  append_row(out, {"members", fmt::format("{}", s.members)});
  out += "\n## Environment\n\n";
  append_header(out, {"what", "value"});
  for (const auto& [name, value] : environment_lines(environment)) append_row(out, {name, value});
  return out;
}

}  // namespace assay

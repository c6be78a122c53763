// Summing up a campaign's folder.
#include "fuzz/campaign_summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "fuzz/durable_file.h"
#include "fuzz/finding_store.h"
#include "fuzz/quarantine.h"
#include "fuzz/shared_corpus.h"
#include "reports/campaign_markdown.h"
#include "reports/environment.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::vector<CampaignState> states_in(const fs::path& folder) {
  std::vector<fs::path> files{folder / "campaign.json"};
  std::error_code none;
  for (const auto& member : fs::directory_iterator(folder / "members", none))
    files.push_back(member.path() / "campaign.json");
  std::sort(files.begin(), files.end());
  std::vector<CampaignState> states;
  for (const fs::path& file : files)
    if (fs::exists(file)) states.push_back(load_campaign(file));
  return states;
}

}  // namespace

CampaignSummary campaign_summary(const fs::path& folder) {
  CampaignSummary summary;
  std::map<std::string, std::set<std::string>> all, reached;
  const std::vector<CampaignState> states = states_in(folder);
  summary.members = static_cast<std::int64_t>(states.size());
  for (const CampaignState& state : states) {
    summary.command = state.spec.command;
    summary.seconds = std::max(summary.seconds, state.seconds);
    summary.done += state.done;
    summary.restarts += state.restarts;
    summary.torn += state.torn;
    for (const auto& [label, why] : state.given_up) summary.given_up.push_back(label + ": " + why);
    for (const auto& [op, names] : state.regimes) all[op].insert(names.begin(), names.end());
    for (const CampaignKernel& kernel : state.spec.kernels)
      if (const auto at = state.done.kernels.find(kernel.name); at != state.done.kernels.end())
        reached[kernel.op].insert(at->second.regimes.begin(), at->second.regimes.end());
  }
  for (const auto& [op, names] : all) {
    const std::set<std::string>& mine = reached[op];
    summary.reached[op].assign(mine.begin(), mine.end());
    for (const std::string& name : names)
      if (!mine.contains(name)) summary.never_reached[op].push_back(name);
    summary.corpus[op] = corpus_size(folder / "corpus" / op);
  }
  const FindingStore store((folder / "findings").string());
  for (const StoredFinding& found : store.findings())
    summary.findings.push_back({.folder = (folder / "findings" / found.folder).string(),
                                .kernel = found.kernel,
                                .signature = found.signature.slug(),
                                .smallest = found.smallest_line,
                                .worst_used = found.worst_used,
                                .times = found.count,
                                .ended = found.signature.mode == "crash" || found.signature.mode == "hang"});
  summary.quarantine = Quarantine(folder / "quarantine").entries();
  return summary;
}

void mark_known(CampaignSummary& summary, const KnownFailures& ledger) {
  for (const KnownFailure& entry : ledger.entries()) {
    const std::string issue = "#" + std::to_string(entry.issue);
    for (CampaignFinding& finding : summary.findings)
      if (finding.kernel == entry.kernel && finding.signature == entry.signature) finding.known = issue;
    for (QuarantineEntry& input : summary.quarantine) {
      const std::string mode = input.op + (input.kind == "hung" ? "-hang-" : "-crash-");
      if (input.kernels == std::vector{entry.kernel} && entry.signature.starts_with(mode)) input.known = issue;
    }
  }
}

std::string write_summary(const CampaignSummary& summary, const fs::path& folder) {
  const nlohmann::json where = environment();
  const std::string text = to_json(summary, where).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  write_durably((folder / "summary.json").string(), text);
  write_durably((folder / "summary.md").string(), campaign_markdown(summary, where));
  return text;
}

}  // namespace assay

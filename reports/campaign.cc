// CampaignSummary as JSON, and its exit code.
#include "reports/campaign.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

constexpr int kCampaignVersion = 1;

nlohmann::json to_json(const CampaignFinding& finding) {
  return {{"folder", finding.folder},
          {"kernel", finding.kernel},
          {"signature", finding.signature},
          {"smallest", finding.smallest},
          {"worst_used", number_to_json(finding.worst_used)},
          {"times", finding.times},
          {"known", finding.known}};
}

template <class Items>
nlohmann::json array_of(const Items& items) {
  nlohmann::json array = nlohmann::json::array();
  for (const auto& item : items) array.push_back(to_json(item));
  return array;
}

}  // namespace

nlohmann::json to_json(const QuarantineEntry& entry) {
  return {{"name", entry.name},   {"kind", entry.kind},
          {"op", entry.op},       {"kernels", entry.kernels},
          {"how", entry.how},     {"first_seen", entry.first_seen},
          {"times", entry.times}, {"has_input", entry.has_input},
          {"known", entry.known}};
}

QuarantineEntry quarantine_entry_from_json(const JsonField& field) {
  QuarantineEntry entry{.name = field["name"].text(),
                        .kind = field["kind"].text(),
                        .op = field["op"].text(),
                        .kernels = {},
                        .how = field["how"].text(),
                        .first_seen = field["first_seen"].text(),
                        .times = field["times"].integer(),
                        .has_input = field["has_input"].boolean()};
  for (const JsonField& kernel : field["kernels"].elements()) entry.kernels.push_back(kernel.text());
  return entry;
}

int exit_code(const CampaignSummary& s) {
  const auto unknown_finding = [&](bool ended) {
    return std::any_of(s.findings.begin(), s.findings.end(),
                       [&](const CampaignFinding& f) { return f.known.empty() && f.ended == ended; });
  };
  if (unknown_finding(false) || !s.passes.empty()) return 1;
  if (unknown_finding(true) ||
      std::any_of(s.quarantine.begin(), s.quarantine.end(), [](const QuarantineEntry& e) { return e.known.empty(); }))
    return 5;
  return s.done.judged() == 0 ? 6 : 0;
}

nlohmann::json to_json(const CampaignSummary& s, const nlohmann::json& environment) {
  return {{"version", kCampaignVersion},
          {"kind", "campaign"},
          {"environment", environment},
          {"command", s.command},
          {"seconds", s.seconds},
          {"done", to_json(s.done)},
          {"regimes_reached", s.reached},
          {"regimes_never_reached", s.never_reached},
          {"corpus", s.corpus},
          {"findings", array_of(s.findings)},
          {"quarantine", array_of(s.quarantine)},
          {"unexpected_passes", s.passes},
          {"given_up", s.given_up},
          {"restarts", s.restarts},
          {"torn_files_removed", s.torn},
          {"members", s.members},
          {"exit_code", exit_code(s)}};
}

}  // namespace assay

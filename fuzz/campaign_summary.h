// What a campaign came to: its own state, or that of all members of a job array, with findings and quarantine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/campaign_state.h"
#include "fuzz/known_failures.h"
#include "reports/campaign.h"

namespace assay {

/// Reads every campaign.json of the folder (its own and those of members/*), the corpus, the findings and the
/// quarantine. Throws InputError naming file and field.
CampaignSummary campaign_summary(const std::filesystem::path& folder);

/// Names the issue of every finding and quarantined input that the ledger knows. A crash or a hang is known by its
/// kernel and what it is: it has no rows to tell where.
void mark_known(CampaignSummary& summary, const KnownFailures& ledger);

/// Writes summary.json and summary.md in the folder; returns the JSON text.
std::string write_summary(const CampaignSummary& summary, const std::filesystem::path& folder);

}  // namespace assay

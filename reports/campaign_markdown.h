// A campaign's summary in Markdown.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/campaign.h"

namespace assay {

/// The verdict first, then findings, quarantine, what every kernel executed, regimes, environment.
std::string campaign_markdown(const CampaignSummary& summary, const nlohmann::json& environment);

/// "FAIL: 3 findings, 1 known, ...; exit 1": the first line of every view.
std::string campaign_verdict(const CampaignSummary& summary);

}  // namespace assay

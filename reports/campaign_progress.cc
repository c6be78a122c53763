// The progress line of a campaign.
#include "reports/campaign_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace assay {
namespace {

constexpr std::chrono::seconds kBetweenLines{60};

std::string counted(std::int64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", whole / 60);
  if (whole < 172800) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole / 3600 % 24);
}

std::string campaign_line(const CampaignView& view) {
  std::set<std::string> regimes;
  for (const auto& [name, kernel] : view.done.kernels) regimes.insert(kernel.regimes.begin(), kernel.regimes.end());
  const std::string time = view.left < 0 ? duration_text(view.seconds) : duration_text(view.left) + " left";
  std::string line = fmt::format("{}, {} executions, {:.0f}/s, corpus {}, {}, {}", time, view.done.executions,
                                 view.rate, view.corpus, counted(view.findings, "finding", "findings"),
                                 counted(static_cast<std::int64_t>(regimes.size()), "regime", "regimes"));
  if (view.quarantined > 0) line += fmt::format(", {} in quarantine", view.quarantined);
  return line + "; " + view.doing;
}

void CampaignProgress::show(const CampaignView& view, Clock::time_point now) {
  if (line_.visible()) return line_.show(campaign_line(view));
  if (written_ && now - last_ < kBetweenLines) return;
  written_ = true;
  last_ = now;
  std::fputs((campaign_line(view) + "\n").c_str(), stream_);
  std::fflush(stream_);
}

void CampaignProgress::say(const std::string& text) {
  line_.clear();
  std::fputs((text + "\n").c_str(), stream_);
  std::fflush(stream_);
}

}  // namespace assay

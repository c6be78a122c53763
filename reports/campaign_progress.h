// The progress line of a campaign: rewritten in place on a terminal, else a line a minute.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "reports/executions.h"
#include "reports/terminal_line.h"

namespace assay {

/// What a campaign shows while it runs.
struct CampaignView {
  double seconds = 0, left = -1;  ///< spent; left of the budget, negative without one
  Executions done = {};
  double rate = 0;  ///< executions per second, lately
  std::int64_t corpus = 0, findings = 0, quarantined = 0;
  std::string doing = {};  ///< "fuzzing on 4 engines", "merging the corpus of attention"
};

/// "9 min left, 120,345 executions, 812/s, corpus 431, 2 findings, 96 regimes; fuzzing on 2 engines".
std::string campaign_line(const CampaignView& view);

class CampaignProgress {
 public:
  using Clock = std::chrono::steady_clock;
  explicit CampaignProgress(std::FILE* stream = stderr) : stream_(stream), line_(stream) {}

  void show(const CampaignView& view, Clock::time_point now = Clock::now());
  /// A line of its own, above the progress.
  void say(const std::string& text);

 private:
  std::FILE* stream_;
  TerminalLine line_;
  bool written_ = false;
  Clock::time_point last_;
};

/// "45 s", "12 min", "3 h 05 min", "2 d 04 h".
std::string duration_text(double seconds);

}  // namespace assay

// Progress: one line on stderr that is rewritten in place, only if stderr is a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include "reports/record.h"
#include "reports/terminal_line.h"

namespace assay {

/// "[ 120/2000]  12 s, 3 findings  fa2_bf16: attention b=1 ...", cut to `width` columns. Durations in seconds.
std::string progress_line(const Summary& done, std::int64_t total, double seconds, const std::string& current,
                          std::size_t width);

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  /// `total` records are expected. Writes nothing unless `stream` is a terminal.
  explicit Progress(std::int64_t total, std::FILE* stream = stderr, Clock::time_point start = Clock::now());

  /// Shows what is about to run; at most ten times a second.
  void show(const Summary& done, const std::string& current, Clock::time_point now = Clock::now());
  bool visible() const { return line_.visible(); }

 private:
  std::int64_t total_;
  TerminalLine line_;
  Clock::time_point start_, last_;
};

}  // namespace assay

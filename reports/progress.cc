// Progress: the text of the line, and the rate limit.
#include "reports/progress.h"

#include <fmt/format.h>

namespace assay {

namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);

}  // namespace

std::string progress_line(const Summary& done, std::int64_t total, double seconds, const std::string& current,
                          std::size_t width) {
  const std::string all = fmt::format("{}", total);
  std::string line = fmt::format("[{:>{}}/{}] {:>4.0f} s", done.cases, all.size(), all, seconds);
  if (const std::int64_t failed = done.findings + done.unclassified; failed > 0)
    line += fmt::format(", {} {}", failed, failed == 1 ? "failure" : "failures");
  if (const std::int64_t broke = done.crashed + done.hung; broke > 0)
    line += fmt::format(", {} crashed or hung", broke);
  line += "  " + current;
  return line.substr(0, width);
}

Progress::Progress(std::int64_t total, std::FILE* stream, Clock::time_point start)
    : total_(total), line_(stream), start_(start), last_(start - kInterval) {}

void Progress::show(const Summary& done, const std::string& current, Clock::time_point now) {
  if (!visible() || now - last_ < kInterval) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  line_.show(progress_line(done, total_, seconds, current, line_.width()));
}

}  // namespace assay

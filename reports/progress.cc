// Progress: the text of the line, the terminal's width, and the rate limit.
#include "reports/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace assay {

namespace {

constexpr std::size_t kDefaultWidth = 80;
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr const char* kClearLine = "\r\x1b[K";

std::size_t terminal_width(std::FILE* stream) {
  winsize size = {};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : kDefaultWidth;
}

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
    : total_(total), stream_(stream), visible_(isatty(fileno(stream)) == 1), start_(start), last_(start - kInterval) {}

Progress::~Progress() {
  if (!written_) return;
  std::fputs(kClearLine, stream_);
  std::fflush(stream_);
}

void Progress::show(const Summary& done, const std::string& current, Clock::time_point now) {
  if (!visible_) return;
  if (now - last_ < kInterval) return;
  last_ = now;
  written_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // One column is left free: a full last column makes some terminals wrap.
  std::fputs((kClearLine + progress_line(done, total_, seconds, current, terminal_width(stream_) - 1)).c_str(),
             stream_);
  std::fflush(stream_);
}

}  // namespace assay

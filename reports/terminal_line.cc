// TerminalLine by the control sequences that every terminal knows.
#include "reports/terminal_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace assay {
namespace {

constexpr std::size_t kDefaultWidth = 80;
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

TerminalLine::TerminalLine(std::FILE* stream) : stream_(stream), visible_(isatty(fileno(stream)) == 1) {}

TerminalLine::~TerminalLine() { clear(); }

std::size_t TerminalLine::width() const {
  winsize size = {};
  const bool known = ioctl(fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (known ? size.ws_col : kDefaultWidth) - 1;  // a full last column makes some terminals wrap
}

void TerminalLine::show(const std::string& text) {
  if (!visible_) return;
  written_ = true;
  std::fputs((kClearLine + text.substr(0, width())).c_str(), stream_);
  std::fflush(stream_);
}

void TerminalLine::clear() {
  if (!written_) return;
  written_ = false;
  std::fputs(kClearLine, stream_);
  std::fflush(stream_);
}

}  // namespace assay

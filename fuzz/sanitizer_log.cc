// Reading compute-sanitizer's blocks: a headline, then indented lines that say where.
#include "fuzz/sanitizer_log.h"

#include <algorithm>

namespace assay {
namespace {

constexpr std::string_view kMark = "=========";

/// The text behind the mark and one blank, or nothing for a line of the program itself. Indentation stays.
bool marked(std::string_view line, std::string_view& text) {
  if (!line.starts_with(kMark)) return false;
  text = line.substr(kMark.size());
  if (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with('\r') || text.ends_with(' ')) text.remove_suffix(1);
  return true;
}

bool is_headline(std::string_view text) { return !text.empty() && text.front() != ' '; }

/// Lines of the tool about itself or the program.
bool is_banner(std::string_view headline) {
  if (headline.starts_with("Warning: ")) return !headline.starts_with("Warning: Race");
  for (const std::string_view words : {"COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY",
                                       "Target application", "Program hit ", "Error: process"})
    if (headline.starts_with(words)) return true;
  return false;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

/// Indented lines that say where, and not how the host came there.
bool says_where(std::string_view text) {
  return !text.starts_with("Saved host backtrace") && !text.starts_with("Host Frame");
}

/// A headline and its indented lines, up to the host's stack.
SanitizerFinding finding_of(const std::vector<std::string_view>& block) {
  SanitizerFinding finding{std::string(block.front()), {}};
  if (block.size() > 1) finding.place += " " + std::string(block[1]);
  finding.text = finding.place;
  for (std::size_t i = 2; i < block.size(); ++i) finding.text += ", " + std::string(block[i]);
  return finding;
}

void add(const std::vector<std::string_view>& block, std::vector<SanitizerFinding>& findings) {
  if (block.empty()) return;
  SanitizerFinding finding = finding_of(block);
  for (SanitizerFinding& known : findings)
    if (known.place == finding.place) {
      ++known.reports;
      return;
    }
  findings.push_back(std::move(finding));
}

}  // namespace

std::vector<SanitizerFinding> sanitizer_findings(std::string_view log) {
  std::vector<SanitizerFinding> findings;
  std::vector<std::string_view> block;
  bool host = false;  // the host's stack has begun
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    std::string_view text;
    if (marked(log.substr(0, end), text)) {
      if (is_headline(text)) {
        add(block, findings);
        block.clear();
        host = false;
        if (!is_banner(text)) block.push_back(text);
      } else if (text = trimmed(text); !block.empty() && !text.empty()) {
        host = host || !says_where(text);
        if (!host) block.push_back(text);
      }
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  add(block, findings);
  return findings;
}

}  // namespace assay

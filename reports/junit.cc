// The report as JUnit XML: escaping and one element per record.
#include "reports/junit.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/view.h"

namespace assay {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

unsigned byte_at(const std::string& text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

/// Length of the well-formed UTF-8 sequence at i that XML 1.0 allows, or 0.
std::size_t xml_character(const std::string& text, std::size_t i) {
  const unsigned lead = byte_at(text, i);
  if (lead < 0x80) return lead >= 0x20 || lead == '\t' || lead == '\n' || lead == '\r' ? 1 : 0;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || i + length > text.size()) return 0;
  unsigned code = lead & (0xFFU >> (length + 1));
  for (std::size_t j = 1; j < length; ++j) {
    const unsigned next = byte_at(text, i + j);
    if ((next & 0xC0U) != 0x80U) return 0;
    code = (code << 6U) | (next & 0x3FU);
  }
  const bool too_long = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool forbidden = (code >= 0xD800 && code <= 0xDFFF) || code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return too_long || forbidden ? 0 : length;
}

std::string element(const Record& record) {
  const std::string name =
      fmt::format("{} {} used={}", record.kernel, record.case_line, short_number(worst_used(record)));
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.6f}\"", xml_text(record.suite),
                                xml_text(name), record.kernel_seconds + record.oracle_seconds);
  const std::string verdict(verdict_name(record.verdict.kind));
  const std::string message = xml_text(fmt::format("{}: {}", verdict, verdict_text(record)));
  switch (record.verdict.kind) {
    case CaseVerdict::kClean: return out + "/>\n";
    case CaseVerdict::kOutOfRange:
    case CaseVerdict::kVacuous:
    case CaseVerdict::kUncertain:
    case CaseVerdict::kSkipped:
      return out + fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", message);
    case CaseVerdict::kFinding:
    case CaseVerdict::kUnclassified:
    case CaseVerdict::kCrashed:
    case CaseVerdict::kHung: break;
  }
  const bool broke = record.verdict.kind == CaseVerdict::kCrashed || record.verdict.kind == CaseVerdict::kHung;
  const std::string tag = broke ? "error" : "failure";
  const std::string type = record.verdict.kind == CaseVerdict::kFinding ? record.verdict.mode : verdict;
  return out + fmt::format(">\n      <{} type=\"{}\" message=\"{}\">{}</{}>\n    </testcase>\n", tag, xml_text(type),
                           message, xml_text(describe_worst(record) + "\n" + repro_command(record)), tag);
}

}  // namespace

std::string xml_text(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = xml_character(text, i);
    switch (length == 0 ? '\0' : text[i]) {
      case '\0': out += kReplacement; break;
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&apos;"; break;
      case '\n': out += "&#10;"; break;  // an attribute would turn the raw character into a space
      case '\r': out += "&#13;"; break;
      case '\t': out += "&#9;"; break;
      default: out.append(text, i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out;
}

std::string junit_report(const std::vector<Record>& records, const nlohmann::json& environment) {
  const auto counts = [](const Summary& s, double seconds) {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.6f}\"", s.cases,
                       s.findings + s.unclassified, s.crashed + s.hung,
                       s.out_of_range + s.vacuous + s.uncertain + s.skipped, seconds);
  };
  double total_seconds = 0;
  std::string suites;
  for (const TableRow& row : table(records)) {
    double seconds = 0;
    std::string cases;
    for (const Record& record : records) {
      if (record.kernel != row.kernel || record.suite != row.suite) continue;
      seconds += record.kernel_seconds + record.oracle_seconds;
      cases += element(record);
    }
    total_seconds += seconds;
    suites += fmt::format("  <testsuite name=\"{}\" {}>\n    <properties>\n", xml_text(row.suite + "/" + row.kernel),
                          counts(row.summary, seconds));
    for (const auto& [name, value] : environment_lines(environment))
      suites += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", xml_text(name), xml_text(value));
    suites += "    </properties>\n" + cases + "  </testsuite>\n";
  }
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\" {}>\n{}</testsuites>\n",
                     counts(summarize(records), total_seconds), suites);
}

}  // namespace assay

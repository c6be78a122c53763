// What every rendered report shares: the verdict line, the kernel-by-suite table, grouped reasons, findings, detection
// counts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/record.h"

namespace assay {

/// "PASS", "FAIL", "CRASHED" or "NOTHING TESTED": the exit codes 0, 1, 5 and 6 in words.
std::string_view outcome_name(int exit_code);

/// "FAIL: 120 cases, 3 findings, 117 clean; bounds T0; exit 1". Only non-zero counts are listed.
std::string verdict_line(const std::vector<Record>& records);

/// Text as one word of a POSIX shell.
std::string shell_quoted(const std::string& text);

/// The record's own command, else `assay repro '<case>' --kernel <kernel>`, quoted for a POSIX shell.
std::string repro_command(const Record& record);

/// Largest part of the tolerance used by any element of the record's outputs; 0 if nothing was judged, +inf for a wrong
/// class.
double worst_used(const Record& record);
/// The element that fails at the weakest level, or else the one that uses most of T0's tolerance.
ElementReport worst_element(const OutputMeasure& output);
/// The output behind worst_used, or null.
const OutputMeasure* worst_output(const Record& record);
/// "o element 17 (row 3): 0x3f80 = 1, truth 0.5 +- 1e-17, tau 0.004, used 125", or empty if nothing was judged.
std::string describe_worst(const Record& record);
/// The finding's mode and evidence, the other verdicts' reason; never empty.
std::string verdict_text(const Record& record);

/// 0.25 -> "0.25"; 4 significant digits; "inf" and "nan" as such.
std::string short_number(double value);

/// One line of the table.
struct TableRow {
  std::string kernel, suite;
  Summary summary;
  double worst_used = 0;  ///< over the row's judged records (clean, finding, unclassified)
};
/// One row per kernel and suite, in order of first appearance.
std::vector<TableRow> table(const std::vector<Record>& records);
/// The table's header and one cell per column, as text, in the same order.
const std::vector<std::string>& table_header();
std::vector<std::string> table_cells(const TableRow& row);

/// Records that share a kernel and a cause. The cause of a finding is its mode, otherwise the reason with its numbers
/// masked.
struct Group {
  CaseVerdict kind = CaseVerdict::kClean;
  std::string kernel;
  std::string cause;
  std::vector<const Record*> records;  ///< as they came
};
/// Findings, unclassified failures, crashes and hangs by kernel and cause, most records first.
std::vector<Group> failures(const std::vector<Record>& records);
/// Out of range, vacuous, uncertain and skipped records by verdict and cause over all kernels (kernel empty), most
/// first.
std::vector<Group> not_judged(const std::vector<Record>& records);

/// How tight a level was for one output of one kernel, over its judged records.
struct Tightness {
  std::string kernel, role, level;
  std::int64_t records = 0, elements = 0, rejected = 0;
  double median_tau_ulp = 0;  ///< median over records of the median of tau in output ulps
  double bit_equal = 0;       ///< share of elements equal to the level's rounded mid (T0: the rounded truth)
  double worst_used = 0;      ///< over records that did not fail
};
std::vector<Tightness> tightness(const std::vector<Record>& records);
const std::vector<std::string>& tightness_header();
std::vector<std::string> tightness_cells(const Tightness& row);

/// Warnings by kernel and kind (numbers masked): "kernel: the first text of the kind" and how many records have it.
std::vector<std::pair<std::string, std::int64_t>> warnings(const std::vector<Record>& records);

/// How often each known-wrong output was rejected where it applies, over judged records: {rejected, applicable}.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> detection(const std::vector<Record>& records);

/// Every assumption of a judged record with the number of records that rest on it.
std::map<std::string, std::int64_t> assumptions(const std::vector<Record>& records);

/// Environment as "name: value" lines in the document's order; nested members are joined with a dot.
std::vector<std::pair<std::string, std::string>> environment_lines(const nlohmann::json& environment);

}  // namespace assay

// Record: one case's line, environment, arithmetic, measurement and verdict: enough to rerun years later. JSON form.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "failure_catalog/mode.h"
#include "oracle/measure.h"
#include "oracle/op.h"

namespace assay {

enum class CaseVerdict : std::uint8_t {
  kClean, kFinding, kUnclassified, kOutOfRange, kVacuous, kUncertain, kSkipped, kCrashed, kHung
};
std::string_view verdict_name(CaseVerdict verdict);  ///< "clean", "finding", ..., as in the JSON

struct Verdict {
  CaseVerdict kind = CaseVerdict::kClean;
  std::string level;     ///< findings and unclassified failures: "fail_t0", "fail_t1", "fail_t2", or "invariant"
  std::string mode;      ///< findings: the mode's name
  std::string evidence;  ///< findings: what the detector saw
  std::string reason;    ///< out_of_range, skipped, uncertain, vacuous, crashed, hung
  std::optional<Estimate> estimate = std::nullopt;  ///< findings of a mode with a parameter
  std::vector<std::string> rivals = {};  ///< modes that explain the outputs as well and predict the same on this input
};

struct Record {
  std::string suite;
  std::string case_line;
  std::string kernel;
  std::string variant;
  std::string device;                    ///< device kernels: what it ran on
  Arithmetic declared;
  std::string bound_level = "T0";        ///< the highest level that judged an element
  std::optional<Inference> inferred;     ///< structure found in the outputs of a kernel that does not declare it
  std::vector<std::string> warnings;     ///< level `warn`: statistics, or a bound under an inferred structure; never a failure
  Measurement measurement;
  Verdict verdict;
  std::vector<RowFacts> failed_rows;     ///< of a failure: rows with a rejected element; only in memory, like row measures
  std::vector<KnownWrong> known_wrong;
  std::vector<std::string> assumptions;
  std::string repro;                     ///< command that gives this record again; empty: `assay repro`
  std::vector<std::array<std::int32_t, 3>> sampled_rows;  ///< (b, h, i) judged, where not all rows are
  double kernel_seconds = 0, oracle_seconds = 0;
  std::map<std::string, std::string> cells;  ///< coverage cells of the suite generator: recipe, mask, layout, dtype, residue
};

struct Summary {
  std::int64_t cases = 0, clean = 0, findings = 0, unclassified = 0, vacuous = 0, out_of_range = 0, uncertain = 0,
               skipped = 0, crashed = 0, hung = 0;
  std::int64_t warned = 0;  ///< records with warnings, whatever their verdict
};
void add(Summary& summary, const Record& record);
Summary summarize(const std::vector<Record>& records);
/// Exit code of architecture.md: 1 for findings or unclassified, 5 for crashed or hung, 6 if nothing was clean, else 0.
int exit_code(const Summary& summary);

/// 2: verdicts with `estimate` and `rivals`. Documents of version 1 can be read.
inline constexpr int kDocumentVersion = 2, kOldestDocumentVersion = 1;
/// {version, tool, environment, summary, coverage, records}. coverage = {distinct_cases, cells: {cell: {value: {cases
/// (distinct lines), records, clean}}}}. Row vectors of the measurement are left out; non-finite numbers are strings.
nlohmann::json to_json(const std::vector<Record>& records, const nlohmann::json& environment);
nlohmann::json to_json(const Record& record);
nlohmann::json to_json(const Summary& summary);
/// The document as text; bytes that are not UTF-8 (a kernel's own words) become U+FFFD.
std::string json_text(const nlohmann::json& document);
/// Reads a document back for the views. Throws InputError naming the file and field.
std::vector<Record> records_from_json(const nlohmann::json& document, const std::string& file);

}  // namespace assay

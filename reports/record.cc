// Record: verdict names, totals, exit code, and the versioned JSON document both ways.
#include "reports/record.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <nlohmann/json.hpp>

#include "oracle/error.h"
#include "oracle/arithmetic_json.h"
#include "oracle/json_field.h"

namespace assay {

namespace {

constexpr std::array<std::string_view, 9> kVerdictNames = {
    "clean", "finding", "unclassified", "out_of_range", "vacuous", "uncertain", "skipped", "crashed", "hung"};

void put_text(nlohmann::json& out, const char* member, const std::string& text) {
  if (!text.empty()) out[member] = text;
}

nlohmann::json to_json(const Verdict& verdict) {
  nlohmann::json out = {{"kind", verdict_name(verdict.kind)}};
  put_text(out, "level", verdict.level);
  put_text(out, "mode", verdict.mode);
  put_text(out, "evidence", verdict.evidence);
  put_text(out, "reason", verdict.reason);
  if (verdict.estimate)
    out["estimate"] = {{"parameter", verdict.estimate->parameter},
                       {"value", number_to_json(verdict.estimate->value)},
                       {"standard_error", number_to_json(verdict.estimate->standard_error)},
                       {"budget", number_to_json(verdict.estimate->budget)}};
  if (!verdict.rivals.empty()) out["rivals"] = verdict.rivals;
  return out;
}

Verdict verdict_from_json(const JsonField& field) {
  Verdict verdict;
  const std::string kind = field["kind"].text();
  std::size_t i = 0;
  while (i < kVerdictNames.size() && kVerdictNames[i] != kind) ++i;
  if (i == kVerdictNames.size()) field["kind"].fail("a case verdict");
  verdict.kind = static_cast<CaseVerdict>(i);
  verdict.level = field.text_or_empty("level");
  verdict.mode = field.text_or_empty("mode");
  verdict.evidence = field.text_or_empty("evidence");
  verdict.reason = field.text_or_empty("reason");
  if (field.has("estimate")) {
    const JsonField estimate = field["estimate"];
    verdict.estimate = {estimate["parameter"].text(), estimate["value"].number(), estimate["standard_error"].number(),
                        estimate["budget"].number()};
  }
  if (field.has("rivals"))
    for (const JsonField& rival : field["rivals"].elements()) verdict.rivals.push_back(rival.text());
  return verdict;
}

nlohmann::json to_json(const ElementReport& e) {
  return {{"element", e.element},
          {"at", e.at},
          {"row", e.row},
          {"code", fmt::format("{:#x}", e.code)},
          {"value", number_to_json(e.value)},
          {"mid", number_to_json(e.mid)},
          {"radius", number_to_json(e.radius)},
          {"tau", number_to_json(e.tau)},
          {"error", number_to_json(e.error)},
          {"used", number_to_json(e.used)},
          {"rejected", e.rejected}};
}

ElementReport element_from_json(const JsonField& field) {
  ElementReport e;
  e.element = field["element"].integer();
  e.at = field["at"].integer();
  e.row = field["row"].small_integer();
  e.code = field["code"].hex();
  e.value = field["value"].number();
  e.mid = field["mid"].number();
  e.radius = field["radius"].number();
  e.tau = field["tau"].number();
  e.error = field["error"].number();
  e.used = field["used"].number();
  e.rejected = field["rejected"].boolean();
  return e;
}

nlohmann::json to_json(const TierMeasure& t) {
  return {{"level", level_name(t.level)},
          {"judged", t.judged},
          {"rejected", t.rejected},
          {"bit_equal", t.bit_equal},
          {"median_tau", number_to_json(t.median_tau)},
          {"median_tau_ulp", number_to_json(t.median_tau_ulp)},
          {"gain", number_to_json(t.gain)},
          {"gain_error", number_to_json(t.gain_error)},
          {"gain_budget", number_to_json(t.gain_budget)},
          {"worst", to_json(t.worst)}};
}

TierMeasure tier_from_json(const JsonField& field) {
  TierMeasure t;
  const std::string level = field["level"].text();
  t.level = level == level_name(Level::kT1) ? Level::kT1 : Level::kT2;
  if (level != level_name(t.level)) field["level"].fail("T1 or T2");
  t.judged = field["judged"].integer();
  t.rejected = field["rejected"].integer();
  t.bit_equal = field["bit_equal"].integer();
  t.median_tau = field["median_tau"].number();
  t.median_tau_ulp = field["median_tau_ulp"].number();
  t.gain = field["gain"].number();
  t.gain_error = field["gain_error"].number();
  t.gain_budget = field["gain_budget"].number();
  t.worst = element_from_json(field["worst"]);
  return t;
}

nlohmann::json to_json(const Inference& inferred) {
  return {{"arithmetic", to_json(inferred.arithmetic)},
          {"structure", inferred.structure},
          {"bit_equal", number_to_json(inferred.bit_equal)},
          {"runner_up", number_to_json(inferred.runner_up)},
          {"rounded_truth", number_to_json(inferred.rounded_truth)}};
}

Inference inference_from_json(const JsonField& field) {
  return {.arithmetic = arithmetic_from_json(field["arithmetic"]),
          .structure = field["structure"].text(),
          .bit_equal = field["bit_equal"].number(),
          .runner_up = field["runner_up"].number(),
          .rounded_truth = field["rounded_truth"].number()};
}

nlohmann::json to_json(const OutputMeasure& o) {
  nlohmann::json tiers = nlohmann::json::array();
  for (const TierMeasure& tier : o.tiers) tiers.push_back(to_json(tier));
  return {{"role", o.role},
          {"judged", o.judged},
          {"rejected", o.rejected},
          {"unconstrained", o.unconstrained},
          {"uncertain", o.uncertain},
          {"nan", o.nan},
          {"inf", o.inf},
          {"zero", o.zero},
          {"canary", o.canary},
          {"bit_equal", o.bit_equal},
          {"max_error", number_to_json(o.max_error)},
          {"max_ulp_error", number_to_json(o.max_ulp_error)},
          {"median_tau", number_to_json(o.median_tau)},
          {"median_tau_ulp", number_to_json(o.median_tau_ulp)},
          {"tiers", std::move(tiers)},
          {"worst", to_json(o.worst)}};
}

OutputMeasure output_from_json(const JsonField& field) {
  OutputMeasure o;
  o.role = field["role"].text();
  o.judged = field["judged"].integer();
  o.rejected = field["rejected"].integer();
  o.unconstrained = field["unconstrained"].integer();
  o.uncertain = field["uncertain"].integer();
  o.nan = field["nan"].integer();
  o.inf = field["inf"].integer();
  o.zero = field["zero"].integer();
  o.canary = field["canary"].integer();
  o.bit_equal = field["bit_equal"].integer();
  o.max_error = field["max_error"].number();
  o.max_ulp_error = field["max_ulp_error"].number();
  o.median_tau = field["median_tau"].number();
  if (field.has("median_tau_ulp")) o.median_tau_ulp = field["median_tau_ulp"].number();
  if (field.has("tiers"))
    for (const JsonField& tier : field["tiers"].elements()) o.tiers.push_back(tier_from_json(tier));
  o.worst = element_from_json(field["worst"]);
  return o;
}

nlohmann::json to_json(const Measurement& m) {
  nlohmann::json outputs = nlohmann::json::array();
  for (const OutputMeasure& output : m.outputs) outputs.push_back(to_json(output));
  nlohmann::json out = {{"outputs", std::move(outputs)},
                        {"rows", m.rows},
                        {"rows_out_of_range", m.rows_out_of_range},
                        {"rows_empty", m.rows_empty},
                        {"rows_escalated", m.rows_escalated}};
  put_text(out, "out_of_range", m.out_of_range);
  return out;
}

Measurement measurement_from_json(const JsonField& field) {
  Measurement m;
  for (const JsonField& output : field["outputs"].elements()) m.outputs.push_back(output_from_json(output));
  m.rows = field["rows"].integer();
  m.rows_out_of_range = field["rows_out_of_range"].integer();
  m.rows_empty = field["rows_empty"].integer();
  m.rows_escalated = field["rows_escalated"].integer();
  m.out_of_range = field.text_or_empty("out_of_range");
  return m;
}

Record record_from_json(const JsonField& field) {
  Record record;
  record.suite = field["suite"].text();
  record.case_line = field["case"].text();
  record.kernel = field["kernel"].text();
  record.variant = field.text_or_empty("variant");
  record.device = field.text_or_empty("device");
  record.declared = arithmetic_from_json(field["declared"]);
  record.bound_level = field["bound_level"].text();
  record.measurement = measurement_from_json(field["measurement"]);
  record.verdict = verdict_from_json(field["verdict"]);
  for (const JsonField& wrong : field["known_wrong"].elements())
    record.known_wrong.push_back({wrong["name"].text(), wrong["applicable"].boolean(), wrong["rejected"].boolean()});
  for (const JsonField& assumption : field["assumptions"].elements()) record.assumptions.push_back(assumption.text());
  record.repro = field.text_or_empty("repro");
  if (field.has("inferred")) record.inferred = inference_from_json(field["inferred"]);
  if (field.has("warnings"))
    for (const JsonField& warning : field["warnings"].elements()) record.warnings.push_back(warning.text());
  if (field.has("sampled_rows"))
    for (const JsonField& row : field["sampled_rows"].elements()) {
      const std::vector<JsonField> index = row.elements();
      if (index.size() != 3) row.fail("[batch, head, query]");
      record.sampled_rows.push_back({index[0].small_integer(), index[1].small_integer(), index[2].small_integer()});
    }
  record.kernel_seconds = field["kernel_seconds"].number();
  record.oracle_seconds = field["oracle_seconds"].number();
  for (const auto& [cell, value] : field["cells"].members()) record.cells[cell] = value.text();
  return record;
}

struct CellCount {
  std::set<std::string_view> lines;
  std::int64_t records = 0, clean = 0;
};

nlohmann::json coverage(const std::vector<Record>& records) {
  std::set<std::string_view> lines;
  std::map<std::string_view, std::map<std::string_view, CellCount>> cells;
  for (const Record& record : records) {
    if (!record.case_line.empty()) lines.insert(record.case_line);
    for (const auto& [cell, value] : record.cells) {
      CellCount& count = cells[cell][value];
      count.lines.insert(record.case_line);
      ++count.records;
      if (record.verdict.kind == CaseVerdict::kClean) ++count.clean;
    }
  }
  nlohmann::json out = {{"distinct_cases", lines.size()}, {"cells", nlohmann::json::object()}};
  for (const auto& [cell, values] : cells)
    for (const auto& [value, count] : values)
      out["cells"][std::string(cell)][std::string(value)] = {
          {"cases", count.lines.size()}, {"records", count.records}, {"clean", count.clean}};
  return out;
}

}  // namespace

std::string_view verdict_name(CaseVerdict verdict) { return kVerdictNames.at(static_cast<std::size_t>(verdict)); }

void add(Summary& summary, const Record& record) {
  ++summary.cases;
  summary.warned += !record.warnings.empty();
  switch (record.verdict.kind) {
    case CaseVerdict::kClean: ++summary.clean; break;
    case CaseVerdict::kFinding: ++summary.findings; break;
    case CaseVerdict::kUnclassified: ++summary.unclassified; break;
    case CaseVerdict::kOutOfRange: ++summary.out_of_range; break;
    case CaseVerdict::kVacuous: ++summary.vacuous; break;
    case CaseVerdict::kUncertain: ++summary.uncertain; break;
    case CaseVerdict::kSkipped: ++summary.skipped; break;
    case CaseVerdict::kCrashed: ++summary.crashed; break;
    case CaseVerdict::kHung: ++summary.hung; break;
  }
}

Summary summarize(const std::vector<Record>& records) {
  Summary summary;
  for (const Record& record : records) add(summary, record);
  return summary;
}

int exit_code(const Summary& summary) {
  if (summary.findings + summary.unclassified > 0) return 1;
  if (summary.crashed + summary.hung > 0) return 5;
  return summary.clean == 0 ? 6 : 0;
}

nlohmann::json to_json(const Summary& s) {
  return {{"cases", s.cases},         {"clean", s.clean},
          {"findings", s.findings},   {"unclassified", s.unclassified},
          {"vacuous", s.vacuous},     {"out_of_range", s.out_of_range},
          {"uncertain", s.uncertain}, {"skipped", s.skipped},
          {"crashed", s.crashed},     {"hung", s.hung},
          {"warned", s.warned}};
}

nlohmann::json to_json(const Record& record) {
  nlohmann::json known_wrong = nlohmann::json::array();
  for (const KnownWrong& wrong : record.known_wrong)
    known_wrong.push_back({{"name", wrong.name}, {"applicable", wrong.applicable}, {"rejected", wrong.rejected}});
  nlohmann::json out = {{"suite", record.suite},
                        {"case", record.case_line},
                        {"kernel", record.kernel},
                        {"declared", to_json(record.declared)},
                        {"bound_level", record.bound_level},
                        {"measurement", to_json(record.measurement)},
                        {"verdict", to_json(record.verdict)},
                        {"known_wrong", std::move(known_wrong)},
                        {"assumptions", record.assumptions},
                        {"kernel_seconds", number_to_json(record.kernel_seconds)},
                        {"oracle_seconds", number_to_json(record.oracle_seconds)},
                        {"cells", record.cells}};
  put_text(out, "variant", record.variant);
  put_text(out, "device", record.device);
  put_text(out, "repro", record.repro);
  if (record.inferred) out["inferred"] = to_json(*record.inferred);
  if (!record.warnings.empty()) out["warnings"] = record.warnings;
  if (!record.sampled_rows.empty()) out["sampled_rows"] = record.sampled_rows;
  return out;
}

nlohmann::json to_json(const std::vector<Record>& records, const nlohmann::json& environment) {
  nlohmann::json list = nlohmann::json::array();
  for (const Record& record : records) list.push_back(to_json(record));
  return {{"version", kDocumentVersion},   {"tool", "assay"},
          {"environment", environment},    {"summary", to_json(summarize(records))},
          {"coverage", coverage(records)}, {"records", std::move(list)}};
}

std::string json_text(const nlohmann::json& document) {
  return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::vector<Record> records_from_json(const nlohmann::json& document, const std::string& file) {
  const JsonField root(document, "", file);
  const JsonField version = root["version"];
  if (version.integer() < kOldestDocumentVersion || version.integer() > kDocumentVersion)
    version.fail(fmt::format("{} to {}", kOldestDocumentVersion, kDocumentVersion));
  std::vector<Record> records;
  for (const JsonField& record : root["records"].elements()) records.push_back(record_from_json(record));
  return records;
}

}  // namespace assay

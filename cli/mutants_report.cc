// Counts over the matrix, and its JSON.
#include "cli/mutants_report.h"

#include <cmath>
#include <set>

#include "failure_catalog/judges/judge.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(x > 0 ? "inf" : "nan"); }

Json votes_json(const std::map<std::string, Votes>& votes) {
  Json json = Json::object();
  for (const auto& [name, v] : votes)
    json[name] = {{"cases", v.cases}, {"killed", v.killed}, {"sound_rejected", v.alarms}};
  return json;
}

Json matrix_json(const KillMatrix& matrix) {
  Json rows = Json::array();
  for (const MutantResult& m : matrix.mutants) {
    Json levels = Json::object();
    for (std::size_t at = 0; at < kKillLevelCount; ++at)
      if (m.killed[at] > 0) levels[std::string(kKillLevels[at])] = {{"cases", m.killed[at]}, {"first", m.first[at]}};
    const std::optional<KillLevel> weakest = m.weakest();
    rows.push_back({{"mutant", m.mutant.name},
                    {"base", m.mutant.base},
                    {"fault", m.mutant.fault},
                    {"mode", m.mutant.expects},
                    {"report", m.mutant.report},
                    {"weakest", weakest ? Json(kill_level_name(*weakest)) : Json()},
                    {"cases", m.cases},
                    {"changed", m.changed},
                    {"killed_by_level", levels},
                    {"warned", m.warned},
                    {"looked_at_for_warnings", m.looked_at},
                    {"largest_error", number(m.largest_error)},
                    {"judges_on_our_suites", votes_json(m.on_suites)},
                    {"judges_on_their_inputs", votes_json(m.on_own)},
                    {"assay_on_their_inputs", votes_json(m.ours_on_own)}});
  }
  return {{"mutants", rows},
          {"survivors", survivors(matrix)},
          {"change_bits_on_fewer_than_3_cases", nearly_equivalent(matrix)},
          {"work_left_out", matrix.left_out}};
}

Json alarms_json(const FalseAlarms& alarms) {
  Json rules = Json::object();
  for (const auto& [name, a] : alarms.rules) {
    rules[name] = {{"runs", a.runs},
                   {"alarms", a.alarms},
                   {"cases", a.cases},
                   {"cases_alarmed", a.cases_alarmed},
                   {"first", a.first}};
    if (a.alarms == 0 && a.cases > 0) rules[name]["upper_95"] = 3.0 / static_cast<double>(a.cases);
  }
  return {{"cases", alarms.cases},         {"rules", rules},
          {"clean", alarms.clean},         {"out_of_range", alarms.out_of_range},
          {"uncertain", alarms.uncertain}, {"vacuous", alarms.vacuous},
          {"skipped", alarms.skipped},     {"cases_left_out", alarms.left_out}};
}

Json confusion_json(const Confusion& c) {
  Json confused = Json::array();
  for (const Confused& one : c.confused)
    confused.push_back({{"kernel", one.kernel},
                        {"planted", one.planted},
                        {"named", one.named},
                        {"planted_is_rival", one.rival},
                        {"case", one.case_line},
                        {"evidence", one.evidence}});
  return {{"failures", c.failures},
          {"planted_first", c.first},
          {"planted_among_rivals", c.rival},
          {"unclassified", c.unclassified},
          {"named", c.named},
          {"confused", confused},
          {"mutants_with_fewer_failures", c.quiet},
          {"mutants_left_out", c.left_out}};
}

}  // namespace

MutantCounts counts_of(const std::vector<KernelIdentity>& mutants) {
  std::set<std::string> faults, sites, modes, reported;
  for (const KernelIdentity& m : mutants) {
    faults.insert(m.base + " " + m.fault);
    sites.insert(m.fault);
    if (!m.expects.empty()) modes.insert(m.expects);
    if (!m.report.empty()) reported.insert(m.base + " " + m.fault);
  }
  return {mutants.size(), faults.size(), sites.size(), modes.size(), reported.size()};
}

std::vector<std::string> nearly_equivalent(const KillMatrix& matrix) {
  std::vector<std::string> names;
  for (const MutantResult& m : matrix.mutants)
    if (m.changed < 3) names.push_back(m.mutant.name);
  return names;
}

std::vector<std::string> survivors(const KillMatrix& matrix) {
  std::vector<std::string> names;
  for (const MutantResult& m : matrix.mutants)
    if (!m.weakest()) names.push_back(m.mutant.name);
  return names;
}

Json mutants_json(const MutantsReport& report, const nlohmann::json& environment) {
  const MutantCounts n = counts_of(report.mutants);
  Json judges = Json::array();
  for (const Judge* judge : all_judges())
    judges.push_back(
        {{"name", judge->name}, {"source", judge->source}, {"rule", judge->rule}, {"inputs", judge->inputs}});
  Json document{{"version", 1},
                {"tool", "assay mutants"},
                {"environment", environment},
                {"counts",
                 {{"mutants", n.mutants},
                  {"faults", n.faults},
                  {"sites", n.sites},
                  {"modes", n.modes},
                  {"after_reports", n.after_reports}}},
                {"judges", judges}};
  if (report.matrix) document["matrix"] = matrix_json(*report.matrix);
  if (report.alarms) document["false_alarms"] = alarms_json(*report.alarms);
  if (report.confusion) document["confusion"] = confusion_json(*report.confusion);
  return document;
}

}  // namespace assay

// `assay tolerance --json`: everything the text has, and the numbers behind it.
#include <cmath>
#include <nlohmann/json.hpp>

#include "oracle/arithmetic_json.h"
#include "reports/tolerance.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinities: strings, as in records.
Json finite(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? Json("nan") : Json(value > 0 ? "inf" : "-inf");
}

Json place(const OutputReport& output, std::int64_t at) {
  return at < 0 ? Json() : Json(index_of(output.layout, output.element[static_cast<std::size_t>(at)]));
}

Json to_json(const Spread& s, const OutputReport& output) {
  if (s.count == 0) return {{"count", 0}};
  return {{"count", s.count},
          {"min", s.min},
          {"median", s.median},
          {"max", s.max},
          {"min_at", place(output, s.at_min)},
          {"max_at", place(output, s.at_max)}};
}

Json to_json(const OutputReport& output) {
  Json levels = Json::array(), terms = Json::array();
  for (const LevelReport& level : output.levels)
    levels.push_back({{"name", level.name},
                      {"tau", to_json(level.tau, output)},
                      {"tau_ulp", to_json(level.ulps, output)},
                      {"unbounded", level.unbounded}});
  for (const TermReport& term : output.terms)
    terms.push_back(
        {{"name", term.name}, {"size", to_json(term.size, output)}, {"median_share_of_tau", finite(term.share)}});
  return {{"role", output.layout.role},
          {"format", info(output.layout.format).name},
          {"judged", output.element.size()},
          {"numbers", output.numbers},
          {"magnitude", to_json(output.magnitude, output)},
          {"levels", levels},
          {"terms", terms},
          {"radius", to_json(output.radius, output)},
          {"largest_radius_share_of_tau", finite(output.radius_share)}};
}

Json to_json(const Floor& floor, const OutputReport& output) {
  switch (floor.state) {
    case Floor::State::kNotApplicable: return {{"output", output.layout.role}, {"state", "not_applicable"}};
    case Floor::State::kNotVisible: return {{"output", output.layout.role}, {"state", "not_visible"}};
    case Floor::State::kVisible: break;
  }
  Json out{{"output", output.layout.role},
           {"state", "visible"},
           {"size", floor.size},
           {"accepted", floor.accepted},
           {"first_at", place(output, floor.at)}};
  if (!floor.site.what.empty()) out["site"] = floor.site.what;
  if (std::isfinite(floor.site.weight)) {
    out["weight"] = floor.site.weight;
    out["smallest_weight_seen"] = floor.site.weight * floor.size;
  }
  return out;
}

Json to_json(const FaultFloors& report, const ToleranceReport& all) {
  Json levels = Json::array();
  for (std::size_t level = 0; level < report.floors.size(); ++level) {
    Json outputs = Json::array();
    for (std::size_t k = 0; k < all.outputs.size(); ++k)
      outputs.push_back(to_json(report.floors[level][k], all.outputs[k]));
    levels.push_back({{"level", all.levels[level]}, {"outputs", outputs}});
  }
  return {
      {"fault", report.fault.name}, {"unit", report.fault.unit}, {"largest", report.fault.largest}, {"floors", levels}};
}

Json to_json(const RuleReport& report, const ToleranceReport& all) {
  Json outputs = Json::array(), wrong = Json::array();
  for (std::size_t k = 0; k < all.outputs.size(); ++k) {
    const OutputReport& output = all.outputs[k];
    Json looseness = Json::array();
    for (std::size_t level = 0; level < report.outputs[k].looseness.size(); ++level)
      looseness.push_back(
          {{"level", output.levels[level].name}, {"times_tau", to_json(report.outputs[k].looseness[level], output)}});
    outputs.push_back({{"output", output.layout.role},
                       {"looseness", looseness},
                       {"numbers", report.outputs[k].numbers},
                       {"legal_values_outside", report.outputs[k].legal_outside}});
  }
  for (const WrongReport& w : report.wrong) {
    Json rejects = Json::object(), passes = Json::object();
    for (std::size_t k = 0; k < all.outputs.size(); ++k) {
      rejects[all.outputs[k].layout.role] = static_cast<bool>(w.bound_rejects[k]);
      passes[all.outputs[k].layout.role] = static_cast<bool>(w.rule_passes[k]);
    }
    wrong.push_back({{"name", w.name}, {"bound_rejects", rejects}, {"tolerance_passes", passes}});
  }
  return {{"atol", report.rule.atol}, {"rtol", report.rule.rtol}, {"outputs", outputs}, {"wrong_outputs", wrong}};
}

}  // namespace

Json tolerance_json(const ToleranceReport& report) {
  Json outputs = Json::array(), faults = Json::array();
  for (const OutputReport& output : report.outputs) outputs.push_back(to_json(output));
  for (const FaultFloors& fault : report.faults) faults.push_back(to_json(fault, report));
  Json out{{"case", report.case_line},
           {"kernel", report.kernel.empty() ? Json() : Json(report.kernel)},
           {"arithmetic", assay::to_json(report.arithmetic)},
           {"rows", report.rows},
           {"rows_out_of_range", report.rows_out_of_range},
           {"out_of_range", report.out_of_range},
           {"outputs", outputs},
           {"detection_floors", faults},
           {"assumptions", report.assumptions}};
  if (report.rule) out["tolerance"] = to_json(*report.rule, report);
  return out;
}

}  // namespace assay

// `assay bench attack`: searches for the cases in which correct kernels come closest to their bound.
#include <cmath>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "fuzz/attack.h"
#include "fuzz/durable_file.h"
#include "oracle/error.h"
#include "reports/environment.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  AttackOptions attack;
  std::string start, save;
  bool json = false;
};

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(std::isnan(value) ? "nan" : "inf"); }

Json to_json(const AttackPeak& peak) {
  Json curve = Json::array(), terms = Json::object();
  for (const AttackStep& step : peak.curve) curve.push_back({{"evaluation", step.evaluation}, {"used", finite(step.used)}});
  for (const auto& [name, share] : peak.terms) terms[name] = finite(share);
  const ElementReport& e = peak.element;
  Json out{{"kernel", peak.kernel}, {"level", level_name(peak.level)}, {"output", peak.output}, {"used", finite(e.used)},
           {"rejected", e.rejected}, {"case", peak.case_line}, {"element", e.element}, {"value", finite(e.value)},
           {"mid", finite(e.mid)}, {"tau", finite(e.tau)}, {"curve", curve}};
  if (!peak.terms.empty()) out["terms_of_tau"] = terms;
  return out;
}

Json document(const Options& options, const AttackResult& result) {
  Json peaks = Json::array();
  for (const AttackPeak& peak : result.peaks) peaks.push_back(to_json(peak));
  return {{"version", 1}, {"tool", "assay bench attack"}, {"op", options.attack.op}, {"seed", options.attack.seed},
          {"level", level_name(options.attack.level)}, {"seconds", result.seconds}, {"evaluations", result.evaluations},
          {"rejected_cases", result.rejected_cases}, {"started_from", options.start}, {"not_reached", result.not_reached},
          {"environment", environment()}, {"peaks", peaks}};
}

std::string text_of(const AttackResult& result) {
  std::string out = fmt::format("{} runs judged in {:.0f} s, {} with an element outside its set\n", result.evaluations,
                                result.seconds, result.rejected_cases);
  for (const AttackPeak& peak : result.peaks) {
    out += fmt::format("  {:<24} {} {:<4} {:.4f} of the bound after {} runs\n    {}\n", peak.kernel, level_name(peak.level),
                       peak.output, peak.element.used, peak.curve.back().evaluation, peak.case_line);
    std::string terms;
    for (const auto& [name, share] : peak.terms) terms += fmt::format("  {} {:.1f} %", name, 100 * share);
    if (!terms.empty()) out += "    tau:" + terms + "\n";
  }
  for (const std::string& kernel : result.not_reached) out += fmt::format("  {:<24} no suite has a small enough case\n", kernel);
  return out;
}

std::vector<Case> starts_of(const std::string& file) {
  std::vector<Case> starts;
  if (file.empty()) return starts;
  std::ifstream in(file);
  if (!in) throw InputError("--start " + file + ": cannot be read");
  try {
    const Json record = Json::parse(in);
    for (const Json& peak : record.at("peaks")) starts.push_back(parse_case(peak.at("case").get<std::string>()));
  } catch (const Json::exception& error) {
    throw InputError("--start " + file + ": " + error.what());
  }
  return starts;
}

int bench_attack(Options options) {
  options.attack.starts = starts_of(options.start);
  const AttackResult result = attack(options.attack, [&](const AttackResult& so_far) {
    if (!options.save.empty()) write_durably(options.save, document(options, so_far).dump(1) + "\n");
  });
  const Json json = document(options, result);
  if (!options.save.empty()) write_durably(options.save, json.dump(1) + "\n");
  if (options.json) fmt::print("{}\n", json.dump(1));
  else fmt::print("{}", text_of(result));
  return result.rejected_cases > 0 ? 1 : 0;
}

}  // namespace

void add_bench_attack(Verb& app, int& exit_code) {
  Verb verb = bench_group(app).add("attack", "search for the cases in which correct kernels come closest to their bound");
  const auto o = std::make_shared<Options>();
  verb.option("--op", o->attack.op, "op whose kernels are attacked (default attention)");
  verb.option("--kernel", o->attack.kernels, "one kernel (repeatable; default: every correct one)").one_each();
  verb.option("--seconds", o->attack.seconds, "how long to search (default 60)").positive();
  verb.option("--evaluations", o->attack.evaluations, "end after so many runs instead: the result depends on the seed only")
      .positive();
  verb.option("--seed", o->attack.seed, "of the search (default 1)");
  add_level_option(verb, o->attack.level);
  verb.option("--start", o->start, "a saved record: its best cases are starting points");
  verb.option("--save", o->save, "write the record to a file, every few seconds and at the end");
  verb.flag("--json", o->json, "print the record instead of text");
  verb.callback([o, &exit_code] { exit_code = bench_attack(*o); });
}

}  // namespace assay

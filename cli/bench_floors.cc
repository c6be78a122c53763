// `assay bench floors`: what the probes prove of a dropped key, a ghost key and a scale off by 1e-4 at any number of
// keys.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/fleet.h"
#include "cli/verbs.h"
#include "fuzz/floors.h"
#include "oracle/error.h"
#include "oracle/measure.h"
#include "reports/environment.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> keys{"2048", "16384", "131072"};
  std::vector<std::string> kernels{"fa2_bf16", "split_bf16"};
  Level level = Level::kT1;
  bool json = false;
};

Json to_json(const FaultFloor& floor) {
  Json outputs = Json::array(), runs = Json::array();
  for (const FloorOfOutput& o : floor.outputs) {
    Json output{
        {"output", o.role}, {"proven", o.proven}, {"smallest", std::isnan(o.smallest) ? Json() : Json(o.smallest)}};
    if (floor.covered > 0) output["positions_proven"] = o.positions;
    outputs.push_back(output);
  }
  for (const FloorRuns& r : floor.runs)
    runs.push_back(
        {{"what", r.what}, {"runs", r.runs}, {"rejected_by_o", r.rejected_o}, {"rejected_by_lse", r.rejected_lse}});
  Json out{{"fault", floor.fault},
           {"keys", floor.keys},
           {"kernel", floor.kernel},
           {"case", floor.case_line},
           {"level", level_name(floor.level)}};
  if (floor.covered > 0) out["keys_in_exactly_one_support"] = floor.covered;
  out["elements"] = floor.elements;
  out["elements_that_accept_one_value"] = floor.single;
  out["false_alarms"] = floor.false_alarms;
  out["outputs"] = outputs;
  out["runs"] = runs;
  return out;
}

std::string text_of(const FaultFloor& floor) {
  std::string text =
      fmt::format("{:>7} keys  {:<11} {:<31} {}", floor.keys, floor.kernel, floor.fault, level_name(floor.level));
  for (const FloorOfOutput& o : floor.outputs) {
    text += fmt::format("  {} {}", o.role, o.proven ? "proven" : "NOT PROVEN");
    if (floor.covered > 0) text += fmt::format(" at {} positions", o.positions);
    if (!std::isnan(o.smallest)) text += fmt::format(", from {:.2g}", o.smallest);
  }
  text += fmt::format("  {} of {} elements accept one value", floor.single, floor.elements);
  if (floor.false_alarms != 0) text += fmt::format("  FALSE ALARMS {}", floor.false_alarms);
  text += fmt::format("\n    {}\n", floor.case_line);
  for (const FloorRuns& r : floor.runs)
    text += fmt::format("    {}: {} of {} rejected by o, {} by lse\n", r.what, r.rejected_o, r.runs, r.rejected_lse);
  return text;
}

int bench_floors(const Options& options) {
  std::vector<std::int64_t> counts;
  for (const std::string& text : options.keys) {
    std::int64_t keys = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), keys);
    if (status != std::errc{} || end != text.data() + text.size() || keys < 2048 || keys > (1 << 20) ||
        keys % 2048 != 0)
      throw InputError(fmt::format("--keys {}: must be a multiple of 2048, at most 2^20", text));
    counts.push_back(keys);
  }
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::minutes(10));
  Json all = Json::array();
  bool sound = true;
  for (const std::int64_t keys : counts)
    for (const std::string& name : options.kernels)
      for (const FaultFloor& floor : probe_floors(keys, kernel_named(*fleet, name).name, *fleet, options.level)) {
        sound = sound && floor.false_alarms == 0;
        all.push_back(to_json(floor));
        if (!options.json) fmt::print("{}", text_of(floor)), std::fflush(stdout);
      }
  if (options.json)
    fmt::print(
        "{}\n",
        Json{{"version", 1}, {"tool", "assay bench floors"}, {"environment", environment()}, {"floors", all}}.dump(1));
  return sound ? 0 : 1;
}

}  // namespace

void add_bench_floors(Verb& app, int& exit_code) {
  Verb verb =
      bench_group(app).add("floors", "what the probes prove of a dropped key, a ghost key and a scale off by 1e-4");
  const auto o = std::make_shared<Options>();
  verb.option("--keys", o->keys, "number of keys, a multiple of 2048 (repeatable; default 2048, 16384 and 131072)")
      .one_each();
  verb.option("--kernel", o->kernels,
              "kernel of 16-bit inputs whose declaration judges (repeatable; default fa2_bf16 and split_bf16)")
      .one_each();
  add_level_option(verb, o->level);
  verb.flag("--json", o->json, "print JSON instead of text");
  verb.callback([o, &exit_code] { exit_code = bench_floors(*o); });
}

}  // namespace assay

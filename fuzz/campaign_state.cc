// CampaignState as JSON.
#include "fuzz/campaign_state.h"

#include <nlohmann/json.hpp>

#include "cases/text.h"
#include "fuzz/durable_file.h"
#include "oracle/error.h"
#include "oracle/json_field.h"

namespace assay {
namespace {

constexpr int kStateVersion = 1;

nlohmann::json to_json(const CampaignSpec& spec) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const CampaignKernel& k : spec.kernels)
    kernels.push_back(
        {{"name", k.name}, {"op", k.op}, {"plugin", k.plugin}, {"device", k.device}, {"mutant", k.mutant}});
  return {{"kernels", kernels},      {"jobs", spec.jobs},         {"seconds", spec.seconds},
          {"runs", spec.runs},       {"deadline", spec.deadline}, {"seed", spec.seed},
          {"devices", spec.devices}, {"known", spec.known},       {"command", spec.command}};
}

CampaignSpec spec_from_json(const JsonField& field) {
  CampaignSpec spec;
  for (const JsonField& k : field["kernels"].elements())
    spec.kernels.push_back({.name = k["name"].text(),
                            .op = k["op"].text(),
                            .plugin = k["plugin"].text(),
                            .device = k["device"].boolean(),
                            .mutant = k["mutant"].boolean()});
  spec.jobs = static_cast<unsigned>(field["jobs"].small_integer());
  spec.seconds = field["seconds"].number();
  spec.runs = field["runs"].integer();
  spec.deadline = field["deadline"].small_integer();
  spec.seed = static_cast<std::uint64_t>(field["seed"].integer());
  spec.devices = field["devices"].small_integer();
  spec.known = field["known"].text();
  spec.command = field["command"].text();
  return spec;
}

}  // namespace

void save(const CampaignState& state, const std::filesystem::path& file) {
  nlohmann::json open = nlohmann::json::object();
  for (const auto& [number, label] : state.open) open[std::to_string(number)] = label;
  const nlohmann::json document{{"version", kStateVersion},   {"spec", to_json(state.spec)},
                                {"started", state.started},   {"regimes", state.regimes},
                                {"seconds", state.seconds},   {"done", to_json(state.done)},
                                {"turns", state.turns},       {"given_up", state.given_up},
                                {"next", state.next},         {"open", open},
                                {"restarts", state.restarts}, {"torn", state.torn}};
  write_durably(file.string(), document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

CampaignState load_campaign(const std::filesystem::path& file) {
  const std::string name = file.string();
  if (!std::filesystem::exists(file)) throw InputError(name + ": there is no campaign to go on with");
  const nlohmann::json document = nlohmann::json::parse(read_whole(file.string()), nullptr, false);
  const JsonField field(document, "", name);
  if (document.is_discarded()) throw InputError(name + ": is no JSON");
  if (field["version"].integer() != kStateVersion) field["version"].fail("1");
  CampaignState state;
  state.spec = spec_from_json(field["spec"]);
  state.started = field["started"].text();
  for (const auto& [op, names] : field["regimes"].members())
    for (const JsonField& name : names.elements()) state.regimes[op].push_back(name.text());
  state.seconds = field["seconds"].number();
  state.done = executions_from_json(field["done"]);
  for (const auto& [label, seconds] : field["turns"].members()) state.turns[label] = seconds.number();
  for (const auto& [label, why] : field["given_up"].members()) state.given_up[label] = why.text();
  state.next = field["next"].integer();
  for (const auto& [number, label] : field["open"].members()) {
    const auto value = read_integer(number);
    if (!value) label.fail("a number as its name");
    state.open[*value] = label.text();
  }
  state.restarts = field["restarts"].integer();
  state.torn = field["torn"].integer();
  return state;
}

}  // namespace assay

// `assay list [ops, kernels, modes, suites, recipes]`: what there is.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cases/recipes.h"
#include "cli/fleet.h"
#include "cli/verbs.h"
#include "failure_catalog/mode.h"
#include "fuzz/suites.h"
#include "oracle/arithmetic_json.h"
#include "oracle/error.h"
#include "oracle/op.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

Json ops() {
  Json out = Json::array();
  for (const Op* op : all_ops()) {
    Json params = Json::array();
    for (const ParamInfo& p : op->params)
      params.push_back({{"name", p.key}, {"default", p.default_value}, {"summary", p.summary}});
    out.push_back({{"name", op->name}, {"summary", op->summary}, {"params", params}});
  }
  return out;
}

/// What the manifest says of a plug-in's kernel, besides what every kernel has.
void add_manifest(Json& row, const PluginKernel& kernel) {
  row["plugin"] = kernel.identity.plugin;
  row["takes"] = Json::object();
  for (const Limit& limit : kernel.limits) row["takes"][limit.key] = limit.text();
  row["arithmetic"] = Json(to_json(kernel.arithmetic));
  row["unknown_fields"] = kernel.unknown_fields;
}

Json kernels(const std::vector<std::string>& plugins) {
  Json out = Json::array();
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(60), plugins);
  const std::vector<KernelIdentity> all = fleet->kernels();
  if (!fleet->lost().empty()) throw fleet->lost().front().how;
  for (const KernelIdentity& k : all) {
    if (k.plugin.empty() && !plugins.empty()) continue;
    out.push_back({{"name", k.name}, {"op", k.op}, {"dtypes", k.dtypes}, {"mutant", k.mutant}, {"device", k.device},
                   {"expects", k.expects}, {"summary", k.summary}});
    if (const PluginKernel* kernel = fleet->plugin_kernel(k.name)) add_manifest(out.back(), *kernel);
  }
  return out;
}

Json modes() {
  Json out = Json::array();
  for (const Mode* mode : all_modes()) out.push_back({{"name", mode->name}, {"id", mode->id}, {"summary", mode->title}});
  return out;
}

Json suites() {
  Json out = Json::array();
  for (const SuiteInfo& suite : all_suites())
    out.push_back({{"name", suite.name}, {"cases", suite_cases(suite.name).size()}, {"summary", suite.summary}});
  return out;
}

Json recipes() {
  Json out = Json::array();
  for (const Recipe& recipe : all_recipes()) {
    Json args = Json::array();
    for (const RecipeArg& arg : recipe.args) args.push_back({{"name", arg.name}, {"default", arg.default_value}});
    out.push_back({{"name", recipe.name}, {"args", args}, {"range", recipe.range}, {"summary", recipe.summary}});
  }
  return out;
}

std::string arguments_of(const Json& row) {
  std::string text;
  if (row.contains("args"))
    for (const Json& arg : row["args"]) text += (text.empty() ? "" : ", ") + arg["name"].get<std::string>() + "=" + arg["default"].dump();
  return text.empty() ? "" : "(" + text + ")";
}

void print_rows(const std::string& what, const Json& rows) {
  fmt::print("{}\n", what);
  for (const Json& row : rows) {
    std::string note;
    if (row.contains("cases")) note = fmt::format("{} cases", row["cases"].get<std::size_t>());
    if (row.contains("id")) note = row["id"].get<std::string>();
    if (row.value("mutant", false)) note = "mutant, expects " + (row["expects"] == "" ? "unclassified" : row["expects"].get<std::string>());
    if (row.value("device", false)) note += note.empty() ? "device" : ", device";
    fmt::print("  {:<32} {}{}\n", row["name"].get<std::string>() + arguments_of(row),
               note.empty() ? "" : "[" + note + "] ", row["summary"].get<std::string>());
    if (row.contains("plugin")) {
      fmt::print("    of {}, {} fields of its arithmetic unknown\n", row["plugin"].get<std::string>(),
                 row["unknown_fields"].get<int>());
      for (const auto& [key, values] : row["takes"].items())
        fmt::print("    {:<18} {}\n", key, values.get<std::string>());
    }
    if (row.contains("params"))
      for (const Json& p : row["params"])
        fmt::print("    {:<18} {:<11} {}\n", p["name"].get<std::string>(), p["default"].get<std::string>(), p["summary"].get<std::string>());
  }
}

int list(std::vector<std::string> what, const std::vector<std::string>& plugins, bool json) {
  if (what.empty() && !plugins.empty()) what = {"kernels"};
  if (what.empty()) what = {"ops", "kernels", "modes", "suites", "recipes"};
  Json document = Json::object();
  for (const std::string& name : what) {
    if (name == "ops") document[name] = ops();
    else if (name == "kernels") document[name] = kernels(plugins);
    else if (name == "modes") document[name] = modes();
    else if (name == "suites") document[name] = suites();
    else if (name == "recipes") document[name] = recipes();
    else throw InputError("list '" + name + "': there are ops, kernels, modes, suites, recipes");
  }
  if (json) fmt::print("{}\n", document.dump(2));
  else
    for (const auto& [name, rows] : document.items()) print_rows(name, rows);
  return 0;
}

}  // namespace

void add_list(Verb& app, int& exit_code) {
  Verb verb = app.add("list", "what there is: ops, kernels, modes, suites, recipes");
  const auto what = std::make_shared<std::vector<std::string>>();
  const auto plugins = std::make_shared<std::vector<std::string>>();
  const auto json = std::make_shared<bool>(false);
  verb.option("what", *what, "ops, kernels, modes, suites, recipes (default: all)");
  add_plugin_option(verb, *plugins);
  verb.flag("--json", *json, "as JSON");
  verb.callback([what, plugins, json, &exit_code] { exit_code = list(*what, *plugins, *json); });
}

}  // namespace assay

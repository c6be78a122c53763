// `assay explain MODE`: the catalogue entry.
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cases/file_source.h"
#include "cli/verbs.h"
#include "failure_catalog/mode.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream in(find_data_file(file));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

int explain(const std::string& name, bool json) {
  const Mode* mode = find_mode(name);
  if (mode == nullptr) throw InputError("mode '" + name + "' is unknown; `assay list modes` shows them");
  const std::string folder = "failure_catalog/" + std::string(mode->name);
  const std::string entry = text_of(folder + "/entry.md"), witness = text_of(folder + "/witness.case");
  if (json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"name", mode->name}, {"id", mode->id}, {"title", mode->title},
                                              {"entry", entry}, {"witness", witness}}.dump(2));
  } else {
    fmt::print("{}\nWitness: {}", entry, witness);
  }
  return 0;
}

}  // namespace

void add_explain(Verb& app, int& exit_code) {
  Verb verb = app.add("explain", "the catalogue entry of a failure mode");
  const auto name = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  verb.option("mode", *name, "name or id, e.g. false_max or M07").required();
  verb.flag("--json", *json, "as JSON");
  verb.callback([name, json, &exit_code] { exit_code = explain(*name, *json); });
}

}  // namespace assay

// `assay judge DUMP.safetensors`: the verdict on tensors somebody already has; runs no kernel.
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cases/file_source.h"
#include "cases/materialize.h"
#include "cases/safetensors.h"
#include "cli/fleet.h"
#include "cli/verbs.h"
#include "fuzz/pipeline.h"
#include "oracle/arithmetic_json.h"
#include "oracle/error.h"
#include "reports/console.h"
#include "reports/environment.h"
#include "reports/view.h"

namespace assay {
namespace {

struct Options {
  std::string file, line, as;
  std::vector<std::string> plugins;
  Level level = Level::kT1;
  bool json = false;
};

Source source_of(const SafetensorsFile& dump, const std::string& path, const std::string& tensor) {
  const SafetensorsEntry* entry = dump.find(tensor);
  if (entry == nullptr) throw InputError(path + ": tensor '" + tensor + "' is missing");
  return {.recipe = "file", .args = {path, tensor, content_hash(dump.read(*entry))}, .seed = 0};
}

/// The case of a dump: its line gives the semantics, its tensors replace every source.
Case case_of(const Options& options, const SafetensorsFile& dump, const std::string& path) {
  std::string line = options.line;
  if (line.empty()) {
    const auto at = dump.index().metadata.find("case");
    if (at == dump.index().metadata.end())
      throw InputError(path + ": __metadata__.case is missing; give the semantics with --case");
    line = at->second;
  }
  Case c = parse_case(line);
  if (dump.find("lse") == nullptr) {
    c.params.set("lse", "none");
    c.params = op_named(c.op).canonical(c.params);
  }
  c.overrides.clear();
  for (auto& [role, source] : c.sources) source = source_of(dump, path, role);
  return c;
}

/// `--as KERNEL`, or `__metadata__.arithmetic` (the `declared` object of a record), or nothing declared.
Arithmetic arithmetic_of(const Options& options, const Case& c, const SafetensorsFile& dump, const std::string& path) {
  if (!options.as.empty()) return declared_by(options.as, options.plugins, c.op, c.params, "--as");
  const auto at = dump.index().metadata.find("arithmetic");
  if (at == dump.index().metadata.end()) return {};
  try {
    const nlohmann::json json = nlohmann::json::parse(at->second);
    return arithmetic_from_json(JsonField(json, "__metadata__.arithmetic", path));
  } catch (const nlohmann::json::exception& error) {
    throw InputError(path + ": __metadata__.arithmetic is not JSON: " + error.what());
  }
}

int judge(const Options& options) {
  const std::string path = std::filesystem::absolute(options.file).string();
  const SafetensorsFile dump(path);
  const Case c = case_of(options, dump, path);
  const Problem problem = materialize(c);
  RunOutcome outcome;
  outcome.facts.variant = "dump";
  for (const TensorLayout& layout : problem.outputs) {
    Tensor output{.layout = layout, .bytes = {}};
    fill_canary(output);
    InputSpec spec;
    spec.layout = layout;
    spec.axes = std::string(layout.shape.size(), 'x');
    fill_from_file(source_of(dump, path, layout.role), spec, output.bytes.data());
    outcome.outputs.push_back(std::move(output));
  }
  Record record = judge_outputs(c, problem, arithmetic_of(options, c, dump, path), outcome, options.level);
  record.kernel = "dump:" + std::filesystem::path(options.file).filename().string();
  record.suite = "judge";
  record.repro = "assay judge " + shell_quoted(path);
  if (!options.line.empty()) record.repro += " --case " + shell_quoted(options.line);
  if (!options.as.empty()) record.repro += " --as " + options.as;
  for (const std::string& plugin : options.plugins) record.repro += " --plugin " + shell_quoted(std::filesystem::absolute(plugin).string());
  if (options.json) fmt::print("{}", json_text(to_json({record}, environment())));
  else fmt::print("{}", console_report({record}));
  return exit_code(summarize({record}));
}

}  // namespace

void add_judge(Verb& app, int& exit_code) {
  Verb verb = app.add("judge", "the same verdict on a dump: tensors by role, o, optional lse, and a case line");
  const auto o = std::make_shared<Options>();
  verb.option("dump", o->file, "safetensors file").required();
  verb.option("--case", o->line, "case line for the semantics (default: __metadata__.case)");
  verb.option("--as", o->as, "judge by the arithmetic that this kernel declares (default: __metadata__.arithmetic, else the whole family)");
  add_plugin_option(verb, o->plugins);
  add_level_option(verb, o->level);
  verb.flag("--json", o->json, "print the JSON document instead of text");
  verb.callback([o, &exit_code] { exit_code = judge(*o); });
}

}  // namespace assay

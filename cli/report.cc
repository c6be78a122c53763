// `assay report RESULT.json --json --md --junit`: views of a saved document.
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "oracle/error.h"
#include "reports/console.h"
#include "reports/junit.h"
#include "reports/markdown.h"

namespace assay {
namespace {

struct Options {
  std::string file;
  bool json = false, markdown = false, junit = false;
};

int report(const Options& options) {
  std::ifstream in(options.file, std::ios::binary);
  if (!in) throw InputError(options.file + ": cannot be read");
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(in);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(options.file + ": is not JSON: " + error.what());
  }
  const std::vector<Record> records = records_from_json(document, options.file);
  const nlohmann::json where = document.value("environment", nlohmann::json::object());
  if (options.json) fmt::print("{}", json_text(to_json(records, where)));
  if (options.markdown) fmt::print("{}", markdown_report(records, where));
  if (options.junit) fmt::print("{}", junit_report(records, where));
  if (!options.json && !options.markdown && !options.junit) fmt::print("{}", console_report(records));
  return exit_code(summarize(records));
}

}  // namespace

void add_report(Verb& app, int& exit_code) {
  Verb verb = app.add("report", "views of a saved JSON document; exits as the run did");
  const auto o = std::make_shared<Options>();
  verb.option("file", o->file, "document of `check --save`").required();
  verb.flag("--json", o->json, "print it as JSON, checked and re-counted");
  verb.flag("--md", o->markdown, "print it as Markdown");
  verb.flag("--junit", o->junit, "print it as JUnit XML");
  verb.callback([o, &exit_code] { exit_code = report(*o); });
}

}  // namespace assay

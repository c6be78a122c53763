// `assay tolerance CASE`: the bound term by term, the smallest faults the case can show, and another tolerance beside
// them.
#include "reports/tolerance.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cases/materialize.h"
#include "cli/fleet.h"
#include "cli/verbs.h"

namespace assay {
namespace {

struct Options {
  std::string line, kernel;
  std::vector<std::string> plugins;
  Level level = Level::kT1;
  double atol = -1, rtol = -1;
  bool json = false;
};

int tolerance(const Options& options) {
  const Case c = parse_case(options.line);
  Arithmetic arithmetic;
  if (!options.kernel.empty())
    arithmetic = declared_by(options.kernel, options.plugins, c.op, c.params, "--kernel");
  std::optional<Rule> rule;
  if (options.atol >= 0 || options.rtol >= 0) rule = Rule{std::max(0.0, options.atol), std::max(0.0, options.rtol)};
  ToleranceReport report = tolerance_report(op_named(c.op), materialize(c), arithmetic, options.level, rule);
  report.case_line = print_case(c);
  report.kernel = options.kernel;
  if (options.json)
    fmt::print("{}\n", tolerance_json(report).dump(2));
  else
    fmt::print("{}", tolerance_text(report));
  return 0;
}

}  // namespace

void add_tolerance(Verb& app, int& exit_code) {
  Verb verb = app.add(
      "tolerance", "the bound term by term, the smallest faults a case shows, another tolerance beside them");
  const auto o = std::make_shared<Options>();
  verb.option("case", o->line, "case line").required();
  verb.option("--kernel", o->kernel, "the arithmetic that this kernel declares (default: the whole family)");
  add_plugin_option(verb, o->plugins);
  add_level_option(verb, o->level);
  verb.option("--atol", o->atol, "compare with |y - r| <= atol + rtol |r|").non_negative();
  verb.option("--rtol", o->rtol, "see --atol; one without the other: the other is 0")
      .non_negative();
  verb.flag("--json", o->json, "print JSON instead of text");
  verb.callback([o, &exit_code] { exit_code = tolerance(*o); });
}

}  // namespace assay

// `assay minimize CASE --kernel K`: the smallest case on which the kernel still fails in the same way.
#include "fuzz/minimize.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/fleet.h"
#include "cli/verbs.h"
#include "fuzz/durable_file.h"
#include "oracle/error.h"
#include "reports/environment.h"
#include "reports/view.h"

namespace assay {
namespace {

struct Options {
  std::string line, kernel, out;
  std::vector<std::string> plugins;
  int deadline = 60, runs = MinimizeOptions{}.runs, repeat = 1;
  Level level = Level::kT1;
  bool json = false;
};

int minimize_case(const Options& options) {
  const Case c = parse_case(options.line);
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(options.deadline), options.plugins);
  const KernelIdentity kernel = kernel_named(*fleet, options.kernel);
  if (kernel.op != c.op) throw InputError("--kernel " + kernel.name + ": computes " + kernel.op + ", not " + c.op);
  Minimized found = minimize(c, kernel.name, *fleet,
                             {.runs = options.runs, .level = options.level, .repeats = {.runs = options.repeat}});
  const std::string line = print_case(found.smallest);
  found.record.suite = "minimize";
  if (found.record.repro.empty()) found.record.repro = plugin_repro(kernel, line);
  if (!options.out.empty()) write_durably(options.out, line + "\n");
  if (options.json) {
    nlohmann::json document = to_json({found.record}, environment());
    document["minimize"] = {{"from", print_case(c)},
                            {"to", line},
                            {"signature", found.signature.slug()},
                            {"runs", found.runs},
                            {"minimal", found.minimal}};
    fmt::print("{}", json_text(document));
    return exit_code(summarize({found.record}));
  }
  fmt::print("case      {}\nsignature {}\nverdict   {}\nworst     {}\nruns      {}, {}\nrepro     {}\n", line,
             found.signature.slug(), verdict_text(found.record), describe_worst(found.record), found.runs,
             found.minimal ? "and no single step makes it smaller" : "all that were allowed: smaller cases may exist",
             repro_command(found.record));
  return exit_code(summarize({found.record}));
}

}  // namespace

void add_minimize(Verb& app, int& exit_code) {
  Verb verb = app.add("minimize", "the smallest case on which a kernel still fails in the same way");
  const auto o = std::make_shared<Options>();
  verb.option("case", o->line, "case line on which the kernel fails").required();
  verb.option("--kernel", o->kernel, "kernel name").required();
  add_plugin_option(verb, o->plugins);
  verb.option("--out", o->out, "write the smallest case line to a file");
  verb.option("--runs", o->runs, "most runs of the kernel").range(1, 1000000);
  verb.option("--repeat", o->repeat, "runs of each case that must write the same bits").range(1, 1000);
  verb.option("--deadline", o->deadline, "seconds after which a run counts as hung").range(1, 86400);
  add_level_option(verb, o->level);
  verb.flag("--json", o->json, "print the JSON document instead of text");
  verb.callback([o, &exit_code] { exit_code = minimize_case(*o); });
}

}  // namespace assay

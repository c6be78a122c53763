// The `assay` program: parses the command line, runs one verb, turns errors into one line and an exit code.
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "cli/verbs.h"
#include "kernels/worker.h"
#include "oracle/error.h"

namespace assay {

void add_level_option(Verb& verb, Level& level) {
  verb.choice<Level>("--level", level, {{"t0", Level::kT0}, {"t1", Level::kT1}, {"t2", Level::kT2}},
                     "highest level to judge by, where the declaration reaches it: t0 (formats), t1 (default; replay of maxima and of "
                     "P's rounding), t2 (and of the scores)");
}

Verb bench_group(Verb& app) { return app.group("bench", "measurements of assay itself"); }

namespace {

int run(int argc, char** argv) {
  CLI::App app{"assay: verifies the numerics of attention and fused LLM kernels"};
  app.require_subcommand(1);
  Verb all(&app);
  int exit_code = 0;
  for (const auto add : {add_check, add_doctor, add_explain, add_fingerprint, add_fuzz, add_judge, add_list, add_minimize, add_mutants, add_report, add_repro, add_tolerance,
                         add_tomography, add_bench_attack, add_bench_floors, add_bench_fuzz, add_bench_kernels, add_bench_mutants, add_bench_oracle, add_bench_radius})
    add(all, exit_code);
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const InputError& error) {
    std::fprintf(stderr, "assay: %s\n", error.what());
    return 2;
  } catch (const PluginGone& error) {
    std::fprintf(stderr, "assay: %s\n", error.what());
    return 5;
  } catch (const std::exception& error) {  // EnvironmentError, file system, memory
    std::fprintf(stderr, "assay: %s\n", error.what());
    return 3;
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const bool plugin = argc == 4 && std::strcmp(argv[2], "--plugin") == 0;
  if ((argc == 2 || plugin) && std::strcmp(argv[1], "worker") == 0)
    return assay::serve_worker(STDIN_FILENO, STDOUT_FILENO, plugin ? argv[3] : "");
  return assay::run(argc, argv);
}

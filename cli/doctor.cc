// `assay doctor`: what this machine has, whether the workers start, and a self-test of the oracle.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cases/file_source.h"
#include "cases/materialize.h"
#include "cli/fleet.h"
#include "cli/probe.h"
#include "cli/verbs.h"
#include "failure_catalog/mode.h"
#include "fuzz/durable_file.h"
#include "fuzz/suites.h"
#include "oracle/error.h"
#include "oracle/op.h"
#include "reports/environment.h"

namespace assay {
namespace {

struct Check {
  std::string name;
  bool ok = false;
  std::string text;
};

/// The fp64 tier and the ball arithmetic must overlap on every judged element of the smoke suite.
Check oracle_self_test() {
  std::int64_t elements = 0, apart = 0;
  for (const Case& c : suite_cases("smoke")) {
    const Op& op = op_named(c.op);
    const Problem problem = materialize(c);
    const Truth fast = op.evaluate(problem, {}, Level::kT0).truth, reference = op.reference(problem, 128);
    for (std::size_t k = 0; k < fast.outputs.size(); ++k)
      for (std::size_t i = 0; i < fast.outputs[k].mid.size(); ++i) {
        const OutputTruth &f = fast.outputs[k], &r = reference.outputs[k];
        ++elements;
        apart += f.classes[i] != r.classes[i] ||
                 ((f.classes[i] & kNumber) && !(std::abs(f.mid[i] - r.mid[i]) <= f.radius[i] + r.radius[i]));
      }
  }
  return {"oracle", apart == 0 && elements > 0,
          fmt::format("fp64 and ball arithmetic agree on {} of {} elements of suite smoke", elements - apart, elements)};
}

Check workers() {
  std::size_t correct = 0, mutants = 0;
  for (const KernelIdentity& kernel : open_fleet(std::chrono::seconds(60))->kernels()) ++(kernel.mutant ? mutants : correct);
  return {"workers", correct > 0, fmt::format("{} kernels and {} mutants answer{}", correct, mutants,
                                              mutants > 0 ? "" : " (no assay_mutants beside this program)")};
}

/// No device is no fault of the machine: device kernels are skipped then.
Check device() {
  const DeviceInfo info = open_fleet(std::chrono::seconds(60))->device();
  if (!info.absent.empty()) return {"device", true, "none: " + info.absent + "; device kernels are skipped"};
  return {"device", true, fmt::format("{}; {} multiprocessors, {:.1f} GiB", info.text(), info.multiprocessors,
                                      static_cast<double>(info.memory) / (1 << 30))};
}

/// Tensor cores and scalar functions against what the bounds take of them. Writes all probes to `file` unless it is empty.
Check probes(const std::string& file) {
  try {
    const ProbeSummary summary = probe_device(!file.empty());
    if (!file.empty()) write_durably(file, summary.document.dump(1) + "\n");
    return {"probes", summary.ok, summary.text};
  } catch (const EnvironmentError& error) {
    return {"probes", file.empty(), std::string("none: ") + error.what()};  // asked for and impossible: an error
  }
}

Check data() {
  std::size_t cases = 0;
  for (const char* suite : {"real", "llm_like", "smoke", "edge"}) cases += suite_cases(suite).size();
  materialize(suite_cases("real").front());
  for (const Mode* mode : all_modes()) find_data_file("failure_catalog/" + std::string(mode->name) + "/entry.md");
  return {"data", true, fmt::format("suites parse ({} cases), activations match their hashes, catalogue entries are there", cases)};
}

struct Options {
  std::string probe;
  bool json = false;
};

Check guarded(const std::string& name, Check (*run)()) {
  try {
    return run();
  } catch (const std::exception& error) {
    return {name, false, error.what()};
  }
}

int doctor(const Options& options) {
  const nlohmann::json where = environment();
  // Probes last: no process may be spawned once CUDA has started in this one.
  const std::vector<Check> checks{guarded("workers", workers), guarded("device", device), guarded("data", data),
                                  guarded("oracle", oracle_self_test), probes(options.probe)};
  bool ok = true;
  nlohmann::json out = nlohmann::json::array();
  for (const Check& check : checks) {
    ok = ok && check.ok;
    out.push_back({{"name", check.name}, {"ok", check.ok}, {"text", check.text}});
  }
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"environment", where}, {"checks", out}}.dump(2));
    return ok ? 0 : 3;
  }
  fmt::print("{}\n", where.dump(2));
  for (const Check& check : checks) fmt::print("{:<8} {:<4} {}\n", check.name, check.ok ? "ok" : "FAIL", check.text);
  return ok ? 0 : 3;
}

}  // namespace

void add_doctor(Verb& app, int& exit_code) {
  Verb verb = app.add("doctor", "this machine, the workers, the data files, a self-test of the oracle");
  const auto o = std::make_shared<Options>();
  verb.option("--probe", o->probe,
                   "probe the device in full, about a minute: a quarter of a million elements of every kind of operands per tensor-core "
                   "instruction, every fp32 argument of every scalar function; the results go to this file");
  verb.flag("--json", o->json, "as JSON");
  verb.callback([o, &exit_code] { exit_code = doctor(*o); });
}

}  // namespace assay

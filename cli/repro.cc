// `assay repro CASE --kernel K`: one case in full: bits, certified digits, bound, verdict, and what the judges of other projects say.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cases/file_source.h"
#include "cases/materialize.h"
#include "cli/dump.h"
#include "cli/fleet.h"
#include "cli/verbs.h"
#include "failure_catalog/judges/judge.h"
#include "fuzz/pipeline.h"
#include "oracle/accept.h"
#include "oracle/arithmetic_json.h"
#include "oracle/error.h"
#include "reports/environment.h"

namespace assay {
namespace {

constexpr int kDigits = 30;

struct Options {
  std::string line, kernel, dump;
  std::vector<std::string> plugins;
  int deadline = 600;
  Level level = Level::kT1;
  bool json = false;
};

std::string code_text(Format format, std::uint64_t code) {
  return fmt::format("0x{:0{}x}", code, 2 * bytes_per_element(format));
}

/// The worst element of one output: its bits, the truth's digits, and the codes it may hold.
std::string worst_element(const Op& op, const Problem& problem, std::size_t output, const OutputMeasure& m) {
  const ElementReport& e = m.worst;
  if (e.element < 0) return fmt::format("  {}: no element is judged\n", m.role);
  const TensorLayout& layout = problem.outputs[output];
  const std::string digits = op.digits(problem, output, e.at, kDigits);
  std::string text = fmt::format("  {}: {} of {} elements rejected, {} equal to the rounded truth\n", m.role, m.rejected,
                                 m.judged, m.bit_equal);
  text += fmt::format("    worst element {} (row {}): bits {} = {}\n", e.element, e.row, code_text(layout.format, e.code), e.value);
  if (digits.empty()) return text + "    the truth is a class, not a number\n";
  const Acceptance set = acceptance(layout.format, kNumber, e.mid, e.radius, e.tau);
  text += fmt::format("    truth {} (certified digits)\n    tau {:.6e}, accepted bits {} .. {}, used {:.6g}\n", digits, e.tau,
                      code_text(layout.format, encode(layout.format, set.low)),
                      code_text(layout.format, encode(layout.format, set.high)), e.used);
  for (const TierMeasure& tier : m.tiers)
    text += fmt::format("    {}: {} of {} rejected, {} equal to the rounded replay; worst element {}: replay {:.10g}, tau {:.6e}, "
                        "used {:.6g}\n", level_name(tier.level), tier.rejected, tier.judged, tier.bit_equal, tier.worst.element,
                        tier.worst.mid, tier.worst.tau, tier.worst.used);
  return text;
}

/// What the judges of other projects say of the very same outputs.
std::string opinions(const JudgedRun& run) {
  std::string text;
  for (const Judge* judge : all_judges())
    if (const std::optional<Opinion> opinion = judge->judge(run))
      text += fmt::format("judge     {} {}: {}\n", judge->name, opinion->passes ? "PASSES" : "fails", opinion->reason);
  return text;
}

std::string hash_of(const std::vector<Tensor>& tensors) {
  std::vector<std::byte> all;
  for (const Tensor& tensor : tensors) all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
  return content_hash(all);
}

int repro(const Options& options) {
  const Case c = parse_case(options.line);
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(options.deadline), options.plugins);
  const KernelIdentity kernel = kernel_named(*fleet, options.kernel);
  if (kernel.op != c.op) throw InputError("--kernel " + kernel.name + ": computes " + kernel.op + ", not " + c.op);
  const Problem problem = materialize(c);
  const RunOutcome run = fleet->run(options.kernel, problem.params, problem.inputs, problem.outputs);
  const std::string output_hash = run.status == RunStatus::kOk ? hash_of(run.outputs) : "none";
  if (!options.dump.empty()) {
    if (run.status != RunStatus::kOk) throw InputError("--dump " + options.dump + ": the run gave no outputs: " + run.reason);
    write_dump(options.dump, c, problem, run.outputs, run.declared);
  }
  Record record = judge_outputs(c, problem, run.declared, run, options.level);
  record.kernel = options.kernel;
  record.suite = "repro";
  record.repro = plugin_repro(kernel, record.case_line);
  if (options.json) {
    fmt::print("{}", json_text(to_json({record}, environment())));
    return exit_code(summarize({record}));
  }
  fmt::print("case      {}\nkernel    {} {}\ndeclared  {}\ninputs    xxh64 {}\noutputs   xxh64 {}\n", record.case_line,
             record.kernel, record.variant, to_json(run.declared).dump(), hash_of(problem.inputs), output_hash);
  for (std::size_t i = 0; i < record.measurement.outputs.size(); ++i)
    fmt::print("{}", worst_element(op_named(c.op), problem, i, record.measurement.outputs[i]));
  for (const KnownWrong& wrong : record.known_wrong)
    if (wrong.applicable) fmt::print("  {:<22} {}\n", wrong.name, wrong.rejected ? "would be rejected" : "would PASS here");
  if (!run.outputs.empty()) {
    const Truth truth = op_named(c.op).evaluate(problem, run.declared, Level::kT0).truth;
    fmt::print("{}", opinions({c, problem, truth, run.outputs}));
  }
  for (const std::string& warning : record.warnings) fmt::print("warning   {}\n", warning);
  const Verdict& v = record.verdict;
  fmt::print("verdict   {}{}{}{}{}\n", verdict_name(v.kind), v.level.empty() ? "" : " " + v.level, v.mode.empty() ? "" : " " + v.mode,
             v.evidence.empty() ? "" : ": " + v.evidence, v.reason.empty() ? "" : ": " + v.reason);
  return exit_code(summarize({record}));
}

}  // namespace

void add_repro(Verb& app, int& exit_code) {
  Verb verb = app.add("repro", "one case in full: bits, certified digits, bound, verdict, and what the judges of other projects say");
  const auto o = std::make_shared<Options>();
  verb.option("case", o->line, "case line").required();
  verb.option("--kernel", o->kernel, "kernel name").required();
  add_plugin_option(verb, o->plugins);
  verb.option("--dump", o->dump, "write inputs, outputs and the case to a safetensors file for `assay judge`");
  verb.option("--deadline", o->deadline, "seconds after which the run counts as hung").range(1, 86400);
  add_level_option(verb, o->level);
  verb.flag("--json", o->json, "print the JSON document instead of text");
  verb.callback([o, &exit_code] { exit_code = repro(*o); });
}

}  // namespace assay

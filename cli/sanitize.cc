// Cases under compute-sanitizer become records: what it reports is the verdict.
#include "cli/sanitize.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/materialize.h"
#include "cli/fleet.h"
#include "fuzz/sanitize.h"
#include "fuzz/suites.h"
#include "kernels/sanitizer.h"
#include "oracle/error.h"
#include "reports/view.h"

namespace assay {
namespace {

/// One run to make and what came of it.
struct Run {
  const SanitizeItem* item;
  const KernelIdentity* kernel;
  RunOutcome outcome;
  std::vector<SanitizerFinding> findings;
};

/// Makes the runs under the tool, many in one process; fills their outcomes and findings.
void watch(SanitizedWorker& worker, std::vector<Run>& runs) {
  Watched process;
  process.run = [&](std::size_t i) {
    Run& run = runs[i];
    const Problem problem = materialize(run.item->c);
    run.outcome = worker.runner().run(run.kernel->name, problem.params, problem.inputs, problem.outputs);
    return run.outcome.status == RunStatus::kOk || run.outcome.status == RunStatus::kSkipped;
  };
  process.has_spoken = [&] { return worker.has_spoken(); };
  process.close = [&] { return worker.close(); };
  std::vector<std::vector<SanitizerFinding>> findings = findings_by_run(runs.size(), process);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].findings = std::move(findings[i]);
}

Verdict verdict_of(const std::string& tool, const Run& run) {
  Verdict verdict;
  if (!run.findings.empty()) {
    std::int64_t others = -run.findings.front().reports;
    for (const SanitizerFinding& finding : run.findings) others += finding.reports;
    verdict = {.kind = CaseVerdict::kFinding,
               .level = "invariant",
               .mode = tool,
               .evidence = run.findings.front().text,
               .reason = {}};
    if (run.findings.front().reports > 1) verdict.evidence += fmt::format(" ({} times)", run.findings.front().reports);
    if (others > 0) verdict.evidence += fmt::format("; {} reports of {} other places", others, run.findings.size() - 1);
    return verdict;
  }
  verdict.reason = run.outcome.reason;
  switch (run.outcome.status) {
    case RunStatus::kSkipped: verdict.kind = CaseVerdict::kSkipped; break;
    case RunStatus::kCrashed: verdict.kind = CaseVerdict::kCrashed; break;
    case RunStatus::kHung: verdict.kind = CaseVerdict::kHung; break;
    case RunStatus::kOk: break;
  }
  return verdict;
}

Record record_of(const std::string& tool, const Run& run) {
  Record record;
  record.suite = run.item->suite;
  record.case_line = print_case(run.item->c);
  record.kernel = run.kernel->name;
  record.variant = run.outcome.facts.variant;
  record.device = run.outcome.facts.device;
  record.declared = run.outcome.declared;
  record.bound_level = tool;
  record.verdict = verdict_of(tool, run);
  record.cells = coverage_cells(run.item->c);
  record.repro =
      fmt::format("assay check {} --sanitize {} --case {}", record.kernel, tool, shell_quoted(record.case_line));
  return record;
}

}  // namespace

std::vector<Record> sanitize(const SanitizeOptions& options, const std::vector<KernelIdentity>& kernels,
                             const std::vector<SanitizeItem>& items) {
  if (std::none_of(kernels.begin(), kernels.end(), [](const KernelIdentity& kernel) { return kernel.device; }))
    throw InputError("--sanitize " + options.tool + ": none of the kernels runs on a device");
  const std::string sanitizer = find_sanitizer();
  std::vector<Record> records;
  for (const bool mutants : {false, true}) {
    std::vector<Run> runs;
    for (const SanitizeItem& item : items)
      for (const KernelIdentity& kernel : kernels)
        if (kernel.device && kernel.mutant == mutants && takes(kernel, item.c))
          runs.push_back({&item, &kernel, {}, {}});
    if (runs.empty()) continue;
    SanitizedWorker worker(sanitizer, {options.tool, worker_command(mutants), options.deadline});
    watch(worker, runs);
    for (const Run& run : runs) records.push_back(record_of(options.tool, run));
  }
  return records;
}

}  // namespace assay

// The straight line: a case goes in, a record comes out.
#pragma once

#include <functional>
#include <string_view>

#include "cases/case.h"
#include "failure_catalog/scene.h"
#include "fuzz/repeat.h"
#include "kernels/runner.h"
#include "reports/record.h"

namespace assay {

/// How far a judgement goes.
struct Judging {
  Judging(Level highest = Level::kT1) : level(highest) {}
  Level level;           ///< the highest that is tried; what the kernel declares decides whether it is reached
  bool evidence = true;  ///< false: the verdict alone, without warnings, inferred structure and known-wrong outputs
  std::function<void(const Scene&)> observe = nullptr;  ///< called with what a verdict on outputs is made of
};

/// parse -> materialize -> kernel -> oracle -> measure -> classify -> record. Throws InputError for a bad case line only.
/// `repeats`: runs that must give the same bits; those that do not are a failure of level "invariant".
Record run_case(const Case& c, std::string_view kernel, Runner& runner, const Judging& judging = {},
                const Repeats& repeats = {});

/// run_case behind `materialize`, for callers that run several kernels on one case's bits.
Record run_problem(const Case& c, const Problem& problem, std::string_view kernel, Runner& runner,
                   const Judging& judging = {}, const Repeats& repeats = {});

/// The same verdict for outputs somebody already has (`assay judge`). `experiment`: the kernel, where it can be asked
/// again.
Record judge_outputs(const Case& c, const Problem& problem, const Arithmetic& declared, const RunOutcome& run,
                     const Judging& judging = {}, Experiment* experiment = nullptr);

}  // namespace assay

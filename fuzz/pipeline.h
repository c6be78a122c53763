// The straight line: a case goes in, a record comes out.
#pragma once

#include <string_view>

#include "cases/case.h"
#include "fuzz/repeat.h"
#include "kernels/runner.h"
#include "reports/record.h"

namespace assay {

/// parse -> materialize -> kernel -> oracle -> measure -> classify -> record. Throws InputError for a bad case line only.
/// `level`: the highest that is tried; what the kernel declares decides whether it is reached.
/// `repeats`: runs that must give the same bits; those that do not are a failure of level "invariant".
Record run_case(const Case& c, std::string_view kernel, Runner& runner, Level level = Level::kT1,
                const Repeats& repeats = {});

/// run_case behind `materialize`, for callers that run several kernels on one case's bits.
Record run_problem(const Case& c, const Problem& problem, std::string_view kernel, Runner& runner,
                   Level level = Level::kT1, const Repeats& repeats = {});

/// The same verdict for outputs somebody already has (`assay judge`). `experiment`: the kernel, where it can be asked
/// again.
Record judge_outputs(const Case& c, const Problem& problem, const Arithmetic& declared, const RunOutcome& run,
                     Level level = Level::kT1, Experiment* experiment = nullptr);

}  // namespace assay

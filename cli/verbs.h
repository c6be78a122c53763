// The verbs of `assay`, one file each: every function adds its subcommand, whose callback sets the exit code.
#pragma once

#include <string>

#include "cli/verb.h"
#include "oracle/truth.h"

namespace assay {

void add_bench_attack(Verb& app, int& exit_code);
void add_bench_floors(Verb& app, int& exit_code);
void add_bench_fuzz(Verb& app, int& exit_code);
void add_bench_kernels(Verb& app, int& exit_code);
void add_bench_mutants(Verb& app, int& exit_code);
void add_bench_oracle(Verb& app, int& exit_code);
void add_bench_radius(Verb& app, int& exit_code);
void add_check(Verb& app, int& exit_code);
void add_doctor(Verb& app, int& exit_code);
void add_explain(Verb& app, int& exit_code);
void add_fingerprint(Verb& app, int& exit_code);
void add_fuzz(Verb& app, int& exit_code);
void add_judge(Verb& app, int& exit_code);
void add_list(Verb& app, int& exit_code);
void add_minimize(Verb& app, int& exit_code);
void add_mutants(Verb& app, int& exit_code);
void add_report(Verb& app, int& exit_code);
void add_repro(Verb& app, int& exit_code);
void add_tolerance(Verb& app, int& exit_code);
void add_tomography(Verb& app, int& exit_code);

/// The verb `bench`, under which the measurements of assay itself stand; added where it is not there yet.
Verb bench_group(Verb& app);

/// `--level t0|t1|t2`: the highest level to try.
void add_level_option(Verb& verb, Level& level);

}  // namespace assay

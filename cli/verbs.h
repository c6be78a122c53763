// The verbs of `assay`, one file each: every function adds its subcommand, whose callback sets the exit code.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "oracle/truth.h"

namespace assay {

void add_bench_attack(CLI::App& app, int& exit_code);
void add_bench_kernels(CLI::App& app, int& exit_code);
void add_bench_mutants(CLI::App& app, int& exit_code);
void add_bench_oracle(CLI::App& app, int& exit_code);
void add_bench_radius(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_judge(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_repro(CLI::App& app, int& exit_code);
void add_tolerance(CLI::App& app, int& exit_code);

/// The verb `bench`, under which the measurements of assay itself stand; added where it is not there yet.
CLI::App& bench_group(CLI::App& app);

/// `--level t0|t1|t2`: the highest level to try.
void add_level_option(CLI::App& verb, Level& level);

/// Writes text to a file, or throws EnvironmentError naming it; the old file stays if the disk is full.
void write_file(const std::string& path, const std::string& text);

}  // namespace assay

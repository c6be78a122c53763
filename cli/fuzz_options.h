// What `assay fuzz` is told, and its form as a Slurm job array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

struct FuzzOptions {
  std::vector<std::string> kernels, ops, plugins, sbatch;
  std::string time, dir, resume, known, json;
  std::int64_t runs = 0;
  unsigned jobs = 0;
  int deadline = 60, slurm = 0, member = -1;
  std::uint64_t seed = 1;
  bool device = false, no_submit = false;
};

/// This process's own command line, quoted for a shell.
std::string typed_command();

/// The script of a job array: `options.slurm` members, each a call of `program` for one member of `options.dir`.
/// Throws InputError for options that an array cannot have.
std::string array_script(const FuzzOptions& options, const std::string& program);

/// Writes DIR/campaign.sbatch and hands it to sbatch unless options.no_submit. Returns the exit code; throws
/// EnvironmentError without sbatch.
int submit_array(const FuzzOptions& options);

}  // namespace assay

// The job array: a script for sbatch, whose tasks are members of one campaign.
#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/fuzz_options.h"
#include "cli/verbs.h"
#include "fuzz/durable_file.h"
#include "fuzz/duration.h"
#include "oracle/error.h"
#include "reports/view.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

/// For the start, the last execution, and the merge of the corpus, which may take a tenth of the time.
constexpr double kSlackMinutes = 10, kSlackShare = 0.25;

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / program)) return true;
  return false;
}

/// As it was probably typed: quoted only where a shell needs it.
std::string typed_word(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                          "_-+=./,:@%") == std::string::npos;
  return plain ? word : shell_quoted(word);
}

}  // namespace

std::string typed_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command;
  for (std::string word; std::getline(file, word, '\0');) command += (command.empty() ? "" : " ") + typed_word(word);
  return command;
}

std::string array_script(const FuzzOptions& o, const std::string& program) {
  if (!o.resume.empty())
    throw InputError("--resume " + o.resume + ": submit the script in the folder again instead of --slurm");
  if (o.member >= 0) throw InputError(fmt::format("--member {}: not with --slurm", o.member));
  if (!o.json.empty()) throw InputError("--json " + o.json + ": not with --slurm; the summary is in the folder");
  const double seconds = read_duration(o.time.empty() ? "10m" : o.time, "--time");
  const unsigned jobs = o.jobs > 0 ? o.jobs : 1;
  const std::string dir = fs::absolute(o.dir).string();
  std::string command = shell_quoted(program) + " fuzz";
  const auto add = [&](const std::string& name, const std::string& value) {
    command += " " + name + " " + shell_quoted(value);
  };
  for (const std::string& kernel : o.kernels) command += " " + shell_quoted(kernel);
  for (const std::string& op : o.ops) add("--op", op);
  for (const std::string& plugin : o.plugins) add("--plugin", fs::absolute(plugin).string());
  if (o.device) command += " --device";
  if (!o.known.empty()) add("--known", fs::absolute(o.known).string());
  if (o.runs > 0) add("--runs", std::to_string(o.runs));
  add("--time", fmt::format("{:.0f}s", seconds));
  add("--jobs", std::to_string(jobs));
  add("--deadline", std::to_string(o.deadline));
  add("--seed", std::to_string(o.seed));
  add("--dir", dir);
  std::string script = fmt::format(
      "#!/bin/sh\n# A fuzzing campaign as a job array; written by assay. A member that is put back into the queue goes "
      "on where it\n"
      "# stopped.\n#SBATCH --job-name=assay-fuzz\n#SBATCH --array=0-{}\n#SBATCH --ntasks=1\n#SBATCH "
      "--cpus-per-task={}\n"
      "#SBATCH --time={:.0f}\n#SBATCH --requeue\n#SBATCH --signal=B:TERM@60\n#SBATCH --output={}/members/%a.log\n"
      "#SBATCH --open-mode=append\n",
      o.slurm - 1, jobs, std::ceil(seconds / 60 * (1 + kSlackShare) + kSlackMinutes), dir);
  for (const std::string& option : o.sbatch) script += "#SBATCH " + option + "\n";
  if (const char* data = std::getenv("ASSAY_DATA")) script += "export ASSAY_DATA=" + shell_quoted(data) + "\n";
  return script + "exec " + command + " --member \"$SLURM_ARRAY_TASK_ID\"\n";
}

int submit_array(const FuzzOptions& o) {
  const fs::path dir = fs::absolute(o.dir), script = dir / "campaign.sbatch";
  const std::string text = array_script(o, fs::read_symlink("/proc/self/exe").string());
  fs::create_directories(dir / "members");
  write_durably(script.string(), text);
  if (o.no_submit) {
    fmt::print("{}\n", script.string());
    return 0;
  }
  if (!on_path("sbatch"))
    throw EnvironmentError("there is no sbatch here; the script is written: submit " + script.string() +
                           " on a machine of the cluster (Debian: package slurm-client)");
  const int status = std::system(("sbatch " + shell_quoted(script.string())).c_str());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw EnvironmentError("sbatch refused " + script.string());
  return 0;
}

}  // namespace assay

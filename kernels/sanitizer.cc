// Starting compute-sanitizer around a worker, and reading its log files.
#include "kernels/sanitizer.h"

#include <stdlib.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "kernels/worker.h"
#include "oracle/error.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kSilence{50};  ///< from a run's end to the tool's last word about it
constexpr std::string_view kBanner = "========= COMPUTE-SANITIZER\n";

fs::path fresh_folder() {
  std::string name = (fs::temp_directory_path() / "assay_sanitizer_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw EnvironmentError("--sanitize: cannot create a folder like " + name);
  return name;
}

std::unique_ptr<Runner> watched_worker(const std::string& sanitizer, const SanitizerOptions& options,
                                       const fs::path& folder) {
  WorkerOptions worker;
  // Errors of CUDA calls are the runs' own to report; one log file per process.
  worker.command = {sanitizer, "--tool", options.tool, "--log-file", (folder / "%p.log").string()};
  if (options.tool == "memcheck") worker.command.insert(worker.command.end(), {"--report-api-errors", "no"});
  worker.command.insert(worker.command.end(), options.command.begin(), options.command.end());
  worker.deadline = options.deadline;
  worker.bare = true;
  return worker_runner(worker);
}

}  // namespace

std::string find_sanitizer() {
  std::vector<fs::path> folders;
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) folders.emplace_back(folder);
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "bin");
  folders.emplace_back("/usr/local/cuda/bin");
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (const fs::path file = folder / "compute-sanitizer"; fs::is_regular_file(file, ignored)) return file.string();
  }
  throw EnvironmentError(
      "--sanitize needs compute-sanitizer of the CUDA toolkit, which is neither on PATH nor in CUDA_HOME");
}

SanitizedWorker::SanitizedWorker(const std::string& sanitizer, const SanitizerOptions& options)
    : folder_(fresh_folder()), runner_(watched_worker(sanitizer, options, folder_)) {}

SanitizedWorker::~SanitizedWorker() {
  runner_.reset();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string SanitizedWorker::log() const {
  std::string text;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    text += content.str();
  }
  return text;
}

bool SanitizedWorker::has_spoken() const {
  for (std::size_t before = log().size();;) {
    std::this_thread::sleep_for(kSilence);
    const std::size_t now = log().size();
    if (now == before) return now > kBanner.size();
    before = now;
  }
}

std::string SanitizedWorker::close() {
  runner_->restart();
  std::string text = log();
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::error_code ignored;
    fs::remove(entry.path(), ignored);
  }
  return text;
}

}  // namespace assay

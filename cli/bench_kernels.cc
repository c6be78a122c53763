// `assay bench kernels`: our device kernels timed beside PyTorch's, in a Python process that holds both.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cases/file_source.h"
#include "cli/verbs.h"
#include "oracle/error.h"

namespace assay {
namespace {

struct Options {
  std::string python = "python3", library;
  std::vector<std::string> kernels;
  int rounds = 21;
  bool json = true;  ///< the only form there is
};

/// Beside the program as the build leaves it, or in the bundle's lib folder.
std::string library_beside_program() {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const std::filesystem::path& path : {folder / "assay_torch_bench.so", folder.parent_path() / "lib/assay_torch_bench.so"})
    if (std::filesystem::exists(path)) return path;
  throw EnvironmentError("assay_torch_bench.so: not beside this program (./dev bundle builds it where nvcc is)");
}

/// Becomes the Python process; returns only to throw.
void bench_kernels(const Options& options) {
  std::vector<std::string> words{options.python, find_data_file("bench/kernels_vs_torch.py"),
                                 options.library.empty() ? library_beside_program() : options.library,
                                 "--rounds", std::to_string(options.rounds)};
  for (const std::string& kernel : options.kernels) words.insert(words.end(), {"--kernel", kernel});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw EnvironmentError(options.python + ": " + std::strerror(errno));
}

}  // namespace

void add_bench_kernels(Verb& app, int&) {
  Verb verb = bench_group(app).add(
      "kernels", "our device kernels beside PyTorch's attention backends on this GPU, as ratios; JSON, a table on standard error");
  const auto o = std::make_shared<Options>();
  verb.option("--kernel", o->kernels, "fa2_cuda_bf16, fa2_cuda_fp16, fa4_cuda_bf16, fa4_cuda_fp16 (repeatable)")
      .one_each();
  verb.option("--rounds", o->rounds, "medians are over so many rounds (default 21)").positive();
  verb.option("--python", o->python, "a Python with torch (default python3)");
  verb.option("--library", o->library, "our kernels as a shared object (default: the one beside this program)");
  verb.flag("--json", o->json, "as JSON, which is what it prints in any case");
  verb.callback([o] { bench_kernels(*o); });
}

}  // namespace assay

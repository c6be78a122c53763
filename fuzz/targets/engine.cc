// The fuzz program's side of libFuzzer: chooses the target, and hands over inputs and mutations.
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/signal.h"
#include "fuzz/targets/op_target.h"
#include "fuzz/targets/target.h"
#include "kernels/worker.h"
#include "oracle/error.h"
#include "oracle/op.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t longest) __attribute__((weak));

namespace assay {
namespace {

std::unique_ptr<Target> target;

void print_usage() {
  std::fputs(
      "usage: assay_fuzz TARGET [--kernel=NAME[,NAME]] [--plugin=FILE] [--device] [--findings=DIR [--stop]]\n"
      "         [--stats=FILE] [--no-signal] [--no-recipes] [libFuzzer's options] [FOLDER|FILE]...\n"
      "       assay_fuzz OP --list-regimes\n\ntargets:\n",
      stderr);
  for (const TargetInfo& info : all_targets()) std::fprintf(stderr, "  %-16s %s\n", info.name.c_str(), info.summary.c_str());
}

void add_names(std::vector<std::string>& names, std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) names.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

/// Our own options, all of the form --name or --name=value: libFuzzer passes over them, also in the processes that it
/// starts itself.
bool read_option(std::string_view argument, TargetOptions& options) {
  const std::size_t equals = std::min(argument.find('='), argument.size());
  const std::string_view name = argument.substr(0, equals), value = argument.substr(std::min(equals + 1, argument.size()));
  const auto flag = [&](std::string_view its, bool& where, bool to) { return argument == its && (where = to, true); };
  const auto text = [&](std::string_view its, std::string& where) { return name == its && (where = value, !value.empty()); };
  if (name == "--kernel" && !value.empty()) return add_names(options.kernels, value), true;
  if (name == "--plugin" && !value.empty()) return options.plugins.emplace_back(value), true;
  return flag("--device", options.device, true) || flag("--no-signal", options.signal, false) ||
         flag("--no-recipes", options.recipes, false) || flag("--stop", options.stop, true) ||
         text("--findings", options.findings) || text("--stats", options.stats);
}

/// The processes that libFuzzer starts for a merge end with the one that started them, as that one ends with its campaign.
void end_with_parent() {
  if (std::getenv("ASSAY_FUZZ_SUPERVISED") != nullptr) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int open_target(int argc, char** argv) {
  end_with_parent();
  if (argc >= 2 && std::string_view(argv[1]) == "worker")
    return serve_worker(0, 1, argc > 3 && std::string_view(argv[2]) == "--plugin" ? argv[3] : "");
  const std::vector<TargetInfo> targets = all_targets();
  std::string_view name = argc >= 2 ? argv[1] : "";
  if (name.starts_with("--target=")) name.remove_prefix(9);
  const auto chosen = std::find_if(targets.begin(), targets.end(), [&](const TargetInfo& t) { return t.name == name; });
  if (chosen == targets.end()) return print_usage(), 2;
  TargetOptions options;
  for (int i = 2; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--list-regimes" && chosen->open == open_op_target)
      return std::fputs(regime_list(chosen->name).c_str(), stdout), 0;
    if (argument.starts_with("--") && !read_option(argument, options)) {
      std::fprintf(stderr, "assay_fuzz: option %s: there is none of that form\n", argv[i]);
      return print_usage(), 2;
    }
  }
  target = chosen->open(chosen->name, options);
  return -1;
}

/// Whatever cannot be written is no finding: one line, and the exit code of a machine's fault.
template <class Work>
int or_end(Work&& work) {
  try {
    return work();
  } catch (const EnvironmentError& error) {
    std::fprintf(stderr, "assay_fuzz: %s\n", error.what());
    std::_Exit(3);
  }
}

std::size_t given(const std::string& text, std::uint8_t* data, std::size_t longest) {
  if (text.size() > longest) return 0;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

}  // namespace
}  // namespace assay

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  int code = -1;
  try {
    code = assay::open_target(*argc, *argv);
  } catch (const assay::InputError& error) {
    std::fprintf(stderr, "assay_fuzz: %s\n", error.what());
    code = 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "assay_fuzz: %s\n", error.what());
    code = 3;
  }
  if (code >= 0) std::exit(code);
  // The target's name becomes an option too: libFuzzer takes other words for files.
  static std::string name = (*argv)[1];
  if (!name.starts_with("--")) name = "--target=" + name;
  (*argv)[1] = name.data();
  std::atexit([] {
    assay::or_end([] { return assay::target->finish(), 0; });
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::signal_feature(0);  // libFuzzer ends if its first inputs have no feature at all
  return assay::or_end([&] { return assay::target->run({data, size}); });
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t longest, unsigned seed) {
  const std::string next = assay::target->mutate({data, size}, seed);
  if (next.empty()) return LLVMFuzzerMutate(data, size, longest);
  return assay::given(next, data, longest);
}

// A fuzzing engine for tests of campaigns: the flags and files of assay_fuzz over forty inputs, and every way to die.
//
// Input n (1..40) is the line "attention sq=n". Execution i takes input 1 + 7 * (i + seed) % 40 and stores it if the
// corpus has not got it. Environment variable FAKE_ENGINE holds what goes wrong, "crash=12 once=/tmp/x":
//   crash=n, hang=n   leaves an artifact at input n and exits as libFuzzer does
//   exit=c, at=n      exits with code c at input n, without an artifact; signal=s, at=n  likewise
//   torn=n            writes half of input n's file and then waits to be killed
//   once=FILE         only if FILE does not exist; makes it
//   delay=ms          per execution (default 1)
//   pid=FILE          appends its process number
//   findings=1        inputs 3, 13, 23 and 33 are failures, which go to the store
//   limit=bytes       of a file that it may write
//   args=FILE         appends its arguments and CUDA_VISIBLE_DEVICES
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cases/case.h"
#include "fuzz/durable_file.h"
#include "fuzz/finding_store.h"
#include "fuzz/sha1.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string target, findings, stats;
  std::vector<std::string> kernels;
  std::map<std::string, std::string> flags;  ///< libFuzzer's
  std::vector<std::string> paths;
  bool list_regimes = false;
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  a.target = argc > 1 ? argv[1] : "";
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t at = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, at), value = word.substr(std::min(at + 1, word.size()));
    if (name == "--list-regimes")
      a.list_regimes = true;
    else if (name == "--findings")
      a.findings = value;
    else if (name == "--stats")
      a.stats = value;
    else if (name == "--kernel") {
      std::istringstream names(value);
      for (std::string kernel; std::getline(names, kernel, ',');) a.kernels.push_back(kernel);
    } else if (!name.starts_with("-"))
      a.paths.push_back(word);
    else
      a.flags[name.substr(1)] = value;
  }
  return a;
}

std::map<std::string, std::string> troubles() {
  std::map<std::string, std::string> all;
  const char* text = std::getenv("FAKE_ENGINE");
  std::istringstream words(text != nullptr ? text : "");
  for (std::string word; words >> word;) all[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  return all;
}

void append(const std::string& file, const std::string& text) { std::ofstream(file, std::ios::app) << text; }

[[noreturn]] void disk_full(const std::exception& error) {
  std::fprintf(stderr, "assay_fuzz: %s\n", error.what());
  std::_Exit(3);
}

class Engine {
 public:
  Engine(Arguments arguments, std::map<std::string, std::string> trouble)
      : a_(std::move(arguments)), trouble_(std::move(trouble)) {}

  int fuzz() {
    const long runs = number(a_.flags, "runs", 0), limit = number(a_.flags, "max_total_time", 0);
    const long seed = number(a_.flags, "seed", 0), delay = number(trouble_, "delay", 1);
    const auto start = std::chrono::steady_clock::now();
    auto written = start;
    for (long i = 0; runs == 0 || i < runs; ++i) {
      execute(static_cast<int>(1 + 7 * (i + seed) % 40));
      std::this_thread::sleep_for(std::chrono::milliseconds(delay));
      const auto now = std::chrono::steady_clock::now();
      seconds_ = std::chrono::duration<double>(now - start).count();
      if (now - written > std::chrono::milliseconds(20)) {
        write_stats();
        written = now;
      }
      if (limit > 0 && seconds_ >= static_cast<double>(limit)) break;
    }
    write_stats();
    return 0;
  }

  /// Of the two inputs 2k and 2k + 1 one is enough: the smaller file.
  int merge() const {
    std::set<int> have;
    for (const auto& file : fs::directory_iterator(a_.paths.at(0))) have.insert(input_of(file.path()) / 2);
    std::map<int, fs::path> best;
    for (const auto& file : fs::directory_iterator(a_.paths.at(1))) {
      const int n = input_of(file.path());
      if (have.contains(n / 2)) continue;
      fs::path& mine = best[n / 2];
      if (mine.empty() || read_whole(file.path().string()) < read_whole(mine.string())) mine = file.path();
    }
    for (const auto& [feature, file] : best)
      fs::copy_file(file, fs::path(a_.paths[0]) / sha1(read_whole(file.string())),
                    fs::copy_options::overwrite_existing);
    return 0;
  }

  int repeat() {
    execute(input_of(a_.paths.at(0)));
    return 0;
  }

 private:
  static long number(const std::map<std::string, std::string>& from, const std::string& name, long otherwise) {
    const auto at = from.find(name);
    return at == from.end() ? otherwise : std::atol(at->second.c_str());
  }
  static std::string line(int n) { return "attention sq=" + std::to_string(n); }
  static int input_of(const fs::path& file) {
    const std::string text = read_whole(file.string());
    return std::atoi(text.substr(text.find('=') + 1).c_str());
  }

  bool due(const char* trouble, int n) {
    if (number(trouble_, trouble, 0) != n) return false;
    if (!trouble_.contains("once") || a_.flags.contains("handle_segv")) return true;
    if (fs::exists(trouble_["once"])) return false;
    std::ofstream(trouble_["once"]) << n;
    return true;
  }

  void leave(const std::string& kind, int n) const {
    std::ofstream(a_.flags.at("artifact_prefix") + kind + "-" + sha1(line(n))) << line(n);
  }

  /// As an engine without a sanitizer dies, also where this one has a sanitizer's handlers.
  static void die_of(int signal) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }

  void execute(int n) {
    if (due("crash", n)) {
      if (a_.flags.contains("handle_segv")) die_of(SIGSEGV);
      leave("crash", n);
      std::fputs("==1== ERROR: libFuzzer: deadly signal\nSUMMARY: libFuzzer: deadly signal\n", stderr);
      std::_Exit(77);
    }
    if (due("hang", n)) {
      leave("timeout", n);
      std::fputs("SUMMARY: libFuzzer: timeout\n", stderr);
      std::_Exit(70);
    }
    if (trouble_.contains("at") && due("at", n)) {
      std::fputs("some last words\n", stderr);
      if (trouble_.contains("signal")) die_of(static_cast<int>(number(trouble_, "signal", 0)));
      std::_Exit(static_cast<int>(number(trouble_, "exit", 0)));
    }
    ++executions_;
    if (trouble_.contains("findings") && n % 10 == 3) find(n);
    regimes_.insert(n < 20 ? "short" : "long");
    const fs::path file = fs::path(a_.paths.at(0)) / sha1(line(n));
    if (fs::is_directory(a_.paths[0]) && !fs::exists(file)) store(file, n);
  }

  void find(int n) {
    Record record;
    record.case_line = print_case(parse_case(line(n)));
    record.kernel = a_.kernels.at(0);
    record.verdict = {.kind = CaseVerdict::kUnclassified, .level = "fail_t0", .mode = {}, .evidence = {}, .reason = {}};
    if (!store_) store_ = std::make_unique<FindingStore>(a_.findings);
    store_->add(record);
  }

  void store(const fs::path& file, int n) {
    const std::string text = line(n);
    const bool torn = due("torn", n);
    std::ofstream(file) << (torn ? text.substr(0, text.size() / 2) : text);
    while (torn) pause();
  }

  void write_stats() const {
    if (a_.stats.empty()) return;
    nlohmann::json kernels = nlohmann::json::object();
    for (const std::string& kernel : a_.kernels)
      kernels[kernel] = {{"executions", executions_}, {"worst", {{"T0 o", 0.25}}}, {"regimes", regimes_}};
    write_durably(a_.stats, nlohmann::json{{"executions", executions_},
                                           {"verdicts", {{"clean", executions_}}},
                                           {"seconds", seconds_},
                                           {"kernels", kernels}}
                                .dump(1));
  }

  Arguments a_;
  std::map<std::string, std::string> trouble_;
  std::int64_t executions_ = 0;
  double seconds_ = 0;
  std::set<std::string> regimes_;
  std::unique_ptr<FindingStore> store_;
};

int run(int argc, char** argv) {
  const Arguments a = parse(argc, argv);
  if (a.list_regimes) {
    std::fputs("a warning\n", stderr);
    std::puts("short\nlong\nnever");
    return 0;
  }
  std::map<std::string, std::string> trouble = troubles();
  if (trouble.contains("pid")) append(trouble["pid"], std::to_string(getpid()) + "\n");
  if (trouble.contains("args")) {
    std::string text;
    for (int i = 1; i < argc; ++i) text += std::string(argv[i]) + " ";
    const char* devices = std::getenv("CUDA_VISIBLE_DEVICES");
    append(trouble["args"], text + "devices=" + (devices != nullptr ? devices : "") + "\n");
  }
  if (trouble.contains("limit")) {
    const rlimit limit{static_cast<rlim_t>(std::atol(trouble["limit"].c_str())), RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  Engine engine(a, trouble);
  try {
    if (a.flags.contains("merge")) return engine.merge();
    if (fs::is_regular_file(a.paths.at(0))) return engine.repeat();
    return engine.fuzz();
  } catch (const std::exception& error) {
    disk_full(error);
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::run(argc, argv); }

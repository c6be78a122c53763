// Starts the fuzz program on one mutant at a time and reads when it stopped.
#include "fuzz/time_to_find.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "fuzz/engine_process.h"
#include "fuzz/parallel.h"
#include "oracle/error.h"

namespace assay {
namespace {

/// "... found after 17 executions", as the program says before it aborts.
std::int64_t executions_of(const std::string& text) {
  constexpr std::string_view kSays = "found after ";
  const std::size_t at = text.rfind(kSays);
  std::int64_t count = 0;
  if (at != std::string::npos) std::from_chars(text.data() + at + kSays.size(), text.data() + text.size(), count);
  return count;
}

std::string first_line_with(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return {};
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, std::min(text.find('\n', at), text.size()) - begin);
}

/// Where the inputs that stopped a search are left, for as long as the searches last.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "assay-find-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw EnvironmentError(name + ": cannot be made: " + std::strerror(errno));
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

Search search(const KernelIdentity& mutant, const FindOptions& options, std::uint64_t seed, const Folder& folder) {
  std::vector<std::string> argv{options.engine, mutant.op, "--kernel=" + mutant.name};
  argv.insert(argv.end(), options.arguments.begin(), options.arguments.end());
  argv.insert(argv.end(), {fmt::format("-seed={}", seed), "-max_total_time=86400",
                           fmt::format("-artifact_prefix={}/", folder.path), "-verbosity=0"});
  EngineProcess engine(argv, {});
  // A kernel may hang without using the core.
  const auto hopeless = engine.started() + std::chrono::milliseconds(static_cast<std::int64_t>(20'000 * options.limit));
  Search result{.found = false, .seconds = options.limit, .executions = 0, .verdict = {}};
  while (!engine.wait_until(EngineProcess::Clock::now() + std::chrono::milliseconds(100)))
    if (engine.cpu_seconds() >= options.limit || EngineProcess::Clock::now() >= hopeless) return result;
  const double seconds = engine.cpu_seconds();
  result.executions = executions_of(engine.tail());
  result.found = result.executions > 0 || engine.signalled();
  if (!result.found)
    throw EnvironmentError(fmt::format("{} on {} ended by itself: {}\n{}", options.engine, mutant.name, engine.how(), engine.tail()));
  if (engine.tail().find(mutant.name + ": uncertain") != std::string::npos)  // no finding: the oracle's own failure
    throw EnvironmentError(fmt::format("the oracle cannot decide a case of {}:\n{}", mutant.name, engine.tail()));
  result.seconds = seconds;
  result.verdict = first_line_with(engine.tail(), mutant.name + ": ");
  return result;
}

}  // namespace

double TimeToFind::median() const {
  std::vector<double> seconds;
  for (const Search& one : searches) seconds.push_back(one.seconds);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

std::vector<TimeToFind> time_to_find(const std::vector<KernelIdentity>& mutants, const FindOptions& options) {
  std::vector<TimeToFind> results;
  for (const KernelIdentity& mutant : mutants)
    results.push_back({.mutant = mutant, .searches = std::vector<Search>(options.seeds.size())});
  const Folder folder;
  in_parallel(mutants.size() * options.seeds.size(), options.jobs, in_process_runner, {}, [&](std::size_t i, Runner&) {
    const std::size_t mutant = i / options.seeds.size(), seed = i % options.seeds.size();
    results[mutant].searches[seed] = search(mutants[mutant], options, options.seeds[seed], folder);
  });
  return results;
}

}  // namespace assay

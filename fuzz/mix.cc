// Reads the mix, and runs it down the straight line as fast as it goes.
#include "fuzz/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "cases/file_source.h"
#include "cases/materialize.h"
#include "fuzz/pipeline.h"
#include "fuzz/signature.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::int64_t scores_of(const Case& c) {
  std::int64_t scores = 0;
  for (const RowFacts& row : op_named(c.op).evaluate(materialize(c), {}, Level::kT0).truth.rows) scores += row.keys;
  return scores;
}

}  // namespace

std::vector<MixCase> read_mix(const std::string& file) {
  std::ifstream in(find_data_file(file));
  std::vector<MixCase> mix;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    try {
      mix.push_back({.kernel = line.substr(0, space), .c = parse_case(line.substr(std::min(space + 1, line.size())))});
      mix.back().scores = scores_of(mix.back().c);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}:{}: {}", file, number, error.what()));
    }
  }
  if (mix.empty()) throw InputError(file + ": no case");
  return mix;
}

std::vector<MixCase> small_half(const std::vector<MixCase>& mix) {
  std::vector<std::int64_t> scores;
  for (const MixCase& item : mix) scores.push_back(item.scores);
  const auto middle = scores.begin() + static_cast<std::ptrdiff_t>(scores.size() / 2);
  std::nth_element(scores.begin(), middle, scores.end());
  std::vector<MixCase> small;
  for (const MixCase& item : mix)
    if (item.scores < *middle) small.push_back(item);
  return small;
}

namespace {

/// One thread's part: cases by number until `stop`, which the first to begin a round too late sets.
struct Rounds {
  const std::vector<MixCase>& mix;
  const Judging& judging;
  double seconds;
  std::uint64_t seed;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::atomic<std::size_t> next{0}, stop{std::numeric_limits<std::size_t>::max()};

  double passed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

  void run(Runner& runner, Throughput& sum) {
    for (std::size_t n; (n = next++) < stop;) {
      if (n > 0 && n % mix.size() == 0 && passed() >= seconds) {
        stop = n;
        return;
      }
      verify(mix[n % mix.size()], n, runner, sum);
    }
  }

  void verify(MixCase item, std::size_t n, Runner& runner, Throughput& sum) const {
    std::uint64_t fresh = seed + (n << 8);
    for (auto& [role, source] : item.c.sources)
      if (source.recipe != "file") source.seed = ++fresh;
    const Record record = run_case(item.c, item.kernel, runner, judging);
    if (record.verdict.kind == CaseVerdict::kSkipped) {
      ++sum.left_out;
      return;
    }
    if (is_failure(record) || record.verdict.kind == CaseVerdict::kUncertain)
      throw std::runtime_error(fmt::format("{} fails on {}: {} {}", item.kernel, record.case_line,
                                           record.verdict.evidence, record.verdict.reason));
    ++sum.cases;
    sum.scores += item.scores;
    sum.kernel_seconds += record.kernel_seconds;
    sum.oracle_seconds += record.oracle_seconds;
  }
};

}  // namespace

Throughput verify_mix(const std::vector<MixCase>& mix, const OpenRunner& open, unsigned threads, Level level,
                      double seconds, std::uint64_t seed) {
  Judging judging(level);
  judging.evidence = false;
  std::vector<Throughput> parts(threads);
  std::vector<std::unique_ptr<Runner>> runners;
  for (unsigned i = 0; i < threads; ++i) {
    runners.push_back(open());
    run_case(mix.front().c, mix.front().kernel, *runners.back(),
             judging);  // workers and devices start outside the measurement
  }
  std::mutex mutex;
  const OpenRunner take = [&] {
    const std::lock_guard lock(mutex);
    std::unique_ptr<Runner> runner = std::move(runners.back());
    runners.pop_back();
    return runner;
  };
  Rounds rounds{.mix = mix, .judging = judging, .seconds = seconds, .seed = seed};
  in_parallel(threads, threads, take, {}, [&](std::size_t i, Runner& runner) { rounds.run(runner, parts[i]); });
  Throughput sum;
  sum.seconds = rounds.passed();
  for (const Throughput& part : parts) {
    sum.cases += part.cases, sum.scores += part.scores, sum.left_out += part.left_out;
    sum.kernel_seconds += part.kernel_seconds / threads, sum.oracle_seconds += part.oracle_seconds / threads;
  }
  return sum;
}

}  // namespace assay

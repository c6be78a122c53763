// Reads the mix, and runs it down the straight line as fast as it goes.
#include "fuzz/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
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

Throughput verify_mix(const std::vector<MixCase>& mix, Runner& runner, Level level, double seconds, std::uint64_t seed) {
  Judging judging(level);
  judging.evidence = false;
  Throughput sum;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (MixCase item : mix) {
      for (auto& [role, source] : item.c.sources)
        if (source.recipe != "file") source.seed = ++seed;
      const Record record = run_case(item.c, item.kernel, runner, judging);
      if (record.verdict.kind == CaseVerdict::kSkipped) {
        ++sum.left_out;
        continue;
      }
      if (is_failure(record) || record.verdict.kind == CaseVerdict::kUncertain)
        throw std::runtime_error(fmt::format("{} fails on {}: {} {}", item.kernel, record.case_line, record.verdict.evidence,
                                             record.verdict.reason));
      ++sum.cases;
      sum.scores += item.scores;
      sum.kernel_seconds += record.kernel_seconds;
      sum.oracle_seconds += record.oracle_seconds;
    }
    sum.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } while (sum.seconds < seconds);
  return sum;
}

}  // namespace assay

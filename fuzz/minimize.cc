// Greedy descent over shrink steps: the first that keeps the failure is taken, and nothing is tried twice.
#include "fuzz/minimize.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "fuzz/shrink_steps.h"
#include "oracle/error.h"

namespace assay {
namespace {

class Descent {
 public:
  Descent(const Judge& judge, const MinimizeOptions& options, const Case& c, Record record)
      : judge_(judge), options_(options), wanted_(signature_of(c, record)) {
    result_.smallest = c;
    result_.signature = wanted_;
    result_.record = std::move(record);
  }

  Minimized run() {
    for (bool smaller = true; smaller && !spent_;) {
      smaller = false;
      for (std::size_t kind = 0; kind < kShrinkKinds && !spent_; ++kind)
        while (!spent_ && step(static_cast<ShrinkKind>(kind))) smaller = true;
    }
    result_.minimal = !spent_;
    return std::move(result_);
  }

 private:
  /// Takes the first step of that kind that keeps the failure.
  bool step(ShrinkKind kind) {
    for (const Case& next : shrink_steps(result_.smallest, kind)) {
      if (!tried_.insert(print_case(next)).second) continue;
      if (result_.runs >= options_.runs) {
        spent_ = true;
        return false;
      }
      ++result_.runs;
      std::optional<Record> record;
      try {
        record = judge_(next);
      } catch (const InputError&) {  // values that are no legal indices
        continue;
      }
      if (!is_failure(*record)) continue;
      const Signature now = signature_of(next, *record);
      if (!keeps(wanted_, now)) continue;
      result_.smallest = next;
      result_.signature = now;
      result_.record = std::move(*record);
      return true;
    }
    return false;
  }

  const Judge& judge_;
  const MinimizeOptions& options_;
  const Signature wanted_;
  Minimized result_;
  std::set<std::string> tried_;
  bool spent_ = false;
};

/// "tail+pages" -> "tail", "pages".
std::vector<std::string> parts_of(const std::string& locus) {
  std::vector<std::string> parts;
  std::istringstream in(locus);
  for (std::string part; std::getline(in, part, '+');) parts.push_back(part);
  return parts;
}

/// Whether a place asks for no more structure than another: its keys end no later, and all it has beside them the other
/// has too.
bool no_stranger(const std::string& wanted, const std::string& now) {
  constexpr std::array<std::string_view, 6> kSimplerFirst{"key", "keys", "part", "full", "tail", "tiles"};
  const std::vector<std::string> before = parts_of(wanted), after = parts_of(now);
  const auto rank = [&](const std::string& place) {
    return std::find(kSimplerFirst.begin(), kSimplerFirst.end(), place);
  };
  if (before[0] != after[0] && (rank(before[0]) == kSimplerFirst.end() || rank(after[0]) > rank(before[0])))
    return false;
  return std::all_of(after.begin() + 1, after.end(), [&](const std::string& part) {
    return std::find(before.begin() + 1, before.end(), part) != before.end();
  });
}

Judge judge_of(std::string_view kernel, Runner& runner, const MinimizeOptions& options) {
  Judging judging(options.level);
  judging.evidence = false;
  return [=, &runner](const Case& c) { return run_case(c, kernel, runner, judging, options.repeats); };
}

}  // namespace

bool keeps(const Signature& wanted, const Signature& now) {
  const bool clearer = now.band == wanted.band || (wanted.band == "slight" && now.band == "gross");
  const bool named = wanted.mode.starts_with("unclassified_") && find_mode(now.mode) != nullptr;
  return now.op == wanted.op && (now.mode == wanted.mode || named) && clearer && no_stranger(wanted.locus, now.locus);
}

Minimized minimize(const Case& c, const Judge& judge, const MinimizeOptions& options, const Record* failure) {
  Record record = failure != nullptr ? *failure : judge(c);
  if (!is_failure(record))
    throw InputError("case: " + print_case(c) + ": " + record.kernel + " does not fail on it; the verdict is " +
                     std::string(verdict_name(record.verdict.kind)));
  return Descent(judge, options, c, std::move(record)).run();
}

Minimized minimize(const Case& c, std::string_view kernel, Runner& runner, const MinimizeOptions& options) {
  return minimize(c, judge_of(kernel, runner, options), options);
}

std::function<Record(const Record&)> shrinker(std::string_view kernel, Runner& runner, const MinimizeOptions& options) {
  return [judge = judge_of(kernel, runner, options), options](const Record& failure) {
    Record record = minimize(parse_case(failure.case_line), judge, options, &failure).record;
    record.suite = failure.suite;
    return record;
  };
}

bool is_minimal(const Case& c, std::string_view kernel, Runner& runner, const MinimizeOptions& options) {
  const Minimized result = minimize(c, kernel, runner, options);
  return result.minimal && result.smallest == c;
}

}  // namespace assay

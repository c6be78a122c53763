// Many runs in one process while the checker is silent; fewer, down to one, to find who made it speak.
#include "fuzz/sanitize.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

class Search {
 public:
  Search(std::size_t count, const Watched& process) : process_(process), found(count) {}

  void over(std::size_t first, std::size_t end) {
    std::size_t begin = first;  // of the process that runs now
    for (std::size_t i = first; i < end; ++i) {
      if (process_.run(i) && !process_.has_spoken()) continue;
      settle(begin, i + 1, true);
      begin = i + 1;
    }
    if (begin < end) settle(begin, end, false);
  }

 private:
  /// Ends the process that made the runs [begin, end). `in_time`: the checker was silent until the last of them.
  void settle(std::size_t begin, std::size_t end, bool in_time) {
    std::vector<SanitizerFinding> findings = sanitizer_findings(process_.close());
    if (findings.empty()) return;
    const std::size_t last = end - 1, middle = begin + (last - begin) / 2;
    if (begin == last) {
      found[last] = std::move(findings);
      return;
    }
    over(last, end);
    if (in_time && explains(found[last], findings)) return;
    over(begin, middle);
    over(middle, last);
    if (std::any_of(&found[begin], &found[last] + 1, [](const auto& some) { return !some.empty(); })) return;
    findings.front().text += fmt::format(" (in a process of {} runs; not seen again with fewer)", end - begin);
    found[last] = std::move(findings);
  }

  static bool explains(const std::vector<SanitizerFinding>& own, const std::vector<SanitizerFinding>& all) {
    return std::all_of(all.begin(), all.end(), [&](const SanitizerFinding& one) {
      return std::any_of(own.begin(), own.end(),
                         [&](const SanitizerFinding& other) { return one.place == other.place; });
    });
  }

  const Watched& process_;

 public:
  std::vector<std::vector<SanitizerFinding>> found;
};

}  // namespace

std::vector<std::vector<SanitizerFinding>> findings_by_run(std::size_t count, const Watched& process) {
  Search search(count, process);
  search.over(0, count);
  return std::move(search.found);
}

}  // namespace assay

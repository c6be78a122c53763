// Comparing runs of one kernel bit by bit.
#include "fuzz/repeat.h"

#include <fmt/format.h>

#include <sstream>

#include "cases/materialize.h"
#include "oracle/error.h"

namespace assay {
namespace {

/// Calls f(index, storage element) for every element of a layout, in row-major order.
template <class F>
void for_each_element(const TensorLayout& layout, F&& f) {
  std::vector<std::int64_t> index(layout.shape.size(), 0);
  for (std::int64_t left = layout.count(), at = layout.offset; left > 0; --left) {
    f(index, at);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      at += layout.strides[axis];
      if (++index[axis] < layout.shape[axis]) break;
      at -= layout.strides[axis] * layout.shape[axis];
      index[axis] = 0;
    }
  }
}

/// "70,37" -> "35,18"
std::string halved(const std::string& list) {
  std::string out;
  std::istringstream numbers(list);
  for (std::string number; std::getline(numbers, number, ',');)
    out += (out.empty() ? "" : ",") + std::to_string(std::stoll(number) / 2);
  return out;
}

/// Fills are set for one run and put back.
class Fill {
 public:
  Fill(Runner& runner, int fill) : runner_(runner) { runner_.set_fill(fill); }
  ~Fill() { runner_.set_fill(0); }
  Fill(const Fill&) = delete;
  Fill& operator=(const Fill&) = delete;

 private:
  Runner& runner_;
};

RunOutcome run_with_fill(Runner& runner, std::string_view kernel, const Problem& problem, int fill) {
  const Fill set(runner, fill);
  return runner.run(kernel, problem.params, problem.inputs, problem.outputs);
}

bool ended_well(const RunOutcome& outcome) { return outcome.status == RunStatus::kOk && outcome.broken.empty(); }

/// What two more runs on the same bytes say about a run that wrote other bits than the first.
enum class Again : std::uint8_t {
  kAsFirst,  ///< it was what stood before or around that run
  kSettled,  ///< they agree with each other only: the first run is the odd one, for what ran before it
  kVaries    ///< a kernel that takes turns, or a race
};

Again run_again(Runner& runner, std::string_view kernel, const Problem& problem, const std::vector<Tensor>& first) {
  const RunOutcome a = run_with_fill(runner, kernel, problem, 0), b = run_with_fill(runner, kernel, problem, 0);
  if (!ended_well(a) || !ended_well(b) || bit_difference(a.outputs, b.outputs)) return Again::kVaries;
  return bit_difference(first, b.outputs) ? Again::kSettled : Again::kAsFirst;
}

}  // namespace

std::optional<std::string> bit_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  std::string first;
  std::int64_t differing = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k].bytes == b[k].bytes) continue;
    const TensorView x = a[k].view(), y = b[k].view();
    for_each_element(a[k].layout, [&](const std::vector<std::int64_t>& index, std::int64_t element) {
      const std::uint64_t was = x.code(element), is = y.code(element);
      if (was == is || differing++ > 0) return;
      const int digits = info(x.format()).storage_bits / 4;
      first = fmt::format("{}[{}] is {:#0{}x} and {:#0{}x}", x.layout->role, fmt::join(index, ","), was, digits + 2, is,
                          digits + 2);
    });
  }
  if (differing == 0) return std::nullopt;
  return differing == 1 ? first : fmt::format("{} ({} elements differ)", first, differing);
}

RepeatedRun run_repeatedly(Runner& runner, std::string_view kernel, const Problem& problem, const Problem& other,
                           int runs, const Problem* neighbour) {
  RepeatedRun result{run_with_fill(runner, kernel, problem, 0), {}};
  const int after_neighbour = runs > 1 && neighbour != nullptr ? runs : -1;
  for (int n = 1; n < runs + (after_neighbour > 0) && ended_well(result.outcome) && result.difference.empty(); ++n) {
    const bool refill = n % 2 == 1 && n != after_neighbour;
    if (n == after_neighbour) run_with_fill(runner, kernel, *neighbour, 0);
    RunOutcome later = run_with_fill(runner, kernel, refill ? other : problem, refill ? 1 : 0);
    if (!ended_well(later)) {
      if (!later.reason.empty()) later.reason = fmt::format("in run {} of the same case: {}", n + 1, later.reason);
      result.outcome = std::move(later);
      break;
    }
    const std::optional<std::string> difference = bit_difference(result.outcome.outputs, later.outputs);
    if (!difference) continue;
    const Again again = run_again(runner, kernel, problem, result.outcome.outputs);
    if (again == Again::kSettled || (again == Again::kAsFirst && n == after_neighbour)) {
      result.mode = "history";
      result.difference = fmt::format("the bits depend on the call before: {}", *difference);
    } else if (again == Again::kAsFirst && refill) {
      result.mode = "unused_data_poison";
      result.difference = fmt::format("the bits depend on bytes that no element uses: {}", *difference);
    } else {
      result.mode = "race";
      result.difference = fmt::format("the bits differ between runs on the same bytes: {}", *difference);
    }
  }
  return result;
}

std::string rerun_difference(Runner& runner, std::string_view kernel, const Problem& problem,
                             const std::vector<Tensor>& first, int times) {
  if (times > 0) runner.restart();
  for (int n = 1; n <= times; ++n) {
    const RunOutcome again = run_with_fill(runner, kernel, problem, 0);
    if (!ended_well(again))
      return fmt::format("rerun {} in a fresh process did not end well: {}", n,
                         again.broken.empty() ? again.reason : again.broken.front());
    if (const auto difference = bit_difference(first, again.outputs))
      return fmt::format("a race, or memory nobody wrote: rerun {} in a fresh process wrote other bits: {}", n,
                         *difference);
  }
  return {};
}

Problem neighbour(const Case& c) {
  Case other = c;
  other.overrides.clear();
  for (auto& [role, source] : other.sources)
    if (source.recipe != "file") source.seed += 1000003;
  const Case reseeded = other;
  if (const std::string* lens = c.params.find("kv_lens")) other.params.set("kv_lens", halved(*lens));
  if (const std::string* store = c.params.find("kv"); store != nullptr && *store != "contiguous")
    other.params.set("page_seed", "1000003");
  try {
    return materialize(parse_case(print_case(other)));
  } catch (const InputError&) {  // a prefix, say, that is longer than half of the keys
    return materialize(reseeded);
  }
}

Problem refilled(const Case& c) {
  Case other = c;
  other.poison = c.poison == Poison::kNan ? Poison::kMax : Poison::kNan;
  return materialize(other);
}

}  // namespace assay

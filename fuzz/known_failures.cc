// Reads the ledger of known failures and runs its cases.
#include "fuzz/known_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cases/text.h"
#include "fuzz/durable_file.h"
#include "oracle/error.h"
#include "reports/view.h"

namespace assay {
namespace {

/// Takes the first word off `rest`.
std::string word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string first(rest.substr(0, end));
  rest.remove_prefix(end);
  return first;
}

class EntryReader {
 public:
  EntryReader(std::string_view line, std::string where) : rest_(line), where_(std::move(where)) {}

  KnownFailure read() {
    KnownFailure entry;
    entry.where = where_;
    entry.kernel = word(rest_);
    entry.signature = word(rest_);
    if (std::count(entry.signature.begin(), entry.signature.end(), '-') != 3)
      fail("signature", entry.signature, "must be op-mode-locus-band, as a finding's folder is called behind --");
    entry.issue = issue(word(rest_));
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    constexpr std::string_view kCase = "case=";
    if (!rest_.starts_with(kCase)) fail("case", rest_, "must be case= and the case line");
    try {
      entry.c = parse_case(rest_.substr(kCase.size()));
    } catch (const InputError& error) {
      throw InputError(where_ + ": " + error.what());
    }
    if (!entry.signature.starts_with(entry.c.op + "-"))
      fail("signature", entry.signature, "is of another op than the case, " + entry.c.op);
    return entry;
  }

 private:
  [[noreturn]] void fail(std::string_view field, std::string_view value, std::string_view why) const {
    throw InputError(fmt::format("{}: {} {}: {}", where_, field, in_quotes(value), why));
  }

  std::int64_t issue(const std::string& text) const {
    constexpr std::string_view kIssue = "issue=#";
    const auto number =
        text.starts_with(kIssue) ? read_integer(std::string_view(text).substr(kIssue.size())) : std::nullopt;
    if (!number || *number <= 0) fail("issue", text, "must be issue=# and the number of the issue that is open for it");
    return *number;
  }

  std::string_view rest_;
  std::string where_;
};

}  // namespace

KnownFailures::KnownFailures(const std::string& file) {
  std::istringstream in(read_whole(file));
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || line[begin] == '#') continue;
    KnownFailure entry = EntryReader(line, file + ":" + std::to_string(number)).read();
    for (const KnownFailure& other : entries_)
      if (other.kernel == entry.kernel && other.signature == entry.signature)
        throw InputError(fmt::format("{}: signature {}: {} has it already, at {}", entry.where,
                                     in_quotes(entry.signature), entry.kernel, other.where));
    entries_.push_back(std::move(entry));
  }
}

const KnownFailure* KnownFailures::find(std::string_view kernel, const Signature& signature) const {
  const std::string slug = signature.slug();
  for (const KnownFailure& entry : entries_)
    if (entry.kernel == kernel && entry.signature == slug) return &entry;
  return nullptr;
}

bool is_unexpected(const LedgerCheck& check) {
  return check.state == LedgerCheck::State::kPasses || check.state == LedgerCheck::State::kOther;
}

std::vector<LedgerCheck> check_ledger(const KnownFailures& ledger, Runner& runner, Level level,
                                      const Repeats& repeats) {
  using State = LedgerCheck::State;
  const std::vector<KernelIdentity> kernels = runner.kernels();
  std::vector<LedgerCheck> checks;
  for (const KnownFailure& entry : ledger.entries()) {
    LedgerCheck check{.entry = &entry, .state = State::kNotAsked, .record = {}, .text = {}};
    const std::string name =
        fmt::format("{}: {} {} (issue #{})", entry.where, entry.kernel, entry.signature, entry.issue);
    if (std::none_of(kernels.begin(), kernels.end(), [&](const auto& k) { return k.name == entry.kernel; })) {
      check.text = name + ": there is no such kernel here";
      checks.push_back(std::move(check));
      continue;
    }
    check.record = run_case(entry.c, entry.kernel, runner, level, repeats);
    if (check.record.verdict.kind == CaseVerdict::kSkipped) {
      check.text = name + ": skipped: " + check.record.verdict.reason;
    } else if (!is_failure(check.record)) {
      check.state = State::kPasses;
      check.text = fmt::format("{}: does not fail any more ({}): take the entry out", name,
                               verdict_name(check.record.verdict.kind));
    } else if (const std::string now = signature_of(entry.c, check.record).slug(); now != entry.signature) {
      check.state = State::kOther;
      check.text = fmt::format("{}: fails otherwise, as {}", name, now);
    } else {
      check.state = State::kFails;
      check.text = name + ": fails as known";
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace assay

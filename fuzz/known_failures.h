// Ledger of known failures: what a campaign may find without failing, each with the issue that is open for it.
//
// A text file; empty lines and lines that begin with # say nothing. Every other line is one entry:
//
//   KERNEL SIGNATURE issue=#NUMBER case=CASE LINE
//   fa2_bf16 attention-mask_edge-part+masked-gross issue=#41 case=attention sq=2 d=1 mask=causal q=constant ...
//
// The signature is the name behind `--` of the finding's folder (Signature::slug), the case its smallest.case. A
// finding of that kernel and signature is known; an entry whose case passes again is a failure until it is taken out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/minimize.h"
#include "fuzz/signature.h"

namespace assay {

struct KnownFailure {
  std::string kernel;
  std::string signature;  ///< slug
  std::int64_t issue = 0;
  Case c;
  std::string where;  ///< "FILE:LINE"
};

class KnownFailures {
 public:
  KnownFailures() = default;  ///< nothing is known
  /// Throws EnvironmentError if the file cannot be read, InputError naming file, line, field and value if an entry is
  /// malformed, has no issue number, or is there twice.
  explicit KnownFailures(const std::string& file);

  const std::vector<KnownFailure>& entries() const { return entries_; }
  /// The entry of that kernel and signature, or null.
  const KnownFailure* find(std::string_view kernel, const Signature& signature) const;

 private:
  std::vector<KnownFailure> entries_;
};

/// How an entry stands today.
struct LedgerCheck {
  enum class State : std::uint8_t {
    kFails,     ///< as it says
    kPasses,    ///< it does not fail any more: fixed, and the entry must go
    kOther,     ///< it fails otherwise: the entry does not cover what is found
    kNotAsked,  ///< the runner has no such kernel, or it was skipped (a device kernel without a device)
  };
  const KnownFailure* entry = nullptr;
  State state = State::kFails;
  Record record;     ///< of the entry's case today; empty if the kernel is not there
  std::string text;  ///< one line for a person, naming the entry
};
/// kPasses and kOther are failures of the campaign.
bool is_unexpected(const LedgerCheck& check);

/// Runs every entry's case.
std::vector<LedgerCheck> check_ledger(const KnownFailures& ledger, Runner& runner, Level level = Level::kT1,
                                      const Repeats& repeats = {});

}  // namespace assay

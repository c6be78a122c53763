// Signature: what two findings of one cause have in common: op, mode, locus, size band. Never the kernel's name.
#pragma once

#include <string>

#include "cases/case.h"
#include "reports/record.h"

namespace assay {

struct Signature {
  std::string op;
  /// The catalogue's mode; of an unclassified failure what is wrong at the worst element: unclassified_nan, _inf,
  /// _unwritten, _zero, _sign, _magnitude; of a broken promise changed_input, wrote_outside or not_repeatable; else
  /// crash or hang.
  std::string mode;
  /// Where in the structure the simplest failing row stands:
  ///   empty    every failing row is without keys
  ///   part     its keys end inside their first key tile     full   they fill one tile
  ///   tail     they end inside a later tile                 tiles  they fill two or more
  ///   key      one key, keys: more, where the kernel declares no tile
  ///   call     no row is known: a crash, a hang, a broken promise, different bits in repeated runs
  /// and behind it what the case has there of: +splits (keys in two or more ranges that are merged), +pages (on two or
  /// more pages), +masked (keys of the sequence that the row must not see).
  std::string locus;
  /// nonfinite (a wrong class, or a number that should be finite), slight (the worst error is below 16 bounds), gross,
  /// or none where nothing is measured.
  std::string band;
  bool operator==(const Signature&) const = default;

  /// The four parts joined by '-': a name for files, the same in every version that writes it.
  std::string slug() const;
};

/// Whether there is something to sign: a finding, an unclassified failure, a crash or a hang.
bool is_failure(const Record& record);

/// `record`: what run_case made of `c`, with its failed rows.
Signature signature_of(const Case& c, const Record& record);

}  // namespace assay

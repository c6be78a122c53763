// Minimiser: the smallest case, step by step, on which a kernel still fails in the same way.
#pragma once

#include <functional>
#include <string_view>

#include "fuzz/pipeline.h"
#include "fuzz/signature.h"

namespace assay {

struct MinimizeOptions {
  int runs = 2000;  ///< of the kernel under test, each through the whole pipeline
  Level level = Level::kT1;
  Repeats repeats = {};  ///< of every run: a race, say, needs some
};

struct Minimized {
  Case smallest;
  Record record;        ///< of that case
  Signature signature;  ///< and its signature
  int runs = 0;
  bool minimal = false;  ///< no single shrink step keeps the failure; false: the runs were used up before that is known
};

/// What a case gives on the kernel under test.
using Judge = std::function<Record(const Case&)>;

/// Whether `now` is the failure `wanted` at its place or a simpler one: op and mode agree, or an unclassified failure has
/// got a mode of the catalogue; the band agrees, or a slight failure has become a gross one; the locus asks for no more
/// structure (splits, pages, masks, tiles) than before. So a minimal case has only the structure that the fault needs,
/// and its signature says which.
bool keeps(const Signature& wanted, const Signature& now);

/// Takes shrink steps (fuzz/shrink_steps.h) that keep the failure until none does, in a fixed order: equal arguments
/// give equal results. `failure`: judge(c), if it is known. Throws InputError if `c` is no failure.
Minimized minimize(const Case& c, const Judge& judge, const MinimizeOptions& options, const Record* failure = nullptr);
Minimized minimize(const Case& c, std::string_view kernel, Runner& runner, const MinimizeOptions& options = {});

/// Of failures of that kernel, for FindingStore::add. All that is named must outlive it.
std::function<Record(const Record&)> shrinker(std::string_view kernel, Runner& runner, const MinimizeOptions& options);

/// Whether no single step keeps the failure.
bool is_minimal(const Case& c, std::string_view kernel, Runner& runner, const MinimizeOptions& options = {});

}  // namespace assay

// M21: partial results are right and combined with wrong weights; or the LSE is in another base.
#include <fmt/format.h>

#include "failure_catalog/deviations.h"

namespace assay {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

void attention(Deviations& all) {
  const AttentionParams& p = *all.attention();
  if (all.structure().splits > 1) {
    const std::string splits = fmt::format("{} splits", all.structure().splits);
    all.add(Deviation{.merge_base = kLn2}, splits + " are weighed by 2^LSE where the LSE is natural");
    all.add(Deviation{.merge_base = 1 / kLn2}, splits + " are weighed by e^LSE / ln 2 where the LSE is natural");
    all.add(Deviation{.part_lse_factor = 1 / kLn2}, splits + " hand over LSEs of base 2 that are read as natural ones");
    all.add(Deviation{.part_lse_factor = kLn2}, splits + " hand over LSEs times ln 2");
    all.add(Deviation{.part_lse_factor = 0}, splits + " have equal weights, as without their LSE");
    all.add(Deviation{.equal_parts = true}, splits + " have equal weights, those without keys too");
    all.add(Deviation{.last_part = true}, "o is that of the last split alone");
    all.add(Deviation{.empty_counted = true}, "splits without keys weigh as ones of LSE 0 and O 0");
  }
  if (all.structure().splits == 1) {
    const std::string one = "a single split, merged like several, hands over its LSE ";
    all.add(Deviation{.merges_one = true, .part_lse_factor = 1 / kLn2}, one + "of base 2 that is read as natural", 0.3);
    all.add(Deviation{.merges_one = true, .part_lse_factor = kLn2}, one + "times ln 2", 0.3);
    all.add(Deviation{.merges_one = true, .part_lse_factor = 0}, one + "as 0", 0.3);
  }
  if (p.lse != LseBase::kNone) {
    const bool two = p.lse == LseBase::kTwo;
    all.add(Deviation{.lse_factor = two ? kLn2 : 1 / kLn2},
            fmt::format("convention: the LSE is one of base {}", two ? "e" : "2"));
    all.add(Deviation{.lse_factor = two ? 1 / kLn2 : kLn2},
            fmt::format("the LSE is {} times the right one: converted once too often", two ? "log2(e)" : "ln 2"));
    all.add(Deviation{.lse_factor = -1}, "convention: the LSE has the other sign");
  }
}

void merge(Deviations& all) {
  const bool two = all.merge()->problem().params().base == LseBase::kTwo;
  all.add(MergeDeviation{.base = two ? 1 / kLn2 : kLn2},
          fmt::format("LSEs of base {} are weighed as ones of base {}", two ? "2" : "e", two ? "e" : "2"));
  all.add(MergeDeviation{.base = two ? kLn2 : 1 / kLn2}, "LSEs are converted to the other base once too often");
  all.add(MergeDeviation{.equal = true}, "parts have equal weights, as without their LSE");
  all.add(MergeDeviation{.last_only = true}, "o is that of the last part alone");
  all.add(MergeDeviation{.swapped = true}, "parts have each other's weights");
  if (all.merge()->problem().params().has_lse) {
    all.add(MergeDeviation{.lse_factor = 1 / kLn2}, "convention: the merged LSE is log2(e) times the right one");
    all.add(MergeDeviation{.lse_factor = kLn2}, "convention: the merged LSE is ln 2 times the right one");
  }
}

void softmax(Deviations& all) {
  if (all.softmax()->problem().lse() == nullptr) return;
  all.add(SoftmaxDeviation{.lse_factor = 1 / kLn2}, "convention: the LSE is log2(e) times the right one");
  all.add(SoftmaxDeviation{.lse_factor = kLn2}, "convention: the LSE is ln 2 times the right one");
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  Deviations all(scene);
  if (all.attention() != nullptr) attention(all);
  if (all.merge() != nullptr) merge(all);
  if (all.softmax() != nullptr) softmax(all);
  return all.take();
}

const RegisterMode kRegister({.name = "merge_weight",
                              .id = "M21",
                              .title = "Partial results combined with wrong weights",
                              .hypotheses = hypotheses});

}  // namespace
}  // namespace assay

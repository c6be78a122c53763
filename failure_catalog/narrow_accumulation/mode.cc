// M24: an accumulator, or a value on its way, in fewer bits than declared.
#include <fmt/format.h>

#include <array>

#include "failure_catalog/deviations.h"

namespace assay {
namespace {

constexpr std::array<Format, 2> kNarrow{Format::kBf16, Format::kFp16};

void attention(Deviations& all) {
  const AttentionParams& p = *all.attention();
  const Arithmetic& a = all.structure();
  const bool scalar_qk = a.qk == Accumulate::kFp32, scalar_pv = a.pv == Accumulate::kFp32;
  for (const Format format : kNarrow) {
    const std::string_view name = info(format).name;
    all.add(Deviation{.score_store = format}, fmt::format("S is stored in {}", name));
    all.add(Deviation{.score_sum = format}, fmt::format("q k is accumulated in {}, rounded after every {}", name,
                                                        scalar_qk ? "product" : "block of the MMA"));
    all.add(Deviation{.l_tile = format}, fmt::format("l is stored in {} after every key tile", name));
    all.add(Deviation{.l_key = format}, fmt::format("l is accumulated in {}", name), 0.01);
    all.add(Deviation{.reciprocal_store = format}, fmt::format("O is multiplied by 1 / l rounded to {}", name));
    all.add(Deviation{.o_tile = format}, fmt::format("O is stored in {} after every key tile", name));
    if (!scalar_pv)
      all.add(Deviation{.o_block = format},
              fmt::format("P V is accumulated in {}, rounded after every block of the MMA", name));
    if (scalar_pv)
      all.add(Deviation{.o_key = format}, fmt::format("P V is accumulated in {}, rounded after every product", name));
    if (a.max_policy != MaxPolicy::kGlobal)
      all.add(Deviation{.alpha_of_o = format}, fmt::format("O is rescaled by a factor rounded to {}", name));
    if (p.lse != LseBase::kNone) all.add(Deviation{.lse_store = format}, fmt::format("the LSE is rounded to {}", name));
    // A kernel that splits longer sequences may merge a single split too.
    const double unsure = a.splits == 1 ? 0.3 : 0;
    all.add(Deviation{.merges_one = true, .part_lse = format}, fmt::format("the LSE of a split is held in {}", name),
            unsure);
    all.add(Deviation{.merges_one = true, .part_o = format}, fmt::format("the O of a split is held in {}", name),
            unsure);
  }
  if (p.output != Format::kFp32)
    all.add(Deviation{.output_truncated = true}, fmt::format("o is truncated to {}, not rounded", info(p.output).name));
  if (p.descale != Descale::kNone && p.output != Format::kFp32)
    all.add(Deviation{.cast_before_scale = true},
            fmt::format("o is rounded to {} before v_scale is multiplied in", info(p.output).name));
  if (a.promote_n > 0)
    all.add(
        Deviation{.one_chain = true},
        fmt::format("P V is one chain of tensor-core accumulators, not promoted to fp32 every {} keys", a.promote_n));
}

void softmax(Deviations& all) {
  for (const Format format : kNarrow) {
    const std::string_view name = info(format).name;
    all.add(SoftmaxDeviation{.l_key = format}, fmt::format("l is accumulated in {}, rounded after every key", name));
    if (all.softmax()->tiled())
      all.add(SoftmaxDeviation{.l_tile = format}, fmt::format("l is stored in {} after every tile", name));
    if (all.softmax()->problem().lse() != nullptr)
      all.add(SoftmaxDeviation{.lse_store = format}, fmt::format("the LSE is rounded to {}", name));
  }
}

void merge(Deviations& all) {
  for (const Format format : kNarrow) {
    const std::string_view name = info(format).name;
    all.add(MergeDeviation{.part_lse = format}, fmt::format("the LSE of a part is read as {}", name));
    all.add(MergeDeviation{.part_o = format}, fmt::format("the O of a part is read as {}", name));
    all.add(MergeDeviation{.state = format}, fmt::format("O is kept in {} from part to part", name));
  }
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  Deviations all(scene);
  if (all.attention() != nullptr) attention(all);
  if (all.softmax() != nullptr) softmax(all);
  if (all.merge() != nullptr) merge(all);
  return all.take();
}

const RegisterMode kRegister({.name = "narrow_accumulation",
                              .id = "M24",
                              .title = "Fewer bits than declared on the way",
                              .hypotheses = hypotheses});

}  // namespace
}  // namespace assay

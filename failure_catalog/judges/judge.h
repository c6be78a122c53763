// Judge: the rule by which another project decides that a kernel is right; for comparison, never for a verdict.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"
#include "oracle/op.h"

namespace assay {

/// What a judge needs of a problem whatever the outputs are, kept between outputs of the same problem.
struct JudgeMemo {
  std::vector<double> eager_attention;  ///< pytorch_attention's
};

/// What a judge may look at: bits in, bits out, and the truth in fp64, rounded as its own reference would be.
struct JudgedRun {
  const Case& c;
  const Problem& problem;
  const Truth& truth;
  const std::vector<Tensor>& outputs;
  JudgeMemo* memo = nullptr;
};

struct Opinion {
  bool passes = true;
  std::string reason;  ///< one sentence with numbers, for a pass too
};

struct Judge {
  std::string_view name;    ///< "flash-attention-2x"
  std::string_view source;  ///< project and file of the rule
  std::string_view rule;    ///< one sentence
  /// Attention lines of the shapes and distributions that its own tests draw; {s} stands for a fresh seed, {dtype} for
  /// the kernel's input format.
  std::vector<std::string_view> inputs;
  /// Nothing: the rule says nothing about this op or format.
  std::optional<Opinion> (*judge)(const JudgedRun&);
};

struct RegisterJudge {
  explicit RegisterJudge(const Judge& judge);
};
/// Sorted by name.
std::vector<const Judge*> all_judges();
const Judge* find_judge(std::string_view name);

/// The judge's customary inputs for kernels of one input format, with seeds counting up from `seed`.
std::vector<Case> customary_cases(const Judge& judge, Format dtype, std::uint64_t seed);

}  // namespace assay

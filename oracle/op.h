// The Op contract and registry: everything the machinery asks of an op; it never asks for the op's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/params.h"
#include "oracle/tensor.h"
#include "oracle/truth.h"

namespace assay {

/// One input of an op under given params.
struct InputSpec {
  TensorLayout layout;
  /// One letter per axis of layout.shape: b batch, h head, t packed token, s sequence position, c channel,
  /// q / k query / key position of a mask, x other.
  std::string axes;
  std::vector<std::int64_t> starts;  ///< packed: first token of each sequence and the total; else empty
  std::vector<std::int64_t> used;    ///< padded: used positions (axis s) of each batch entry; the rest is unused storage
  std::vector<std::int64_t> values;  ///< fixed content (lengths, row lists), row-major; empty: filled from a recipe
  std::string default_source;        ///< e.g. "normal@1"
};

/// One case's inputs as bits, and the outputs wanted. Kernel and oracle both start from these bits.
struct Problem {
  Params params;
  std::vector<Tensor> inputs;
  std::vector<TensorLayout> outputs;
};

/// A known-wrong output (zero, negated, lost last key, ...) and whether this case's acceptance sets reject it.
struct KnownWrong {
  std::string name;
  bool applicable = false;
  bool rejected = false;
};

struct Op {
  std::string_view name;
  std::string_view summary;
  std::span<const ParamInfo> params;
  /// Checks and normalises. Throws InputError naming key and value.
  Params (*canonical)(const Params&);
  std::vector<InputSpec> (*inputs)(const Params&);
  std::vector<TensorLayout> (*outputs)(const Params&);
  /// Truth and bound in fp64 with proven radius; rows that fp64 cannot decide are decided by `reference`.
  Evaluation (*evaluate)(const Problem&, const Arithmetic&);
  /// The same truth in ball arithmetic at `precision` bits, for the judged rows.
  Truth (*reference)(const Problem&, int precision);
  /// Wrong outputs computed by the oracle itself, judged with `evaluation`.
  std::vector<KnownWrong> (*known_wrong)(const Problem&, const Evaluation&);
  /// Certified decimal digits, at most `count`, of judged element `index` of output `output` (parallel to OutputTruth);
  /// empty where the truth is a class and not a number.
  std::string (*digits)(const Problem&, std::size_t output, std::int64_t index, int count);
};

/// Registration: one static RegisterOp per op folder.
struct RegisterOp {
  explicit RegisterOp(const Op& op);
};
std::vector<const Op*> all_ops();
/// Throws InputError if there is none.
const Op& op_named(std::string_view name);

}  // namespace assay

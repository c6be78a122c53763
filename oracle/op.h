// The Op contract and registry: everything the machinery asks of an op; it never asks for the op's name.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/arithmetic.h"
#include "oracle/params.h"
#include "oracle/regime.h"
#include "oracle/tensor.h"
#include "oracle/truth.h"

namespace assay {

/// Which positions of a sequence a physical page holds.
struct PageUse {
  std::int64_t batch = -1;  ///< the first sequence that uses the page, -1: unused storage
  std::int64_t first = 0;   ///< position of slot 0
  std::int64_t used = 0;    ///< slots with a position; the rest is unused storage
};

/// One input of an op under given params.
struct InputSpec {
  TensorLayout layout;
  /// One letter per axis of layout.shape: b batch, h head, t packed token, s sequence position, c channel, g channel group (the
  /// channel is g * extent(c) + c), p page, o slot of a page, q / k query / key position of a mask, x other. Recipes fill the
  /// channels of one vector at a time, wherever the axes g and c stand.
  std::string axes;
  std::vector<PageUse> pages;                ///< axis p
  std::int64_t first_position = 0;           ///< position that index 0 of axis s or t has in its sequence (keys behind a prefix)
  std::vector<std::int64_t> starts;  ///< packed: first token of each sequence and the total; else empty
  std::vector<std::int64_t> used;    ///< padded: used positions (axis s) of each batch entry; the rest is unused storage
  std::vector<std::int64_t> values;  ///< fixed content (lengths, row lists), row-major; empty: filled from a recipe
  std::string default_source;        ///< e.g. "normal@1"; or an input before this one, e.g. "k": the same source as that
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

/// One term of the bound T0, as its share of tau before output rounding: parallel to OutputTruth, per output.
struct BoundTerm {
  std::string name;  ///< "QK", "exp", "P", "PV", "normalise", ..., "output" (half an output ulp)
  std::vector<std::vector<double>> outputs;
};

/// A fault with a size, computed by the oracle on the exact answer: what an otherwise perfect kernel would return. Size 0 is
/// correct; 1 is the whole fault where it has a whole (a key lost entirely), else the size is in `unit`.
struct PlantedFault {
  std::string_view name;  ///< "dropped key", "ghost key", "scale error", "mask shift", "gain", "lost tile"
  std::string_view unit;  ///< "of the key's weight", "keys of logit 0 and value 0", "relative", ...
  double largest = 1;     ///< sizes above this have no meaning
};
/// Exact output values under a fault, before rounding to the output format; parallel to OutputTruth. NaN: not applicable there.
using PlantedOutputs = std::vector<std::vector<double>>;
/// What a planted fault touches in one judged row.
struct FaultSite {
  std::string what;  ///< "key 17", "keys 64 to 127"; empty: nothing in this row
  /// Weight that size 1 takes from the row or adds to it, as a share of the row's; NaN: the fault moves no weight.
  double weight = std::numeric_limits<double>::quiet_NaN();
};

/// Plants faults in one problem; what faults and sizes have in common is done once.
class FaultPlanter {
 public:
  virtual ~FaultPlanter() = default;
  virtual PlantedOutputs plant(std::size_t fault, double size) = 0;    ///< as Op::plant
  virtual FaultSite site(std::size_t fault, std::size_t row) = 0;      ///< as Op::fault_site
};

/// The structure whose replay gives an output's bits most often (probes.md 2): evidence, not a declaration.
struct Inference {
  Arithmetic arithmetic;     ///< the declared one with tile, order, P format and splits filled in
  std::string structure;     ///< "tiles of 128 from last to first, P in bf16, 1 split"
  double bit_equal = 0;      ///< share of outputs equal to the replay's rounding
  double runner_up = 0;      ///< the best share of a different structure
  double rounded_truth = 0;  ///< share equal to the correctly rounded exact answer
};

struct Op {
  std::string_view name;
  std::string_view summary;
  std::span<const ParamInfo> params;
  /// Checks and normalises. Throws InputError naming key and value.
  Params (*canonical)(const Params&);
  std::vector<InputSpec> (*inputs)(const Params&);
  std::vector<TensorLayout> (*outputs)(const Params&);
  /// The format that decides which kernels take a case (of q, k, v; of the partial outputs; ...).
  Format (*input_format)(const Params&);
  /// Coverage cells of a case: axis -> value ("mask" -> "causal+window", "residue" -> "63", ...).
  std::map<std::string, std::string> (*cells)(const Params&);
  /// Truth and bound in fp64 with proven radius; rows that fp64 cannot decide are decided by `reference`. Tiers up to `level`
  /// where the arithmetic declares the structure they need.
  Evaluation (*evaluate)(const Problem&, const Arithmetic&, Level level);
  /// The same truth in ball arithmetic at `precision` bits, for the judged rows.
  Truth (*reference)(const Problem&, int precision);
  /// Wrong outputs computed by the oracle itself, judged with `evaluation`.
  std::vector<KnownWrong> (*known_wrong)(const Problem&, const Evaluation&);
  /// Certified decimal digits, at most `count`, of judged element `index` of output `output` (parallel to OutputTruth);
  /// empty where the truth is a class and not a number.
  std::string (*digits)(const Problem&, std::size_t output, std::int64_t index, int count);
  /// The bound of `evaluate` taken apart; the terms sum to tau where tau is finite, up to a few percent above.
  std::vector<BoundTerm> (*bound_terms)(const Problem&, const Arithmetic&);
  std::vector<PlantedFault> (*planted_faults)();
  /// The outputs under fault number `fault` of that list. Empty where the case has nothing the fault could touch.
  PlantedOutputs (*plant)(const Problem&, std::size_t fault, double size);
  /// Where that fault sits in judged row `row`. Null for ops whose faults have no place.
  FaultSite (*fault_site)(const Problem&, std::size_t fault, std::size_t row) = nullptr;
  /// Both for many sizes and rows of one problem, which must outlive it. Null: plant and fault_site are called each time.
  std::unique_ptr<FaultPlanter> (*planter)(const Problem&) = nullptr;
  /// Structure inferred from outputs for the fields that `declared` leaves unknown; nothing if no structure stands out. Null for ops
  /// without one.
  std::optional<Inference> (*infer)(const Problem&, const Arithmetic& declared, const std::vector<Tensor>& outputs) = nullptr;
  /// Numeric regimes of the case under the declared structure, beyond those that a truth's rows tell of every op. Null for ops
  /// that name none.
  const std::vector<RegimeAxis>& (*regime_axes)() = nullptr;
  void (*regimes)(const Problem&, const Arithmetic& declared, Regimes& reached) = nullptr;
};

/// Registration: one static RegisterOp per op folder.
struct RegisterOp {
  explicit RegisterOp(const Op& op);
};
std::vector<const Op*> all_ops();
/// Throws InputError if there is none.
const Op& op_named(std::string_view name);

/// Op::planter, or one that calls the op for every size.
std::unique_ptr<FaultPlanter> fault_planter(const Op& op, const Problem& problem);

}  // namespace assay

// How a kernel may compute: closed enums, one field per rounding decision; `kUnknown` means the union over the enum.
#pragma once

#include <cstdint>

#include "oracle/format.h"

namespace assay {

/// One matrix product's accumulation (numerics.md 1.1, 2.1). Block FMA: K, F and output bits are those of the architecture's
/// mma_model for the operands' format; 8-bit inputs exist on Ada (kBlockAmpere there means Ada) and Hopper.
enum class Accumulate : std::uint8_t {
  kFp32,         ///< scalar fp32 FMA or multiply-add, any order
  kBlockAmpere,
  kBlockHopper,
  kUnknown,
};

enum class ScoreStore : std::uint8_t { kFp32, kBf16, kFp16, kUnknown };

/// Where the softmax scale enters.
enum class ScaleForm : std::uint8_t {
  kFolded,   ///< exp2(fma(s, c, -fl(m c))), c = fl32(scale * log2 e); FlashAttention
  kOnScore,  ///< x = fl(s * scale) (+ bias), y = fl(x - m), exp(y)
  kUnknown,
};

enum class Exponential : std::uint8_t {
  kEx2Approx,     ///< 2 ulp from the correctly rounded exp2 of its fp32 argument (ex2.approx.f32)
  kPolynomial3,   ///< degree-3 polynomial on some keys or all, relative error 9e-5 (FlashAttention-4); ex2.approx on the others
  kEx2Hopper,     ///< ex2.approx.f32 of Hopper: relative error 1.4585e-7, measured over all arguments
  kUnknown,
};

/// The hyperbolic tangent of a soft cap.
enum class Tanh : std::uint8_t {
  kTwoUlp,   ///< within 2 ulp
  kApprox,   ///< tanh.approx.f32: relative error 2^-11
  kApproxHopper,  ///< tanh.approx.f32 of Hopper: relative error 1.1127e-5, measured over all arguments
  kUnknown,
};

/// What the row sum adds, and in which tree.
enum class RowSumOf : std::uint8_t { kUnroundedP, kRoundedP, kUnknown };
enum class RowSumTree : std::uint8_t {
  kSequential,  ///< one chain over the keys
  kQuad,        ///< four interleaved chains (mma accumulator layout), two shuffles at the end
  kUnknown,     ///< any order
};

enum class Normalize : std::uint8_t {
  kReciprocal,  ///< rcp.approx(l) then multiply
  kDivide,      ///< IEEE division, or reciprocal by IEEE division then multiply
  kEveryStep,   ///< O is normalised after every key tile: O = (l O alpha + P V beta) / l_new (FlashAttention-1)
  kUnknown,
};

enum class Subnormals : std::uint8_t { kKept, kFlushed, kUnknown };
enum class TileOrder : std::uint8_t { kForward, kBackward, kUnknown };
/// kEveryTile: O and l are rescaled whenever the maximum rises; kGlobal: the maximum is known before the first exponential;
/// kLazy: the maximum is raised only when it would rise by more than `lazy_threshold`, so P may reach 2^lazy_threshold
/// (FlashAttention-4); kOwnTile: each tile subtracts its own maximum and its sums are rescaled to the common one (FlashAttention-1).
enum class MaxPolicy : std::uint8_t { kEveryTile, kGlobal, kLazy, kOwnTile, kUnknown };

/// The declared arithmetic of an attention kernel on one case and device. The default is the whole family.
struct Arithmetic {
  Accumulate qk = Accumulate::kUnknown;
  Accumulate pv = Accumulate::kUnknown;
  ScoreStore score_store = ScoreStore::kUnknown;
  ScaleForm scale_form = ScaleForm::kUnknown;
  Exponential exponential = Exponential::kUnknown;
  /// Format P is rounded to before P V; kFp32 means not rounded. `p_known = false`: any of fp32 and the input format.
  Format p_format = Format::kFp32;
  bool p_known = false;
  int p_offset = 0;   ///< P is computed, summed and multiplied as 2^p_offset exp2(...), to use an 8-bit format's range
  int promote_n = 0;  ///< keys whose P V is accumulated from zero and then added in fp32; 0 = not promised, one chain at worst
  Tanh tanh = Tanh::kUnknown;
  int lazy_threshold = 0;  ///< of kLazy, in log2 units
  RowSumOf row_sum_of = RowSumOf::kUnknown;
  RowSumTree row_sum_tree = RowSumTree::kUnknown;
  Normalize normalize = Normalize::kUnknown;
  Subnormals subnormals = Subnormals::kUnknown;
  MaxPolicy max_policy = MaxPolicy::kUnknown;
  TileOrder tile_order = TileOrder::kUnknown;
  int tile_n = 0;  ///< keys per tile; 0 = unknown
  int splits = 0;  ///< key ranges merged by LSE; 1 = none, 0 = unknown. Partial O and LSE are fp32.
  /// Of two splits: the position where the first ends, from which the tiles of the second are counted; 0 = splits are equal runs of
  /// whole tiles counted from key 0. Cascade attention cuts at its shared prefix.
  int split_at = 0;
  bool operator==(const Arithmetic&) const = default;
};

}  // namespace assay

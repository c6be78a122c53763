// Planted faults: switches inside the kernels that exist only in the mutant program.
#pragma once

#include <cstdint>

namespace assay {

enum class Fault : std::uint8_t {
  kNone,
  // M01-M09, M26: non-finite, zero, unwritten, flushed
  kNanEmptyExtent,        ///< the shift by the maximum is not guarded: (-inf) - (-inf) in a tile without admissible key
  kMergeEmptyUnguarded,   ///< a merge does not ask whether a part is empty: (-inf) - (-inf)
  kEmptyRowDivided,       ///< an empty row is normalised like any other: 0 / 0 (naive)
  kOwnTileUnguarded,      ///< an empty key tile is scaled to the common maximum: (-inf) - (-inf) (FlashAttention-1)
  kEmptyStepUnguarded,    ///< the sum is rescaled in an empty tile too: (-inf) - (-inf) (online softmax)
  kEmptySumDivided,       ///< an empty row is normalised like any other: 0 / 0 (softmax in two passes)
  kScaleAfterFill,        ///< masked scores become -inf before the scale: (-inf) 0, or +inf (softmax in two passes)
  kEmptySplitsMerged,     ///< rows whose splits are all empty are merged like any other: (-inf) - (-inf)
  kEmptyPartsWeighted,    ///< rows whose parts are all empty are merged like any other (merge in two passes)
  kTailValuesLoaded,      ///< P V runs over whole tiles: V behind the last key of a padded batch times P = 0
  kPageTailLoaded,        ///< the same in the last page
  kMaskedValueWeighed,    ///< V of masked keys times P = 0 (naive)
  kMaskAdded,             ///< a mask adds -inf to the scores and does not replace them (naive)
  kMaskAddedInMaximum,    ///< the same where the maximum is found (online softmax)
  kEmptyPartMultiplied,   ///< O of an empty part times its weight 0 (merge in two passes)
  kRawScoreRange,         ///< raw scores have the range of fp16, though not its rounding (naive)
  kAccumulatorRange,      ///< so has the accumulator of P V, which is not normalised
  kFoldedQueryRange,      ///< so has q times the scale and the factors of q and k
  kScaledScoreRange,      ///< so has scale x (softmax in two passes)
  kMergedSumRange,        ///< so has the sum of weighted parts before its division (merge in two passes)
  kShiftRoundedTwice,     ///< x log2 e - m log2 e by one fma after m log2 e was rounded (naive)
  kRowShiftRoundedTwice,  ///< the same (softmax in two passes)
  kNoShift,               ///< no maximum is subtracted (naive)
  kTailLaneScoredZero,    ///< columns behind the last key have the score 0 in exp2(x - m), and weight 0 after it
  kMergeWithoutMax,       ///< a merge's weights are exp(lse), without subtracting the largest LSE
  kZeroChannelScale,      ///< a channel of V is divided by its largest |v| before it is multiplied by it: 0 / 0
  kZeroRowScale,          ///< the same for a row of q
  kUnclampedP,            ///< a maximum that rises by 2^0.9 to 2^4 is not raised, and the cast of P to 8 bits is not clamped
  kNanKeyDropped,         ///< an element that is NaN counts as masked (online softmax)
  kNanCodeDecoded,        ///< the NaN codes of e4m3 are read as +-480
  kNanPartDropped,        ///< a part whose LSE is NaN counts as empty (merge)
  kOutputClamped,         ///< O is clamped to the finite numbers, which makes NaN the largest
  kFalseMax,              ///< the running maximum starts at -5e4 (raw scores) instead of -inf
  kMaskFilled,            ///< masked keys get the logit -1e4 (naive)
  kRowMaskFilled,         ///< the same (softmax in two passes)
  kOwnMaximumFloor,       ///< the common maximum of the tiles is at least -1e4 in raw scores (FlashAttention-1)
  kOnlineMaximumFloor,    ///< the running maximum is at least -1e4 in x (online softmax)
  kMergeMaximumFloor,     ///< the largest LSE is at least -1e4 (merge in two passes)
  kOddRowUnstored,        ///< rows are stored in pairs: the last one of an odd number is not
  kEmptyRowUnstored,      ///< rows without a key are left early
  kOddHeadUnstored,       ///< heads are computed in pairs: the last one of an odd number is not (naive)
  kTailColumnsUnstored,   ///< y is stored in vectors of 4: the columns behind the last whole one are not (softmax)
  kTailChannelsUnstored,  ///< o is stored in vectors of 16: the channels behind the last whole one are not (merge)
  kEmptyRowMean,          ///< an empty row is the mean of V
  kEmptyLsePlusInf,       ///< the LSE of an empty row has the other sign
  kEmptyLseFinite,        ///< the LSE of an empty row is -5e4
  kEmptyRowUniform,       ///< an empty row is 1 / n (softmax)
  kEmptyMergeLse,         ///< the LSE of a row whose parts are all empty is 0 (merge)
  kSubnormalFlush,        ///< subnormal V are read, and subnormal outputs written, as zero
  kSmallFactorFlushed,    ///< factors of V below fp16's smallest normal number are zero
  kSubnormalCodes,        ///< subnormal codes of e4m3 are read as zero
  kSubnormalYFlushed,     ///< subnormal y are written as zero (softmax)
  kSubnormalPartFlushed,  ///< subnormal O of a part are read as zero (merge)
  kDeviceOverrun,         ///< one element is written behind the last (device softmax)
  // M10-M17: wrong keys, wrong address
  kLastKeyDropped,        ///< the last key of a sequence is taken for its padding
  kMaskShiftedByOne,      ///< causal and right window limits admit one key more
  kKeyOf128Dropped,       ///< the last of every 128 keys is masked
  kPaddedKeyLeaks,        ///< the first column behind the last key, where its tile has one, counts in l: logit 0, V = 0
  kSplitLost,             ///< the last of two or more parts is not merged
  kMaskTopLeft,           ///< causal and window masks are aligned to the first query and key
  kDecodeTopLeft,         ///< the same for sequences of one query
  kPaddedLengthsInMask,   ///< masks are aligned by the longest lengths of the batch
  kWindowLeftWide,        ///< the window begins one key early
  kWindowRowOff,          ///< the window of a query is that of the one before it, for two or more queries
  kWindowEndsOpen,        ///< the first key of the window is left out
  kCausalIgnored,         ///< the causal mask is not applied
  kSegmentsIgnored,       ///< segments are not applied
  kMaskLengthMinusOne,    ///< a boolean mask that hides the last key hides the one before it too
  kSequencesJoined,       ///< the keys of a packed batch are one sequence
  kTailLanesCount,        ///< where nothing is masked, all columns behind the last key count in l
  kPageTailCounts,        ///< the slots of the last page behind the last key count in l
  kSumStartsAtOne,        ///< the running maximum starts at 0 and l at 1
  kTailKeysRepeated,      ///< keys are rounded up to a multiple of 4 by repeating the last one
  kDiagonalTileSkipped,   ///< a tile that the first query of a query tile does not see whole is skipped
  kTilesStopAtDiagonal,   ///< tiles beyond the diagonal are skipped although the mask is not causal
  kWindowTailSliced,      ///< keys in front of the last query's window are cut off for all queries
  kPrefixEdgeDropped,     ///< the first key behind a shared prefix is left out
  kTailOfFourSkipped,     ///< keys behind the last multiple of 4 are left out
  kHeadsTiled,            ///< kv head = head mod kv heads
  kHeadGroupModulus,      ///< kv head = head / kv heads, mod kv heads
  kHeadZero,              ///< kv head 0 for all heads
  kGroupAboveEight,       ///< query heads beyond the eighth of a group read the query of the head eight before
  kValueOfNextHead,       ///< values come from the next kv head
  kTableOfFirst,          ///< page lists begin where the first sequence's does
  kLastPageRepeats,       ///< the last page of a sequence is the one before it
  kTableIgnored,          ///< pages are taken in order, whatever the table says
  kPageCursorOfPair,      ///< values of every second page come from the page before it
  kValueSlotOff,          ///< values come from the next slot of the page
  kValuesContiguous,      ///< V is read as if its strides were those of its shape
  kQueryContiguous,       ///< Q is read as if its strides were those of its shape
  kOutputContiguous,      ///< O is written as if its strides were those of its shape
  kMaskReadAsHalf,        ///< an additive mask is read as bf16 numbers
  kFirst64Lanes,          ///< scores take the first 64 channels
  kKeyOffsetWraps,        ///< element offsets of K are taken mod 2^16
  kValueOffsetWraps,      ///< element offsets of V are taken mod 2^15
  kQueryOffsetWraps,      ///< element offsets of Q are taken mod 2^15
  kMaskOffsetWraps,       ///< element offsets of a boolean mask are taken mod 2^15
  kBatchFolded,           ///< splits of two or more queries are merged from the first sequence's
  kPartialLseOfFirstRow,  ///< the rows of a query tile share the first one's LSE in every split
  kPartialOfNextRow,      ///< the O of the last split comes from the next row
  kPartsBeyondWidth,      ///< parts beyond the number of channels are not merged
  // M18-M23: wrong weights
  kScaleOff,               ///< the softmax scale is too large by the fault's size
  kKeyDescaleDropped,      ///< k_scale is taken for 1
  kKeyDescaleTwice,        ///< k_scale is multiplied in twice
  kQueryDescaleDropped,    ///< q_scale is taken for 1
  kScaleOfPaddedDim,       ///< the scale is 1 / sqrt of the head dimension padded to the MMA's K, whatever is asked for
  kScaleConstant,          ///< the scale is 1 / sqrt(d), whatever is asked for
  kScaleTwiceInShortTile,  ///< scores of a tile that is not full are multiplied by the scale twice
  kLog2eInBf16,            ///< log2 e is rounded to bf16
  kValueDescaleDropped,    ///< v_scale is taken for 1
  kValueDescaleOfKeys,     ///< k_scale is read in place of v_scale
  kValueDescaleOfFirstHead,  ///< the v_scale of head 0 serves all heads
  kValueDescaleTwice,        ///< v_scale is multiplied in twice
  kSoftcapOmitted,           ///< no soft cap
  kSoftcapAfterMask,         ///< masked keys are capped too: logit -softcap instead of -inf
  kSoftcapOfLog2,            ///< the cap holds for the logit times log2 e
  kAlibiSign,                ///< distances count the other way
  kAlibiOffByOne,            ///< distances are larger by one
  kSlopesFromFormula,        ///< slope h is 2^(-8 (h + 1) / heads), whatever the slopes say
  kMaskScaled,               ///< the additive mask is multiplied by the softmax scale
  kSinkOmitted,              ///< no sink
  kSinkScaled,               ///< the sink is multiplied by the softmax scale
  kSinkInEverySplit,         ///< every split has the sink among its keys, and so has the merge
  kSinkInEveryPart,          ///< the same for the two parts of a cascade
  kMergeBaseTwo,             ///< natural LSEs are weighed by powers of two
  kPartialLseBaseTwo,        ///< LSEs of base two are weighed as natural ones
  kMergeOtherBase,           ///< a merge takes base two for e and e for two
  kLseTimesLn2,              ///< the stored LSE is multiplied by ln 2
  kEmptyPartCounted,         ///< a part without keys weighs as one of LSE 0 and O 0
  kLseNotStored,             ///< parts have LSE 0 where the caller asks for none
  kLastPartOnly,             ///< the merged O is that of the last part
  kStateNotRescaled,         ///< O and l keep their old scale when the maximum rises
  kRescaledTwice,            ///< O is multiplied by alpha twice
  kTileMaximumOnly,          ///< the maximum is that of the last tile, not of all so far
  kStaleMaximum,             ///< P of a tile is relative to the maximum before it
  kDividedEveryStep,         ///< O is divided by l after every tile, without its old l in front of it
  kTileFrameKept,            ///< P V of a tile stays relative to the tile's own maximum
  kLastTileUnshifted,        ///< the last 64 exponentials of a row are of x, not of x - m
  kOffsetDropped,            ///< P is rounded to its format without the offset; l is of P with it
  kOffsetTooLarge,           ///< P is rounded to its format at twice the offset
  kWeightsInBf16,            ///< P V takes P rounded to bf16, though P is declared fp32
  kPartialLseInBf16,         ///< the LSE of a part is held in bf16
  kAccumulatorNotRescaled,   ///< O keeps its old scale when the maximum rises; l does not
  kSumNotRescaled,           ///< l keeps its old scale when the maximum rises (online softmax)
  kLazyMaximum,              ///< the maximum is not raised by less than 2^4, whatever P's offset leaves room for
  kSumOfRoundedP,            ///< l adds P after its rounding
  kTruncatedP,               ///< P is truncated to its format
  // M24, M25: precision
  kScoreInBf16,            ///< S is stored in bf16
  kScoreInFp16,            ///< S is stored in fp16
  kSumInBf16,              ///< l is stored in bf16 between key tiles
  kAlphaInBf16,            ///< O is rescaled by alpha rounded to bf16; l by alpha
  kAccumulatorInBf16,      ///< O is stored in bf16 between key tiles
  kAccumulatorInFp16,      ///< the accumulator of P V is rounded to fp16 after every block of the MMA
  kPromotionMissing,       ///< P V of all key tiles is one chain
  kPartialOutputInBf16,    ///< the O of a part is held in bf16
  kOutputTruncated,        ///< O is truncated to the output format
  kExponentialAlternates,  ///< exp2 is too large by the fault's size at even columns, too small at odd ones
  kCubicExponentials,      ///< every exp2 by the cubic
  kScoreSumInFp16,         ///< the accumulator of q k is rounded to fp16 after every block of the MMA
  kScoreSumInBf16,         ///< q k is summed in bf16 (scalar kernels)
  kRowSumInBf16,           ///< every addition to l is rounded to bf16 (softmax)
  kSumInFp16,              ///< l is stored in fp16 between key tiles
  kLseInFp16,              ///< the LSE is rounded to fp16
  kStateInOutputFormat,    ///< a pairwise merge keeps O in the output format from part to part
  kReciprocalInBf16,       ///< O is multiplied by 1 / l rounded to bf16
  kCastBeforeScale,        ///< O is rounded to the output format before v_scale
  kValueSumInFp16,         ///< P V is summed in fp16 (scalar kernels)
  kUnanchoredCubic,        ///< every exp2 by a cubic with 2^0 = 1 + 8.5e-5
  kQuadraticExponentials,  ///< every exp2 by a quadratic
  kTableExponentials,      ///< exp2 by a table of 256 fractions without interpolation
  kTanhRational,           ///< tanh by t (27 + t^2) / (27 + 9 t^2), cut off at +-1
  kLogQuadratic,           ///< the logarithm of the LSE by a quadratic in the significand
  kReciprocalOneStep,      ///< 1 / l by a line and one Newton step
  kMergeCubic,             ///< the exponentials of a merge by the cubic
  // M28-M30: layout, race, history
  kFactorOfQueryHead,   ///< the factor of V is that of key head h mod hkv
  kFactorOfFirstBlock,  ///< all blocks of tokens have the factor of the first
  kFactorPer128,        ///< blocks of tokens are 128 long, whatever the case says
  kSplitLanesSwapped,   ///< channels of a K that is split in lanes are read lane by lane
  kPairsHalved,         ///< channels 2 i and 2 i + 1 of K are read from i and d / 2 + i
  kColumnsSwizzled,     ///< channels 2 i and 2 i + 1 of O are stored at each other's place
  kSumOrderVaries,      ///< every other run adds up the lanes of l in another order (online softmax)
  kMergeOrderVaries,    ///< every other run merges the splits from last to first
  kStaleValueTile,      ///< every other run multiplies P of a tile by V of the tile before it in memory
  kStalePartLse,        ///< every other run weighs a part by the LSE of the part before it (merge one after the other)
  kStaleLengths,        ///< the lengths of the call before, if there are as many and they fit (block tables)
  kStaleTable,          ///< the page table of the call before, if it is as large and names pages that exist
  kStaleAccumulator,    ///< the first row's accumulator holds the last row of the call before (merge in two passes)
  kWorkspaceUnset,      ///< device memory handed out without content is taken for zeros
  kBarrierMissing,      ///< a reduction in shared memory has no barriers between its steps
};

#ifdef ASSAY_MUTANTS

struct SizedFault {
  Fault fault = Fault::kNone;
  int millionths = 0;  ///< size, for faults that have one
};
inline thread_local SizedFault planted_fault;
inline bool faulty(Fault fault) { return planted_fault.fault == fault; }
/// The size of a fault that has one, 0 if it is not planted.
inline double fault_size(Fault fault) { return faulty(fault) ? planted_fault.millionths * 1e-6 : 0.0; }

/// Plants a fault for the life of the object.
class PlantFault {
 public:
  explicit PlantFault(SizedFault fault) : before_(planted_fault) { planted_fault = fault; }
  ~PlantFault() { planted_fault = before_; }
  PlantFault(const PlantFault&) = delete;
  PlantFault& operator=(const PlantFault&) = delete;

 private:
  SizedFault before_;
};

#else

constexpr bool faulty(Fault) { return false; }
constexpr double fault_size(Fault) { return 0.0; }

#endif

}  // namespace assay

// Names of attention's enum values in case lines, in the enums' order.
#pragma once

#include <array>
#include <string_view>

namespace assay::names {

inline constexpr std::array<std::string_view, 5> kDataMask{"none", "bool", "additive", "block", "list"};
inline constexpr std::array<std::string_view, 2> kAlign{"br", "tl"};
inline constexpr std::array<std::string_view, 2> kWindowEnds{"inclusive", "left_exclusive"};
inline constexpr std::array<std::string_view, 3> kEmptyOutput{"zero", "nan", "mean"};
inline constexpr std::array<std::string_view, 2> kEmptyLse{"-inf", "inf"};
inline constexpr std::array<std::string_view, 3> kLseBase{"none", "e", "2"};
inline constexpr std::array<std::string_view, 2> kMaskedNonfinite{"ignored", "propagates"};
inline constexpr std::array<std::string_view, 3> kBatching{"dense", "packed", "padded"};
inline constexpr std::array<std::string_view, 3> kLayout{"bhsd", "bshd", "bhds"};
inline constexpr std::array<std::string_view, 5> kAlibi{"none", "distance", "key", "diagonal", "last"};
inline constexpr std::array<std::string_view, 2> kSlopes{"head", "batch_head"};
inline constexpr std::array<std::string_view, 3> kSink{"none", "in_lse", "out_of_lse"};
inline constexpr std::array<std::string_view, 4> kDescale{"none", "tensor", "head", "block"};
inline constexpr std::array<std::string_view, 3> kExpand{"none", "batch", "heads"};
inline constexpr std::array<std::string_view, 2> kVFrom{"own", "k"};
inline constexpr std::array<std::string_view, 5> kKvStore{"contiguous", "vllm", "vllm_x", "nhd", "hnd"};
inline constexpr std::array<std::string_view, 4> kTablePad{"zero", "minus_one", "huge", "shared"};

}  // namespace assay::names

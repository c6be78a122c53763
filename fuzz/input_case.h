// What a fuzz input says: a case line, or bytes that choose one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fuzz/mutate.h"

namespace assay {

/// A case line of the op if the input begins with the op's name; else each byte is a choice of `fresh_case`, zeros
/// behind the last. Nothing if that is no legal case, too large, or reads files.
std::optional<Case> input_case(std::string_view op, std::span<const std::uint8_t> input, const MutationLimits& limits);

}  // namespace assay

// The checked JSON header of a safetensors file.
#pragma once

#include <cstdint>
#include <string_view>

#include "cases/safetensors.h"

namespace assay {

/// The header length from the file's first 8 bytes, checked against the file's size and kMaxSafetensorsHeader.
std::uint64_t checked_header_length(std::span<const std::byte> first_bytes, std::uint64_t file_bytes,
                                    std::string_view source);

/// Parses and checks a header of a file of `file_bytes` bytes. Throws InputError.
SafetensorsIndex parse_safetensors_header(std::string_view json, std::uint64_t file_bytes, std::string_view source);

/// Throws InputError "FILE: FIELD: why".
[[noreturn]] void bad_safetensors(std::string_view source, std::string_view field, std::string_view why);

}  // namespace assay

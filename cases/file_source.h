// Tensors taken from safetensors files: `file(path,tensor,hash)`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "cases/case.h"
#include "oracle/op.h"

namespace assay {

/// Copies the tensor into the elements that `spec` uses. Its format and shape must equal the spec's, and the xxh64
/// (seed 0) of its bytes the hash in the source. Throws InputError naming file and tensor.
void fill_from_file(const Source& source, const InputSpec& spec, std::byte* storage);

/// Where a relative path is looked for: under the folder in environment variable ASSAY_DATA if it is set; else the
/// current folder; else the source folder of this build. Throws InputError naming every place tried.
std::filesystem::path find_data_file(const std::string& path);

/// xxh64 with seed 0 as 16 lower-case hexadecimal digits.
std::string content_hash(std::span<const std::byte> bytes);

}  // namespace assay

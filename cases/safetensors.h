// Safetensors files: 8 bytes little-endian header length, JSON header, packed tensor bytes in C order. Reader and
// writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// One tensor as the header describes it. Offsets are bytes behind the header.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 I64 I32 U8 BOOL
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
  bool operator==(const SafetensorsEntry&) const = default;
};

/// A checked header: entries in order of their offsets, without hole or overlap, covering the rest of the file exactly.
struct SafetensorsIndex {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
  std::uint64_t data = 0;  ///< position of the tensor bytes in the file
  bool operator==(const SafetensorsIndex&) const = default;
  const SafetensorsEntry* find(std::string_view name) const;
};

/// Largest header accepted, as in the reference implementation.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Reads the header of a whole file in memory. Whatever the bytes are, memory stays proportional to their number;
/// throws InputError naming `source`, the field and the value.
SafetensorsIndex index_safetensors(std::span<const std::byte> file, std::string_view source);

/// A file on disk; only the header is kept in memory.
class SafetensorsFile {
 public:
  /// Throws InputError if it cannot be read or is malformed.
  explicit SafetensorsFile(std::filesystem::path path);
  const SafetensorsIndex& index() const { return index_; }
  const SafetensorsEntry* find(std::string_view name) const { return index_.find(name); }
  /// The bytes of one of the index's entries. Throws InputError if the file no longer has them.
  std::vector<std::byte> read(const SafetensorsEntry& entry) const;

 private:
  std::filesystem::path path_;
  SafetensorsIndex index_;
};

/// A tensor to write: bytes in C order.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// The bytes of a file: tensors sorted by falling element size, then name, so that each is aligned; header padded with
/// spaces to a multiple of 8. Throws InputError for an unknown dtype, a byte count that does not fit the shape, a name
/// given twice or text that is not UTF-8.
std::vector<std::byte> serialize_safetensors(std::span<const SafetensorsTensor> tensors,
                                             const std::map<std::string, std::string>& metadata);

/// Writes to a temporary file beside `path`, then renames it: readers see the old file or the whole new one. Throws
/// EnvironmentError (and leaves no temporary file) if the disk is full or the folder cannot be written.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

/// Bytes per element of a dtype, 0 if it is unknown.
std::uint64_t safetensors_element_bytes(std::string_view dtype);

}  // namespace assay

// Safetensors files: reading by index, writing by temporary file and rename.
#include "cases/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cases/safetensors_header.h"
#include "cases/text.h"
#include "oracle/error.h"

namespace assay {
namespace {

std::string reason(int error) { return std::strerror(error); }

/// A file descriptor that closes itself.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// 0, or the errno of the first failed step.
int write_all(const std::string& path, std::span<const std::byte> bytes) {
  Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (file.fd < 0) return errno;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return ::fsync(file.fd) == 0 ? 0 : errno;
}

}  // namespace

std::uint64_t safetensors_element_bytes(std::string_view dtype) {
  struct Size {
    std::string_view dtype;
    std::uint64_t bytes;
  };
  static constexpr std::array<Size, 11> kSizes{{{"F64", 8},
                                                {"F32", 4},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"F8_E4M3", 1},
                                                {"F8_E5M2", 1},
                                                {"F8_E8M0", 1},
                                                {"I64", 8},
                                                {"I32", 4},
                                                {"U8", 1},
                                                {"BOOL", 1}}};
  for (const Size& size : kSizes)
    if (size.dtype == dtype) return size.bytes;
  return 0;
}

const SafetensorsEntry* SafetensorsIndex::find(std::string_view name) const {
  const auto at =
      std::find_if(entries.begin(), entries.end(), [&](const SafetensorsEntry& e) { return e.name == name; });
  return at == entries.end() ? nullptr : &*at;
}

SafetensorsIndex index_safetensors(std::span<const std::byte> file, std::string_view source) {
  const std::uint64_t length = checked_header_length(file, file.size(), source);
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + 8, length);
  return parse_safetensors_header(json, file.size(), source);
}

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_(std::move(path)) {
  const std::string name = path_.string();
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path_, failed)) bad_safetensors(name, "file", "no regular file of that name");
  const std::uint64_t bytes = std::filesystem::file_size(path_, failed);
  std::ifstream in(path_, std::ios::binary);
  if (failed || !in) bad_safetensors(name, "file", "cannot be read: " + reason(errno));
  std::array<std::byte, 8> first{};
  in.read(reinterpret_cast<char*>(first.data()), first.size());
  std::string json(checked_header_length(first, bytes, name), '\0');
  in.read(json.data(), static_cast<std::streamsize>(json.size()));
  if (!in) bad_safetensors(name, "header", "the file ended while it was read");
  index_ = parse_safetensors_header(json, bytes, name);
}

std::vector<std::byte> SafetensorsFile::read(const SafetensorsEntry& entry) const {
  std::ifstream in(path_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(index_.data + entry.begin));
  std::vector<std::byte> bytes(entry.end - entry.begin);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!in) bad_safetensors(path_.string(), "tensor " + in_quotes(entry.name), "its bytes cannot be read");
  return bytes;
}

std::vector<std::byte> serialize_safetensors(std::span<const SafetensorsTensor> tensors,
                                             const std::map<std::string, std::string>& metadata) {
  std::vector<const SafetensorsTensor*> order;
  for (const SafetensorsTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const SafetensorsTensor* a, const SafetensorsTensor* b) {
    const auto size_a = safetensors_element_bytes(a->dtype), size_b = safetensors_element_bytes(b->dtype);
    return std::tie(size_b, a->name) < std::tie(size_a, b->name);
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string_view> names{"__metadata__"};
  std::uint64_t at = 0;
  for (const SafetensorsTensor* tensor : order) {
    const std::string field = "tensor " + in_quotes(tensor->name);
    std::uint64_t bytes = safetensors_element_bytes(tensor->dtype);
    if (bytes == 0) bad_safetensors("safetensors output", field, "dtype " + in_quotes(tensor->dtype) + " is unknown");
    if (!names.insert(tensor->name).second)
      bad_safetensors("safetensors output", field, "name given twice or reserved");
    for (const std::int64_t extent : tensor->shape)
      if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
        bad_safetensors("safetensors output", field, "impossible extent " + std::to_string(extent));
    if (bytes != tensor->bytes.size())
      bad_safetensors(
          "safetensors output", field,
          "has " + std::to_string(tensor->bytes.size()) + " bytes, its shape needs " + std::to_string(bytes));
    header[tensor->name] = {{"dtype", tensor->dtype}, {"shape", tensor->shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const nlohmann::json::exception& error) {
    bad_safetensors("safetensors output", "header", error.what());
  }
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> file;
  file.reserve(8 + json.size() + at);
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(json.size() >> (8 * i)));
  for (const char c : json) file.push_back(static_cast<std::byte>(c));
  for (const SafetensorsTensor* tensor : order) file.insert(file.end(), tensor->bytes.begin(), tensor->bytes.end());
  return file;
}

void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<std::byte> bytes = serialize_safetensors(tensors, metadata);
  static std::atomic<unsigned> count{0};
  const std::string temporary = path.string() + ".part" + std::to_string(::getpid()) + "." + std::to_string(count++);
  int error = write_all(temporary, bytes);
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  throw EnvironmentError(path.string() + ": cannot be written: " + reason(error));
}

}  // namespace assay

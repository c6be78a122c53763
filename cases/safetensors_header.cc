// The checked JSON header of a safetensors file: a strict event parser, so nothing is built that the format does not
// have.
#include "cases/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cases/text.h"
#include "oracle/error.h"

namespace assay {
namespace {

constexpr std::size_t kMaxRank = 64;
constexpr std::string_view kMetadata = "__metadata__";

/// Receives JSON events. Every event that is not legal at its place throws, so nesting never exceeds three levels and
/// memory never exceeds what the header's own text is worth.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderEvents(std::string_view source, SafetensorsIndex& index) : source_(source), index_(index) {}

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override { unexpected("the number " + std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected("the number " + printable(text)); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      if (value > static_cast<number_unsigned_t>(INT64_MAX)) unexpected("the extent " + std::to_string(value));
      if (entry_.shape.size() == kMaxRank) unexpected("a shape with more than 64 extents");
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsets) {
      if (offsets_ == 2) unexpected("a third offset");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    } else {
      unexpected("the number " + std::to_string(value));
    }
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadata)
      index_.metadata[key_] = std::move(text);
    else if (place_ == Place::kTensor && key_ == "dtype")
      entry_.dtype = std::move(text);
    else
      unexpected("the string " + in_quotes(text));
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = name_ == kMetadata ? Place::kMetadata : Place::kTensor;
      entry_ = {};
      entry_.name = name_;
      offsets_ = 0;
      keys_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::kTop) {
      name_ = text;
      field_ = "tensor " + in_quotes(text);
      if (!names_.insert(std::move(text)).second) bad_safetensors(source_, field_, "given twice");
      return true;
    }
    key_ = text;
    if (place_ == Place::kTensor && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
      unexpected("the key " + in_quotes(key_));
    if (!keys_.insert(std::move(text)).second)
      bad_safetensors(source_, field_, "key " + in_quotes(key_) + " given twice");
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) finish_entry();
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && key_ == "shape")
      place_ = Place::kShape;
    else if (place_ == Place::kTensor && key_ == "data_offsets")
      place_ = Place::kOffsets;
    else
      unexpected("an array");
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    bad_safetensors(source_, "header", "malformed JSON at byte " + std::to_string(position));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  [[noreturn]] void unexpected(const std::string& what) const {
    bad_safetensors(source_, field_, what + " is not allowed here");
  }

  void finish_entry() {
    for (const char* wanted : {"dtype", "shape", "data_offsets"})
      if (!keys_.contains(wanted)) bad_safetensors(source_, field_, std::string("has no ") + wanted);
    if (offsets_ != 2) bad_safetensors(source_, field_, "data_offsets needs two numbers");
    std::uint64_t bytes = safetensors_element_bytes(entry_.dtype);
    if (bytes == 0) bad_safetensors(source_, field_, "dtype " + in_quotes(entry_.dtype) + " is not supported");
    for (const std::int64_t extent : entry_.shape)
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
        bad_safetensors(source_, field_, "shape: the number of bytes passes 2^64");
    const std::string range = "data_offsets [" + std::to_string(entry_.begin) + ", " + std::to_string(entry_.end) + "]";
    if (entry_.end < entry_.begin) bad_safetensors(source_, field_, range + " end before they begin");
    if (entry_.end - entry_.begin != bytes)
      bad_safetensors(source_, field_, range + ": dtype and shape need " + std::to_string(bytes) + " bytes");
    index_.entries.push_back(std::move(entry_));
  }

  std::string_view source_;
  SafetensorsIndex& index_;
  Place place_ = Place::kStart;
  std::string field_ = "header";
  std::string name_, key_;
  std::set<std::string> names_, keys_;
  SafetensorsEntry entry_;
  int offsets_ = 0;
};

/// Sorts by offset; the tensors must cover [0, bytes) without hole or overlap.
void check_cover(std::string_view source, std::uint64_t bytes, std::vector<SafetensorsEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at)
      bad_safetensors(source, "tensor " + in_quotes(entry.name),
                      "begins at byte " + std::to_string(entry.begin) + ", expected " + std::to_string(at) +
                          (entry.begin < at ? " (overlap)" : " (hole)"));
    at = entry.end;
  }
  if (at != bytes)
    bad_safetensors(
        source, "data",
        "the tensors end at byte " + std::to_string(at) + ", the file has " + std::to_string(bytes) + " bytes of data");
}

}  // namespace

void bad_safetensors(std::string_view source, std::string_view field, std::string_view why) {
  throw InputError(printable(source) + ": " + std::string(field) + ": " + std::string(why));
}

std::uint64_t checked_header_length(std::span<const std::byte> first_bytes, std::uint64_t file_bytes,
                                    std::string_view source) {
  if (file_bytes < 8 || first_bytes.size() < 8)
    bad_safetensors(source, "header length", "the file has only " + std::to_string(file_bytes) + " bytes");
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(first_bytes[i]);
  if (length > kMaxSafetensorsHeader)
    bad_safetensors(source, "header length", std::to_string(length) + " is above the limit of 100000000");
  if (length > file_bytes - 8)
    bad_safetensors(source, "header length",
                    std::to_string(length) + " passes the end of the file (" + std::to_string(file_bytes) + " bytes)");
  return length;
}

SafetensorsIndex parse_safetensors_header(std::string_view json, std::uint64_t file_bytes, std::string_view source) {
  SafetensorsIndex index;
  index.data = 8 + json.size();
  if (!json.starts_with('{')) bad_safetensors(source, "header", "does not start with {");
  HeaderEvents events(source, index);
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  check_cover(source, file_bytes - index.data, index.entries);
  return index;
}

}  // namespace assay

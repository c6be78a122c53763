// JsonField: reads a JSON document with errors that name the file and the field; numbers that JSON cannot write are
// strings.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// A finite number as itself; "inf", "-inf", "nan" otherwise.
nlohmann::json number_to_json(double value);

/// One value of a document and its path, e.g. "records[3].verdict.kind". Every reader throws InputError
/// "<file>: <path>: expected ..., got ..." on a wrong type or a missing member.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string path, const std::string& file)
      : value_(&value), path_(std::move(path)), file_(&file) {}

  JsonField operator[](std::string_view member) const;
  /// The member, or nothing to read from: use before operator[] for members that may be left out.
  bool has(std::string_view member) const;
  std::vector<JsonField> elements() const;
  /// Members of an object, in the document's order.
  std::vector<std::pair<std::string, JsonField>> members() const;

  std::string text() const;
  /// The member's text, or empty if it is left out.
  std::string text_or_empty(std::string_view member) const;
  double number() const;
  std::int64_t integer() const;
  /// An integer within the range of int32.
  std::int32_t small_integer() const;
  /// "0x3f80" -> 0x3f80.
  std::uint64_t hex() const;
  bool boolean() const;

  const nlohmann::json& json() const { return *value_; }
  const std::string& path() const { return path_; }
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
  const std::string* file_;
};

}  // namespace assay

// JsonField: the checked accessors and the error text.
#include "oracle/json_field.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "oracle/error.h"

namespace assay {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

nlohmann::json number_to_json(double value) {
  if (value != value) return "nan";
  if (value == kInfinity) return "inf";
  if (value == -kInfinity) return "-inf";
  return value;
}

JsonField JsonField::operator[](std::string_view member) const {
  if (!value_->is_object()) fail("an object");
  const auto it = value_->find(std::string(member));
  std::string path = path_.empty() ? std::string(member) : fmt::format("{}.{}", path_, member);
  if (it == value_->end()) throw InputError(fmt::format("{}: {}: missing", *file_, path));
  return {*it, std::move(path), *file_};
}

bool JsonField::has(std::string_view member) const {
  if (!value_->is_object()) fail("an object");
  return value_->contains(std::string(member));
}

std::vector<JsonField> JsonField::elements() const {
  if (!value_->is_array()) fail("an array");
  std::vector<JsonField> fields;
  fields.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    fields.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i), *file_);
  return fields;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members() const {
  if (!value_->is_object()) fail("an object");
  std::vector<std::pair<std::string, JsonField>> fields;
  for (const auto& [name, value] : value_->items())
    fields.emplace_back(name, JsonField(value, fmt::format("{}.{}", path_, name), *file_));
  return fields;
}

std::string JsonField::text() const {
  if (!value_->is_string()) fail("a string");
  return value_->get<std::string>();
}

std::string JsonField::text_or_empty(std::string_view member) const {
  return has(member) ? (*this)[member].text() : std::string();
}

double JsonField::number() const {
  if (value_->is_number()) return value_->get<double>();
  if (value_->is_string()) {
    const auto& text = value_->get_ref<const std::string&>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return kInfinity;
    if (text == "-inf") return -kInfinity;
  }
  fail("a number or one of \"inf\", \"-inf\", \"nan\"");
}

std::int64_t JsonField::integer() const {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value_->is_number_integer() || (value_->is_number_unsigned() && value_->get<std::uint64_t>() > kMax))
    fail("a 64-bit integer");
  return value_->get<std::int64_t>();
}

std::int32_t JsonField::small_integer() const {
  const std::int64_t value = integer();
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
    fail("a 32-bit integer");
  return static_cast<std::int32_t>(value);
}

std::uint64_t JsonField::hex() const {
  const std::string written = text();
  std::uint64_t code = 0;
  const char* end = written.data() + written.size();
  if (written.size() < 3 || written.compare(0, 2, "0x") != 0) fail("0x and hex digits");
  const auto [stop, error] = std::from_chars(written.data() + 2, end, code, 16);
  if (error != std::errc() || stop != end) fail("0x and at most 16 hex digits");
  return code;
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

void JsonField::fail(std::string_view expected) const {
  constexpr std::size_t kShown = 60;
  std::string got = value_->is_structured() ? std::string(value_->type_name())
                                            : value_->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (got.size() > kShown) got = got.substr(0, kShown) + "...";
  throw InputError(
      fmt::format("{}: {}: expected {}, got {}", *file_, path_.empty() ? "document" : path_, expected, got));
}

}  // namespace assay

// Reading limits from a manifest, and asking whether a case keeps them.
#include "plugin/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "oracle/error.h"
#include "oracle/op.h"

namespace assay {
namespace {

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "16,-1" as numbers; empty if one of them is none.
std::vector<double> numbers_in(std::string_view text) {
  std::vector<double> numbers;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::optional<double> number = number_in(text.substr(0, comma));
    if (!number) return {};
    numbers.push_back(*number);
    if (comma == std::string_view::npos) return numbers;
    text = text.substr(comma + 1);
  }
}

const ParamNames* names_of(const OpParameters& op, const std::string& key) {
  const auto at = std::find_if(op.named.begin(), op.named.end(), [&](const ParamNames& p) { return p.key == key; });
  return at == op.named.end() ? nullptr : &*at;
}

template <class Names>
bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A parameter of the op that a kernel may choose to take.
void check_key(const JsonField& field, const std::string& key, const OpParameters& op) {
  const auto& params = op_named(op.op).params;
  if (std::none_of(params.begin(), params.end(), [&](const ParamInfo& p) { return p.key == key; }))
    field.fail(fmt::format("a parameter of {} instead of '{}'", op.op, key));
  if (key == op.format_key) field.fail(fmt::format("no '{}' here: `formats` says it", key));
  if (has(op.for_the_judge, key))
    field.fail(fmt::format("no '{}' here: it says what is judged, and every kernel takes it", key));
}

/// "any". True if the member says so; an error for any other text.
bool is_any(const JsonField& field, const nlohmann::json& value, const char* expected) {
  if (!value.is_string()) return false;
  if (value.get<std::string>() != "any") field.fail(expected);
  return true;
}

void read_range(const JsonField& field, Limit& limit) {
  const auto members = field.members();
  if (members.empty()) field.fail("at least one of min, max and multiple_of");
  for (const auto& [name, value] : members) {
    if (name == "min")
      limit.min = value.number();
    else if (name == "max")
      limit.max = value.number();
    else if (name == "multiple_of") {
      limit.multiple_of = value.integer();
      if (limit.multiple_of < 1) value.fail("an integer above 0");
    } else
      value.fail("min, max or multiple_of instead of '" + name + "'");
  }
  if (limit.min > limit.max) field["max"].fail(fmt::format("a number not below min = {}", limit.min));
  const auto multiple = static_cast<double>(limit.multiple_of);
  if (std::isfinite(limit.min) && std::floor(limit.max / multiple) * multiple < limit.min)
    field["multiple_of"].fail(fmt::format("a number with a multiple between {} and {}", limit.min, limit.max));
}

}  // namespace

bool Limit::admits(const std::string& value) const {
  if (any) return true;
  if (!values.empty()) {
    const std::optional<double> number = number_in(value);
    return std::any_of(values.begin(), values.end(), [&](const std::string& admitted) {
      return admitted == value || (number && number_in(admitted) == number);
    });
  }
  const std::vector<double> numbers = numbers_in(value);
  const auto multiple = static_cast<double>(multiple_of);
  return !numbers.empty() && std::all_of(numbers.begin(), numbers.end(), [&](double number) {
    return number >= min && number <= max && (multiple_of == 1 || std::floor(number / multiple) * multiple == number);
  });
}

std::string Limit::text() const {
  if (any) return "anything";
  if (!values.empty()) return fmt::format("{}", fmt::join(values, " or "));
  std::vector<std::string> parts;
  if (std::isfinite(min)) parts.push_back(fmt::format("at least {}", min));
  if (std::isfinite(max)) parts.push_back(fmt::format("at most {}", max));
  if (multiple_of != 1) parts.push_back(fmt::format("a multiple of {}", multiple_of));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Limit number_limit(const JsonField& field, const std::string& key, const OpParameters& op) {
  constexpr const char* kExpected = "\"any\", a list of numbers, or an object with min, max, multiple_of";
  check_key(field, key, op);
  if (names_of(op, key) != nullptr) field.fail(fmt::format("numbers; '{}' is a named option: see conventions", key));
  Limit limit;
  limit.key = key;
  const nlohmann::json& value = field.json();
  if (is_any(field, value, kExpected))
    limit.any = true;
  else if (value.is_object())
    read_range(field, limit);
  else if (value.is_array()) {
    for (const JsonField& element : field.elements()) {
      const std::string text = element.json().is_string() ? element.text() : element.json().dump();
      if (numbers_in(text).empty()) element.fail("a number, or a text of numbers with commas");
      limit.values.push_back(text);
    }
    if (limit.values.empty()) field.fail("at least one value");
  } else {
    field.fail(kExpected);
  }
  return limit;
}

Limit name_limit(const JsonField& field, const std::string& key, const OpParameters& op) {
  check_key(field, key, op);
  const ParamNames* names = names_of(op, key);
  if (names == nullptr) field.fail(fmt::format("a named option; '{}' is a number: see limits", key));
  Limit limit;
  limit.key = key;
  if (is_any(field, field.json(), "\"any\" or a list of names")) {
    limit.any = true;
    return limit;
  }
  for (const JsonField& element : field.elements()) {
    limit.values.push_back(element.text());
    if (!has(names->names, limit.values.back())) element.fail(fmt::format("one of {}", fmt::join(names->names, ", ")));
  }
  if (limit.values.empty()) field.fail("at least one name");
  return limit;
}

std::optional<std::string> outside(const std::vector<Limit>& limits, const OpParameters& op, const Params& canonical,
                                   const Params& complete) {
  const auto limit_of = [&](const std::string& key) {
    return std::find_if(limits.begin(), limits.end(), [&](const Limit& limit) { return limit.key == key; });
  };
  for (const auto& [key, value] : canonical.items)
    if (key != op.format_key && !has(op.for_the_judge, key) && limit_of(key) == limits.end())
      return fmt::format("takes {} at its default only, not {}={}", key, key, value);
  for (const auto& [key, value] : complete.items)
    if (const auto limit = limit_of(key); limit != limits.end() && !limit->admits(value))
      return fmt::format("takes {} {} only, not {}={}", key, limit->text(), key, value);
  return std::nullopt;
}

std::optional<std::string> misaligned(const TensorLayout& layout, std::int64_t bytes) {
  const std::int64_t element = bytes_per_element(layout.format);
  if (layout.count() == 0) return std::nullopt;
  if (layout.offset * element % bytes != 0)
    return fmt::format(
        "{}: its address is no multiple of {} bytes, as the kernel needs: offset {} of elements of {} bytes",
        layout.role, bytes, layout.offset, element);
  for (std::size_t axis = 0; axis + 1 < layout.strides.size(); ++axis)
    if (layout.shape[axis] > 1 && layout.strides[axis] * element % bytes != 0)
      return fmt::format("{}: stride {} of axis {} is no multiple of {} bytes, as the kernel needs", layout.role,
                         layout.strides[axis], axis, bytes);
  return std::nullopt;
}

}  // namespace assay

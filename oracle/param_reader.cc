// Reading of parameter values.
#include "oracle/param_reader.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "oracle/error.h"

namespace assay {

ParamReader::ParamReader(std::string_view op, std::span<const ParamInfo> known, const Params& params)
    : op_(op), known_(known), params_(params) {
  for (const auto& item : params.items) {
    bool found = false;
    for (const ParamInfo& info : known) found = found || info.key == item.first;
    if (!found) bad(item.first, "unknown parameter");
  }
}

void ParamReader::bad(std::string_view key, std::string_view why) const {
  throw InputError("case: " + std::string(op_) + " " + std::string(key) + "=" + std::string(text(key)) + ": " +
                   std::string(why));
}

std::string_view ParamReader::text(std::string_view key) const {
  if (const std::string* value = given(key)) return *value;
  for (const ParamInfo& info : known_)
    if (info.key == key) return info.default_value;
  return {};
}

std::int64_t ParamReader::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const std::string_view value = text(key);
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (status != std::errc{} || end != value.data() + value.size()) bad(key, "not an integer");
  if (number < low || number > high)
    bad(key, "must lie in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  return number;
}

Format ParamReader::float_format(std::string_view key, Format fallback) const {
  if (given(key) == nullptr) return fallback;
  const std::optional<Format> format = format_from_name(text(key));
  if (!format || (*format != Format::kFp32 && *format != Format::kFp16 && *format != Format::kBf16))
    bad(key, "must be fp32, fp16 or bf16");
  return *format;
}

float ParamReader::fp32(std::string_view key) const {
  const std::string_view value = text(key);
  float number = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (status != std::errc{} || end != value.data() + value.size() || !std::isfinite(number))
    bad(key, "must be a finite fp32 number");
  return number;
}

std::size_t ParamReader::choice(std::string_view key, std::span<const std::string_view> names) const {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text(key)) return i;
    list += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  bad(key, "must be one of " + list);
}

Params without_defaults(std::span<const ParamInfo> known, const Params& all) {
  Params out;
  for (const ParamInfo& info : known)
    if (const std::string* value = all.find(info.key); value != nullptr && *value != info.default_value)
      out.set(info.key, *value);
  return out;
}

std::string shortest_text(float value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

}  // namespace assay

// Numbers as text in their shortest round-trip form, and the error of a malformed field.
#include "cases/text.h"

#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "oracle/error.h"

namespace assay {
namespace {

template <class Number, class... Base>
std::optional<Number> read(std::string_view text, Base... base) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::optional<double> read_number(std::string_view text) {
  const std::optional<double> value = read<double>(text);
  constexpr double kMax = std::numeric_limits<double>::max();
  if (!value || !(*value >= -kMax && *value <= kMax)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_integer(std::string_view text) { return read<std::int64_t>(text, 10); }

std::optional<std::uint64_t> read_unsigned(std::string_view text, int base) { return read<std::uint64_t>(text, base); }

std::string joined(std::span<const std::string> items) {
  std::string text;
  for (const std::string& item : items) {
    if (&item != items.data()) text += ',';
    text += item;
  }
  return text;
}

std::string joined(std::span<const std::int64_t> items) {
  std::vector<std::string> texts;
  for (const std::int64_t item : items) texts.push_back(std::to_string(item));
  return joined(texts);
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    if (out.size() >= kLongest) return out + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      out += c;
    else
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  out += printable(text);
  out += '\'';
  return out;
}

void bad_field(std::string_view field, std::string_view value, std::string_view why) {
  throw InputError("case: " + printable(field) + "=" + printable(value) + ": " + std::string(why));
}

}  // namespace assay

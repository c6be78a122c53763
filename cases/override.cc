// Values of single elements as text: `set=k[0,0,17,3]:nan`.
#include "cases/override.h"

#include <algorithm>
#include <limits>

#include "cases/text.h"

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string hexadecimal(std::uint64_t code) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[code & 15]);
    code >>= 4;
  } while (code != 0);
  return "0x" + digits;
}

std::string canonical_value(std::string_view value) {
  if (value.starts_with("0x")) return hexadecimal(read_unsigned(value.substr(2), 16).value());
  const std::optional<double> number = read_number(value);
  return number ? shortest(*number) : std::string(value);
}

/// The named special value, if the name is one.
std::optional<double> special(const FormatInfo& format, std::string_view name) {
  const bool negative = name.starts_with('-');
  const std::string_view bare = negative ? name.substr(1) : name;
  double value;
  if (name == "nan")
    value = kNan;
  else if (bare == "inf")
    value = kInfinity;
  else if (bare == "max")
    value = format.max_finite;
  else if (bare == "min_sub")
    value = format.min_subnormal;
  else
    return std::nullopt;
  return negative ? -value : value;
}

}  // namespace

std::uint64_t override_code(std::string_view field, Format format, std::string_view value) {
  const FormatInfo& f = info(format);
  const auto refuse = [&](const std::string& why) { bad_field(field, value, why + " in " + std::string(f.name)); };
  if (value.starts_with("0x")) {
    const std::optional<std::uint64_t> code = read_unsigned(value.substr(2), 16);
    if (!code || (f.storage_bits < 64 && *code >> f.storage_bits != 0)) refuse("not a code");
    if (format == Format::kTf32 && (*code & 0x1fff) != 0) refuse("the low 13 bits must be zero");
    return *code;
  }
  const std::optional<double> named = special(f, value);
  const std::optional<double> number = named ? named : read_number(value);
  if (!number) refuse("not a number, nan, inf, max, min_sub or 0x code");
  const std::uint64_t code = encode(format, *number);
  if (f.specials == Specials::kInteger) {
    if (decode(format, code) != *number) refuse("not an integer of the format");
  } else if (value == "nan" ? !is_nan(format, code) : is_nan(format, code)) {
    refuse("there is no such value");
  } else if (named && (*number == kInfinity || *number == -kInfinity)) {
    if (!is_infinite(format, code)) refuse("there is no such value");
  } else if (!named && is_infinite(format, code)) {
    refuse("beyond the largest finite number (write inf or max)");
  }
  return code;
}

Override parse_override(std::string_view text, std::span<const InputSpec> specs) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find("]:");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    bad_field("set", text, "must be role[index,...]:value");
  Override item;
  item.role = text.substr(0, open);
  const auto spec = std::find_if(specs.begin(), specs.end(),
                                 [&](const InputSpec& s) { return s.layout.role == item.role && s.values.empty(); });
  if (spec == specs.end()) bad_field("set", text, in_quotes(item.role) + " is no tensor that a recipe fills here");
  std::string_view list = text.substr(open + 1, close - open - 1);
  for (;;) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::optional<std::int64_t> at = read_integer(list.substr(0, comma));
    const std::size_t axis = item.index.size();
    if (!at) bad_field("set", text, in_quotes(list.substr(0, comma)) + " is not an index");
    if (axis < spec->layout.shape.size() && (*at < 0 || *at >= spec->layout.shape[axis]))
      bad_field("set", text,
                "index " + std::to_string(*at) + " of axis " + std::to_string(axis) + " must lie in [0, " +
                    std::to_string(spec->layout.shape[axis]) + ")");
    item.index.push_back(*at);
    if (comma == list.size()) break;
    list.remove_prefix(comma + 1);
  }
  if (item.index.size() != spec->layout.shape.size())
    bad_field("set", text, "needs " + std::to_string(spec->layout.shape.size()) + " indices");
  const std::string_view value = text.substr(close + 2);
  override_code("set", spec->layout.format, value);
  item.value = canonical_value(value);
  return item;
}

std::string print_override(const Override& item) { return item.role + '[' + joined(item.index) + "]:" + item.value; }

}  // namespace assay

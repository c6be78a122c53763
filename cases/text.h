// Numbers as text in their shortest round-trip form, and the error of a malformed field.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay {

/// The shortest decimal text that reads back as the same double.
std::string shortest(double value);

/// A finite number that fills the whole text, or nothing (also for overflow and underflow of the text).
std::optional<double> read_number(std::string_view text);
std::optional<std::int64_t> read_integer(std::string_view text);
std::optional<std::uint64_t> read_unsigned(std::string_view text, int base = 10);

/// The items with commas between them, e.g. "1,2,3".
std::string joined(std::span<const std::int64_t> items);
std::string joined(std::span<const std::string> items);

/// The text with unprintable bytes as \xNN, cut at 100 characters: for error messages.
std::string printable(std::string_view text);

/// printable(text) between single quotes.
std::string in_quotes(std::string_view text);

/// Throws InputError "case: FIELD=VALUE: why".
[[noreturn]] void bad_field(std::string_view field, std::string_view value, std::string_view why);

}  // namespace assay

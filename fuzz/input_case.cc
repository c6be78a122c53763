// Bytes to a case.
#include "fuzz/input_case.h"

#include <algorithm>

#include "fuzz/generate.h"
#include "oracle/error.h"

namespace assay {
namespace {

/// Choices read off bytes: two of them where one does not reach.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::size_t operator()(std::size_t n) {
    std::size_t value = next();
    if (n > 256) value = value << 8 | next();
    return value % n;
  }

 private:
  std::size_t next() { return at_ < bytes_.size() ? bytes_[at_++] : 0; }
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

bool is_line(std::string_view op, std::string_view text) {
  return text.starts_with(op) && (text.size() == op.size() || text[op.size()] == ' ');
}

}  // namespace

std::optional<Case> input_case(std::string_view op, std::span<const std::uint8_t> input, const MutationLimits& limits) {
  std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (!is_line(op, text)) {
    Bytes bytes(input);
    return fresh_case(op, [&](std::size_t n) { return bytes(n); }, limits);  // its sources are recipes
  }
  try {
    const Case c = parse_case(text);
    const auto from_file = [](const auto& item) { return item.second.recipe == "file"; };
    return std::any_of(c.sources.begin(), c.sources.end(), from_file) ? std::nullopt : legal_case(c, limits);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace assay

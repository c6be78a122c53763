// ParamReader: an op's parameters from text, with errors that name op, key and value.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "oracle/format.h"
#include "oracle/params.h"

namespace assay {

/// Reads the values of one case. Every function throws InputError "case: OP KEY=VALUE: why" for a value that it cannot
/// take.
class ParamReader {
 public:
  /// Throws if a key is none of `known`. `params` must outlive the reader.
  ParamReader(std::string_view op, std::span<const ParamInfo> known, const Params& params);

  const std::string* given(std::string_view key) const { return params_.find(key); }
  /// The value, or the key's default.
  std::string_view text(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  /// fp32, fp16 or bf16; `fallback` if the key is not given.
  Format float_format(std::string_view key, Format fallback) const;
  /// A finite fp32 number.
  float fp32(std::string_view key) const;
  template <class Enum, std::size_t kSize>
  Enum one_of(std::string_view key, const std::array<std::string_view, kSize>& names) const {
    return static_cast<Enum>(choice(key, names));
  }
  [[noreturn]] void bad(std::string_view key, std::string_view why) const;

 private:
  std::size_t choice(std::string_view key, std::span<const std::string_view> names) const;

  std::string_view op_;
  std::span<const ParamInfo> known_;
  const Params& params_;
};

/// The values of `all` that differ from their key's default, in the table's order.
Params without_defaults(std::span<const ParamInfo> known, const Params& all);

/// The shortest text that reads back as the same number.
std::string shortest_text(float value);

}  // namespace assay

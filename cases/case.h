// Case: one line of text decides every bit of every input. Parse and print are inverse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/params.h"

namespace assay {

/// Where a tensor's values come from: `recipe(arg,...)@seed`, or `file(path,tensor,xxh64-of-the-bytes)`.
struct Source {
  std::string recipe;              ///< "file" for a tensor of a safetensors file
  std::vector<std::string> args;   ///< numbers as written (shortest round-trip form), or the file's three fields
  std::uint64_t seed = 0;
  bool operator==(const Source&) const = default;
};

/// One element replaced after the recipe: `set=k[0,0,17,3]:nan`. Value forms: a number; nan, inf, -inf, -0, max, min_sub
/// (and -max, -min_sub) of the tensor's format; or 0x... for the exact code.
struct Override {
  std::string role;
  std::vector<std::int64_t> index;
  std::string value;
  bool operator==(const Override&) const = default;
};

/// What fills storage that no element uses (tails, padding): finite values must never reach an output, nor NaN.
enum class Poison : std::uint8_t { kZero, kNan, kInf, kMax, kTag };

struct Case {
  std::string op;
  Params params;                                           ///< canonical
  std::vector<std::pair<std::string, Source>> sources;     ///< role -> source, in the op's input order
  std::vector<Override> overrides;                         ///< in order of application
  Poison poison = Poison::kNan;
  bool operator==(const Case&) const = default;
};

/// Parses one line. Throws InputError naming the field and the value. Order of keys is free; the result is canonical.
Case parse_case(std::string_view line);
/// Canonical text: op, params, sources (`q=normal@7`), `set=` (one per override), `poison=` unless nan.
std::string print_case(const Case& c);

}  // namespace assay

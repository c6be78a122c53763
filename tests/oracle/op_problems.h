// Problems of any op, built straight from parameters and a function that chooses codes; independent of cases/.
#pragma once

#include <string>
#include <vector>

#include "oracle/op.h"
#include "tests/oracle/problems.h"

namespace assay {

/// `code(layout)` is asked for every element of the storage of every input that a recipe would fill, used or not.
template <class Code>
Problem make_op_problem(const Op& op, const Params& params, Code code) {
  Problem problem{params, {}, op.outputs(params)};
  for (const InputSpec& spec : op.inputs(params)) {
    Tensor t{spec.layout, std::vector<std::byte>(static_cast<std::size_t>(spec.layout.storage_bytes()))};
    for (std::int64_t e = 0; e < t.layout.storage; ++e)
      store_code(
          t.bytes.data(), t.layout.format, e,
          spec.values.empty() ? code(t.layout) : static_cast<std::uint64_t>(spec.values[static_cast<std::size_t>(e)]));
    problem.inputs.push_back(std::move(t));
  }
  return problem;
}

inline std::string text_of(const Params& params) {
  std::string line;
  for (const auto& [key, value] : params.items) line += " " + key + "=" + value;
  return line;
}

/// How the numbers of one tensor are drawn.
enum class Draw { kRawBits, kModerate, kSmallIntegers, kExtremes, kWide };

inline std::uint64_t draw_code(Dice& dice, Draw style, Format format) {
  const FormatInfo& f = info(format);
  const double sign = dice.one_in(2) ? 1 : -1;
  switch (style) {
    case Draw::kRawBits:
      return dice.bits();
    case Draw::kModerate:
      return encode(format, dice.real(-4, 4));
    case Draw::kSmallIntegers:
      return encode(format, static_cast<double>(dice.between(-2, 2)));
    case Draw::kExtremes:
      return encode(format,
                    sign * dice.pick({f.max_finite, f.min_normal, f.min_subnormal, 1.0, f.max_finite / 2, 0.0}));
    case Draw::kWide:
      return encode(format, dice.real(-1000, 1000));
  }
  return 0;
}

/// Infinities, NaN, -0 and the ends of the format.
inline std::uint64_t special_code(Dice& dice, Format format) {
  const double infinity = std::numeric_limits<double>::infinity();
  return encode(format, dice.pick({infinity, -infinity, -infinity, infinity - infinity, -0.0, info(format).max_finite,
                                   info(format).min_subnormal}));
}

}  // namespace assay

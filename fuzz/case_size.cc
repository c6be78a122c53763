// Counts what a case consists of.
#include "fuzz/case_size.h"

#include <bit>
#include <cmath>
#include <cstdlib>

#include "cases/materialize.h"
#include "cases/walk.h"

namespace assay {
namespace {

constexpr int kFractionBits = 52;

}  // namespace

int value_size(double value) {
  if (value == 0) return std::signbit(value) ? 2 : 0;
  if (!std::isfinite(value)) return 8;
  if (value == 1) return 1;
  int exponent = 0;
  const double significand = std::frexp(std::abs(value), &exponent);  // [0.5, 1), exact
  const auto fraction = std::bit_cast<std::uint64_t>(significand) & ((std::uint64_t{1} << kFractionBits) - 1);
  const int fraction_bits = fraction == 0 ? 0 : kFractionBits - std::countr_zero(fraction);
  const int exponent_bits = std::bit_width(static_cast<unsigned>(std::abs(exponent - 1)));
  return 2 + (value < 0 ? 1 : 0) + exponent_bits + 2 * fraction_bits;
}

CaseSize case_size(const Case& c) {
  CaseSize size{.elements = 0,
                .options = c.params.items.size(),
                .values = 0,
                .overrides = c.overrides.size(),
                .length = 0,
                .line = print_case(c)};
  size.length = size.line.size();
  if (c.poison != Poison::kNan) ++size.options;
  const Problem problem = materialize(c);
  for (const TensorLayout& output : problem.outputs) size.elements += output.storage;
  const std::vector<InputSpec> specs = op_named(c.op).inputs(c.params);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    size.elements += specs[i].layout.storage;
    if (!specs[i].values.empty()) continue;
    const TensorView tensor = problem.inputs[i].view();
    for_each_row(specs[i], [&](const Row& row, const RowValues& values) {
      if (!is_used(row)) return;
      values.each(
          [&](std::int64_t, std::int64_t element, std::int64_t) { size.values += value_size(tensor.value(element)); });
    });
  }
  return size;
}

}  // namespace assay

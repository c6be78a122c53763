// Counts what a case consists of.
#include "fuzz/case_size.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "cases/materialize.h"
#include "cases/walk.h"

namespace assay {
namespace {

constexpr int kFractionBits = 52;

std::size_t options_of(const Case& c) { return c.params.items.size() + (c.poison != Poison::kNan ? 1 : 0); }

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
  return std::min(kLongNumber, 2 + (value < 0 ? 1 : 0) + exponent_bits + fraction_bits);
}

std::int64_t case_elements(const Case& c) {
  const Op& op = op_named(c.op);
  std::int64_t elements = 0;
  for (const InputSpec& spec : op.inputs(c.params)) elements += spec.layout.storage;
  for (const TensorLayout& output : op.outputs(c.params)) elements += output.storage;
  return elements;
}

CaseSize case_size(const Case& c) {
  CaseSize size{.elements = case_elements(c),
                .options = options_of(c),
                .values = kOverride * static_cast<std::int64_t>(c.overrides.size()),
                .overrides = c.overrides.size(),
                .length = 0,
                .line = print_case(c)};
  size.length = size.line.size();
  const Problem problem = materialize(c);
  const std::vector<InputSpec> specs = op_named(c.op).inputs(c.params);
  for (std::size_t i = 0; i < specs.size(); ++i) {
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

bool is_smaller(const Case& c, const CaseSize& than) {
  const auto quick = std::pair(case_elements(c), options_of(c)), known = std::pair(than.elements, than.options);
  return quick != known ? quick < known : case_size(c) < than;
}

}  // namespace assay

// Runs a recipe over the rows of a tensor.
#include "cases/recipes.h"
#include "cases/text.h"
#include "cases/walk.h"

namespace assay {
namespace {

std::vector<double> arguments(const Recipe& recipe, const Source& source) {
  std::vector<double> values;
  for (std::size_t i = 0; i < recipe.args.size(); ++i)
    values.push_back(i < source.args.size() ? read_number(source.args[i]).value() : recipe.args[i].default_value);
  return values;
}

/// e8m0 has neither sign nor zero: such a scale gets the magnitude, at least the smallest number.
void make_scales(std::span<double> values) {
  const double smallest = info(Format::kE8m0).min_subnormal;
  for (double& x : values) {
    const double magnitude = x < 0 ? -x : x;
    x = magnitude > smallest ? magnitude : smallest;
  }
}

/// A prefix that sequences share continues in their own keys: k_prefix takes its numbers from where k does, so that it
/// makes no difference to the values where the prefix is stored.
std::string_view values_role(std::string_view role) {
  constexpr std::string_view kPrefix = "_prefix";
  return role.ends_with(kPrefix) ? role.substr(0, role.size() - kPrefix.size()) : role;
}

}  // namespace

void fill_from_recipe(const Source& source, const InputSpec& spec, double logit_scale, std::byte* storage) {
  const Recipe& recipe = *find_recipe(source.recipe);
  const std::vector<double> args = arguments(recipe, source);
  const TensorLayout& layout = spec.layout;
  Field field;
  field.role = layout.role;
  field.format = layout.format;
  field.extent = row_shape(spec).size;
  field.logit_scale = logit_scale;
  field.key = tensor_key(source.seed, values_role(layout.role));
  field.args = args;
  const Overflow overflow = recipe.infinite ? Overflow::kIeee : Overflow::kSaturate;
  std::vector<double> values(static_cast<std::size_t>(field.extent));
  std::vector<std::uint64_t> codes(values.size());
  for_each_row(spec, [&](const Row& row, const RowValues& at) {
    if (!is_used(row)) return;
    recipe.fill(field, row, values);
    if (layout.format == Format::kE8m0) make_scales(values);
    encode_all(layout.format, values, overflow, codes.data());
    at.each([&](std::int64_t i, std::int64_t element, std::int64_t) {
      store_code(storage, layout.format, element, codes[static_cast<std::size_t>(i)]);
    });
  });
}

}  // namespace assay

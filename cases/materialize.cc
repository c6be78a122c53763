// Case -> bits: poison first, then recipe, file or fixed values, then overrides.
#include "cases/materialize.h"

#include <algorithm>
#include <cmath>

#include "cases/file_source.h"
#include "cases/override.h"
#include "cases/poison.h"
#include "cases/recipes.h"
#include "cases/text.h"
#include "cases/walk.h"
#include "oracle/error.h"

namespace assay {
namespace {

Tensor poisoned(const TensorLayout& layout, Poison poison) {
  Tensor tensor{layout, {}};
  try {
    tensor.bytes.resize(static_cast<std::size_t>(layout.storage_bytes()));
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw EnvironmentError("case: tensor " + layout.role + " needs " + std::to_string(layout.storage_bytes()) +
                           " bytes of memory");
  }
  const std::uint64_t code = poison_code(layout.format, poison);
  for (std::int64_t i = 0; i < layout.storage; ++i) store_code(tensor.bytes.data(), layout.format, i, code);
  return tensor;
}

/// The factor of q.k in a logit: the parameter `scale`, or fl32(1 / sqrt(channels)).
double logit_scale(const Params& params, const InputSpec& spec) {
  if (const std::string* text = params.find("scale"))
    if (const std::optional<double> scale = read_number(*text)) return *scale;
  return static_cast<double>(static_cast<float>(1.0 / std::sqrt(static_cast<double>(row_shape(spec).size))));
}

void write_values(const InputSpec& spec, Tensor& tensor) {
  const TensorLayout& layout = spec.layout;
  for_each_row(spec, [&](const Row&, const RowValues& at) {
    at.each([&](std::int64_t, std::int64_t element, std::int64_t row_major) {
      const std::int64_t value = spec.values[static_cast<std::size_t>(row_major)];
      store_code(tensor.bytes.data(), layout.format, element, encode(layout.format, static_cast<double>(value)));
    });
  });
}

void apply(const Override& item, Tensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  if (item.index.size() != layout.shape.size()) bad_field("set", print_override(item), "wrong number of indices");
  std::int64_t element = layout.offset;
  for (std::size_t axis = 0; axis < item.index.size(); ++axis) {
    if (item.index[axis] < 0 || item.index[axis] >= layout.shape[axis])
      bad_field("set", print_override(item), "index out of range");
    element += item.index[axis] * layout.strides[axis];
  }
  store_code(tensor.bytes.data(), layout.format, element, override_code("set", layout.format, item.value));
}

}  // namespace

Tensor materialize_input(const Case& c, const InputSpec& spec) {
  Tensor tensor = poisoned(spec.layout, c.poison);
  if (!spec.values.empty()) {
    write_values(spec, tensor);
  } else {
    const auto source = std::find_if(c.sources.begin(), c.sources.end(),
                                     [&](const auto& item) { return item.first == spec.layout.role; });
    if (source == c.sources.end()) bad_field(spec.layout.role, "", "the case has no source for this tensor");
    if (source->second.recipe == "file")
      fill_from_file(source->second, spec, tensor.bytes.data());
    else
      fill_from_recipe(source->second, spec, logit_scale(c.params, spec), tensor.bytes.data());
  }
  for (const Override& item : c.overrides)
    if (item.role == spec.layout.role) apply(item, tensor);
  return tensor;
}

Problem materialize(const Case& c) {
  const Op& op = op_named(c.op);
  Problem problem{c.params, {}, op.outputs(c.params)};
  for (const InputSpec& spec : op.inputs(c.params)) problem.inputs.push_back(materialize_input(c, spec));
  for (const Override& item : c.overrides)
    if (std::none_of(problem.inputs.begin(), problem.inputs.end(), [&](const Tensor& t) { return t.layout.role == item.role; }))
      bad_field("set", print_override(item), "no such tensor");
  return problem;
}

}  // namespace assay

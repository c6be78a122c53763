// M16: the product of an index and a stride wraps around.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/materialize.h"
#include "failure_catalog/suppose.h"

namespace assay {
namespace {

enum class Unit : std::uint8_t { kVector, kElement };

/// Calls f(first element) for every vector of the tensor, its channels being the axes `c` and `g`; for every element
/// where it has none.
template <class F>
void for_each_vector(const TensorLayout& t, const std::string& axes, const F& f) {
  std::vector<std::size_t> outer;
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < t.shape.size(); ++axis)
    if (axes[axis] != 'c' && axes[axis] != 'g') outer.push_back(axis), count *= t.shape[axis];
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n, first = t.offset;
    for (const std::size_t axis : outer) first += rest % t.shape[axis] * t.strides[axis], rest /= t.shape[axis];
    f(first);
  }
}

/// Offsets within a vector, by its channel axes.
std::vector<std::int64_t> channel_offsets(const TensorLayout& t, const std::string& axes) {
  std::vector<std::int64_t> offsets{0};
  for (std::size_t axis = 0; axis < t.shape.size(); ++axis) {
    if (axes[axis] != 'c' && axes[axis] != 'g') continue;
    const std::vector<std::int64_t> before = std::exchange(offsets, {});
    for (std::int64_t i = 0; i < t.shape[axis]; ++i)
      for (const std::int64_t at : before) offsets.push_back(at + i * t.strides[axis]);
  }
  return offsets;
}

/// Vectors (or elements) that begin at or beyond `limit` hold what stands at their offset mod `limit`; nothing where no
/// tensor is that large.
std::optional<Problem> wrapped(const Problem& problem, const std::vector<std::string>& roles, std::int64_t limit,
                               Unit unit) {
  Problem changed = problem;
  bool any = false;
  for (const InputSpec& spec : op_named("attention").inputs(problem.params)) {
    if (std::find(roles.begin(), roles.end(), spec.layout.role) == roles.end() || spec.layout.storage <= limit)
      continue;
    Tensor* tensor = find_tensor(changed, spec.layout.role);
    if (tensor == nullptr) continue;
    any = true;
    const std::vector<std::byte> before = tensor->bytes;
    const TensorLayout& t = tensor->layout;
    const auto copy = [&](std::int64_t to, std::int64_t from) {
      store_code(tensor->bytes.data(), t.format, to, load_code(before.data(), t.format, from));
    };
    if (unit == Unit::kElement) {
      for (std::int64_t e = limit; e < t.storage; ++e) copy(e, e % limit);
      continue;
    }
    const std::vector<std::int64_t> offsets = channel_offsets(t, spec.axes);
    for_each_vector(t, spec.axes, [&](std::int64_t first) {
      if (first >= limit)
        for (const std::int64_t at : offsets) copy(first + at, first % limit + at);
    });
  }
  return any ? std::optional(std::move(changed)) : std::nullopt;
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  if (scene.c.op != "attention") return {};
  std::vector<Supposition> list;
  for (const int bits : {15, 16, 31, 32})
    for (const std::vector<std::string>& roles :
         std::vector<std::vector<std::string>>{{"k"}, {"v"}, {"q"}, {"mask"}, {"k", "v"}, {"q", "k", "v"}}) {
      const std::int64_t limit = std::int64_t{1} << bits;
      std::string largest;
      for (const Tensor& tensor : scene.problem.inputs)
        for (const std::string& role : roles)
          if (tensor.layout.role == role && tensor.layout.storage > limit)
            largest += fmt::format("{}{} has {} elements", largest.empty() ? "" : ", ", role, tensor.layout.storage);
      if (largest.empty()) continue;
      for (const Unit unit : {Unit::kVector, Unit::kElement})
        list.push_back(suppose_problem(
            scene, [&scene, roles, limit, unit] { return wrapped(scene.problem, roles, limit, unit); },
            fmt::format("element offsets wrap at 2^{} ({})", bits, largest),
            0.1 * static_cast<double>(roles.size()) + (unit == Unit::kElement ? 0.05 : 0)));
    }
  return list;
}

/// Another page table: a page that is looked up wrongly is another one then, an offset that wraps is not.
std::optional<FollowUp> follow_up(const Scene& scene, std::string_view rival) {
  if (rival != "page_slot_map") return std::nullopt;
  Case permuted = scene.c;
  permuted.params.set("page_seed", fmt::format("{}", scene.attention()->problem.params().page_seed + 1000));
  return FollowUp{materialize(permuted), "with the pages in another order"};
}

const RegisterMode kRegister({.name = "index_wrap",
                              .id = "M16",
                              .title = "An index times a stride wraps",
                              .hypotheses = hypotheses,
                              .follow_up = follow_up});

}  // namespace
}  // namespace assay

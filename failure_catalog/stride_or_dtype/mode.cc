// M15: strides, a head dimension or an element type taken for granted.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "failure_catalog/suppose.h"

namespace assay {
namespace {

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

/// The tensors read as if they were contiguous; nothing where that would leave the storage or changes nothing.
std::optional<Problem> contiguous(const Problem& problem, const std::vector<std::string>& roles, bool keeps_offset) {
  Problem changed = problem;
  bool any = false;
  for (const std::string& role : roles) {
    Tensor* tensor = find_tensor(changed, role);
    if (tensor == nullptr) return std::nullopt;
    TensorLayout& t = tensor->layout;
    const std::vector<std::int64_t> dense = dense_strides(t.shape);
    const std::int64_t offset = keeps_offset ? t.offset : 0;
    if (offset + t.count() > t.storage) return std::nullopt;
    any = any || dense != t.strides || offset != t.offset;
    t.strides = dense;
    t.offset = offset;
  }
  return any ? std::optional(std::move(changed)) : std::nullopt;
}

void inputs(const Scene& scene, std::vector<Supposition>& list) {
  const Problem& raw = scene.problem;
  for (const std::vector<std::string>& roles :
       std::vector<std::vector<std::string>>{{"v"}, {"k"}, {"q"}, {"k", "v"}, {"q", "k", "v"}})
    for (const bool offset : {false, true})
      list.push_back(suppose_problem(
          scene, [&raw, roles, offset] { return contiguous(raw, roles, offset); },
          fmt::format("{} {} read as contiguous, whatever the strides", fmt::join(roles, ", "),
                      roles.size() == 1 ? "is" : "are"),
          0.1 * static_cast<double>(roles.size()) + (offset ? 0.05 : 0)));
}

/// o written as if contiguous: an element holds what was meant for the one whose contiguous place it is.
void output(const Scene& scene, std::vector<Supposition>& list) {
  AttentionView* view = scene.attention();
  const AttentionParams& p = view->problem.params();
  const TensorLayout& o = view->problem.o_layout();
  if (p.batching == Batching::kPacked || p.sampled_rows > 0 || (dense_strides(o.shape) == o.strides && o.offset == 0) ||
      o.count() > o.storage)
    return;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> index;
  for (std::size_t r = 0; r < view->problem.rows().size(); ++r) {
    const AttentionRow& at = view->row(r);
    index[{at.batch, at.head, at.query}] = r;
  }
  const OutputTruth& truth = scene.evaluation.truth.outputs.front();
  const auto predict = [view, index, &truth, &scene](std::size_t row) -> std::optional<RowOutput> {
    const AttentionParams& params = view->problem.params();
    const std::int64_t dv = params.dim_v;
    RowOutput out{std::vector<double>(static_cast<std::size_t>(dv)), 0, {}};
    for (std::int64_t c = 0; c < dv; ++c) {
      std::int64_t at = view->problem.o_element(view->row(row), c);
      const std::int64_t channel = at % dv, query = at / dv % params.len_q,
                         head = at / dv / params.len_q % params.heads_q;
      const auto from = index.find({at / dv / params.len_q / params.heads_q, head, query});
      const std::size_t element =
          from == index.end() ? 0 : from->second * static_cast<std::size_t>(dv) + static_cast<std::size_t>(channel);
      const bool number = from != index.end() && (truth.classes[element] & (kNumber | kZero)) != 0;
      out.o[static_cast<std::size_t>(c)] = number ? truth.mid[element] : __builtin_nan("");
    }
    if (scene.evaluation.truth.outputs.size() > 1) out.lse = scene.evaluation.truth.outputs[1].mid[row];
    return out;
  };
  list.push_back(suppose(scene, predict, "o is written as contiguous, whatever its strides", 0));
}

/// Scores from the first channels only.
void channels(const Scene& scene, std::vector<Supposition>& list) {
  const std::int64_t dim = scene.attention()->problem.params().dim_qk;
  for (const std::int64_t kept : {std::int64_t{64}, std::int64_t{128}, std::int64_t{32}, std::int64_t{16}, dim / 2}) {
    if (kept <= 0 || kept >= dim) continue;
    list.push_back(suppose_problem(
        scene,
        [&scene, kept, dim]() -> std::optional<Problem> {
          Problem changed = scene.problem;
          Tensor* q = find_tensor(changed, "q");
          const TensorLayout& t = q->layout;
          std::vector<std::int64_t> at(t.shape.size(), 0);
          for (std::int64_t n = 0; n < t.count() / dim; ++n) {
            std::int64_t rest = n, element = t.offset;
            for (std::size_t axis = t.shape.size() - 1; axis-- > 0; rest /= t.shape[axis])
              element += rest % t.shape[axis] * t.strides[axis];
            for (std::int64_t c = kept; c < dim; ++c)
              store_code(q->bytes.data(), t.format, element + c * t.strides.back(), 0);
          }
          return changed;
        },
        fmt::format("scores take the first {} of {} channels", kept, dim), kept == 64 ? 0.0 : 0.1));
  }
}

/// The fp32 mask's storage seen as numbers of a shorter format.
void mask_type(const Scene& scene, std::vector<Supposition>& list) {
  if (scene.attention()->problem.params().data_mask != DataMask::kAdditive) return;
  for (const Format as : {Format::kBf16, Format::kFp16})
    list.push_back(suppose_problem(
        scene,
        [&scene, as]() -> std::optional<Problem> {
          Problem changed = scene.problem;
          Tensor* mask = find_tensor(changed, "mask");
          const std::vector<std::byte> bytes = mask->bytes;
          for (std::int64_t e = 0; e < mask->layout.storage; ++e)
            store_code(mask->bytes.data(), mask->layout.format, e,
                       encode(mask->layout.format, decode(as, load_code(bytes.data(), as, e))));
          return changed;
        },
        fmt::format("the fp32 mask is read as {} numbers", info(as).name), 0));
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  if (scene.c.op != "attention") return {};
  std::vector<Supposition> list;
  inputs(scene, list);
  output(scene, list);
  channels(scene, list);
  mask_type(scene, list);
  return list;
}

const RegisterMode kRegister({.name = "stride_or_dtype",
                              .id = "M15",
                              .title = "Strides, head dimension or type taken for granted",
                              .hypotheses = hypotheses});

}  // namespace
}  // namespace assay

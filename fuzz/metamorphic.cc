// The relations, as maps of indices; and the judging of two runs that need not have the same bits.
#include "fuzz/metamorphic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cases/materialize.h"
#include "cases/poison.h"
#include "oracle/error.h"
#include "oracle/measure.h"
#include "oracle/op.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

using Index = std::vector<std::int64_t>;

/// Calls f(index) for every index of a shape, in row-major order.
template <class F>
void for_each_index(const std::vector<std::int64_t>& shape, F&& f) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  Index index(shape.size(), 0);
  for (; count > 0; --count) {
    f(index);
    for (std::size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
}

std::int64_t element_at(const TensorLayout& layout, const Index& index) {
  std::int64_t at = layout.offset;
  for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * layout.strides[axis];
  return at;
}

Index same(Index i) { return i; }

/// The problem under other params, whose inputs hold at `index` what the first problem's hold at map(axes, index,
/// extents before).
template <class Map>
Problem remapped(const Problem& from, const Params& params, Map&& map) {
  const Op& op = op_named("attention");
  Problem to{params, {}, op.outputs(params)};
  for (const InputSpec& spec : op.inputs(params)) {
    const auto old = std::find_if(from.inputs.begin(), from.inputs.end(),
                                  [&](const Tensor& t) { return t.layout.role == spec.layout.role; });
    if (old == from.inputs.end())
      throw InputError("metamorphic: the related problem has a tensor " + spec.layout.role + " of its own");
    Tensor tensor{spec.layout, std::vector<std::byte>(static_cast<std::size_t>(spec.layout.storage_bytes()))};
    for (std::int64_t e = 0; e < spec.layout.storage; ++e)
      store_code(tensor.bytes.data(), spec.layout.format, e, poison_code(spec.layout.format, Poison::kNan));
    if (spec.layout == old->layout) tensor.bytes = old->bytes;
    for_each_index(spec.layout.shape, [&](const Index& index) {
      const Index source = map(spec, index, old->layout.shape);
      store_code(tensor.bytes.data(), spec.layout.format, element_at(spec.layout, index),
                 old->view().code(element_at(old->layout, source)));
    });
    to.inputs.push_back(std::move(tensor));
  }
  return to;
}

/// Turns around every axis of that letter.
Problem reversed(const Problem& problem, char letter, std::string_view only = {}) {
  return remapped(problem, problem.params,
                  [&](const InputSpec& spec, Index index, const std::vector<std::int64_t>& shape) {
                    if (!only.empty() && !spec.layout.role.starts_with(only)) return index;
                    for (std::size_t axis = 0; axis < index.size(); ++axis)
                      if (spec.axes[axis] == letter) index[axis] = shape[axis] - 1 - index[axis];
                    return index;
                  });
}

std::function<Index(Index)> mirror(std::size_t axis, std::int64_t extent) {
  return [=](Index i) {
    if (axis < i.size()) i[axis] = extent - 1 - i[axis];
    return i;
  };
}

/// Lengths and page tables have one entry, or row, per sequence too.
bool is_batch_axis(const InputSpec& spec, std::size_t axis) {
  const std::string& role = spec.layout.role;
  return spec.axes[axis] == 'b' || (axis == 0 && (role.starts_with("seqlens_") || role == "block_table"));
}

bool batches_have_an_axis(const AttentionParams& p) {
  return p.batch > 1 && p.batching != Batching::kPacked && p.kv_store != KvStore::kNhd && p.kv_store != KvStore::kHnd &&
         !p.expand_batch;
}

void reverse_list(Params& params, std::string_view key) {
  const std::string* list = params.find(key);
  if (list == nullptr) return;
  std::vector<std::string> entries;
  std::istringstream in(*list);
  for (std::string entry; std::getline(in, entry, ',');) entries.insert(entries.begin(), entry);
  const std::string turned = fmt::format("{}", fmt::join(entries, ","));
  params.set(key, turned);
}

std::optional<Related> reverse_batch(const Case&, const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  if (!batches_have_an_axis(p)) return std::nullopt;
  Params params = problem.params;
  reverse_list(params, "q_lens");
  reverse_list(params, "kv_lens");
  return Related{remapped(problem, params,
                          [](const InputSpec& spec, Index index, const std::vector<std::int64_t>& shape) {
                            for (std::size_t axis = 0; axis < index.size(); ++axis)
                              if (is_batch_axis(spec, axis)) index[axis] = shape[axis] - 1 - index[axis];
                            return index;
                          }),
                 mirror(0, p.batch)};
}

std::optional<Related> same_requests(const Case&, const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  if (!batches_have_an_axis(p) || p.batching != Batching::kDense || p.kv_store != KvStore::kContiguous)
    return std::nullopt;
  Problem twins = remapped(problem, problem.params, [](const InputSpec& spec, Index index, const auto&) {
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      if (spec.axes[axis] == 'b') index[axis] = 0;
    return index;
  });
  return Related{std::move(twins), [](Index i) {
                   i[0] = 0;
                   return i;
                 }};
}

std::optional<Related> reverse_heads(const Case&, const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  if (p.heads_q < 2) return std::nullopt;
  return Related{reversed(problem, 'h'), mirror(1, p.heads_q)};
}

std::optional<Related> expand_heads(const Case&, const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  if (p.heads_kv == p.heads_q) return std::nullopt;
  Params params = problem.params;
  params.set("hkv", std::to_string(p.heads_q));
  params = op_named("attention").canonical(params);
  return Related{remapped(problem, params,
                          [&](const InputSpec& spec, Index index, const std::vector<std::int64_t>& before) {
                            for (std::size_t axis = 0; axis < index.size(); ++axis)
                              index[axis] = index[axis] * before[axis] / spec.layout.shape[axis];
                            return index;
                          }),
                 same};
}

std::optional<Related> reverse_channels(const Case&, const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  if (p.v_in_k || p.dim_v < 2) return std::nullopt;
  return Related{reversed(problem, 'c', "v"),
                 [dv = p.dim_v, axes = p.batching == Batching::kPacked ? 3U : 4U](Index i) {
                   if (i.size() == axes) i.back() = dv - 1 - i.back();
                   return i;
                 }};
}

/// Multiplies a tensor by a power of two. False if that is not exact, or its numbers are so small or large that a
/// kernel's products may not be.
bool multiply(Problem& problem, std::string_view roles, double factor) {
  constexpr double kSmall = 0x1p-40, kLarge = 0x1p40;
  for (Tensor& tensor : problem.inputs) {
    const TensorLayout& layout = tensor.layout;
    if (!layout.role.starts_with(roles) || info(layout.format).specials == Specials::kInteger ||
        layout.role.ends_with("_scale"))
      continue;
    bool exact = true;
    for (std::int64_t e = 0; e < layout.storage; ++e) {
      const std::uint64_t code = load_code(tensor.bytes.data(), layout.format, e);
      if (!is_finite(layout.format, code)) continue;
      const double x = decode(layout.format, code), y = round_to(layout.format, factor * x);
      const double size = std::abs(x);
      exact = exact && y == factor * x && (x == 0 || (size >= kSmall && size <= kLarge));
      store_code(tensor.bytes.data(), layout.format, e, encode(layout.format, y));
    }
    if (!exact) return false;
  }
  return true;
}

std::optional<Related> double_values(const Case&, const Problem& problem) {
  if (attention_params(problem.params).v_in_k) return std::nullopt;
  Related related{problem, same, 2};
  if (!multiply(related.problem, "v", 2)) return std::nullopt;
  return related;
}

std::optional<Related> trade_scale(const Case&, const Problem& problem) {
  constexpr double kFactor = 4;
  Related related{problem, same};
  Problem checked = problem;
  if (!multiply(related.problem, "q", 1 / kFactor) || !multiply(checked, "k", 1)) return std::nullopt;
  const auto scale = static_cast<double>(attention_params(problem.params).scale);
  if (!(std::abs(scale) < 0x1p40) || (scale != 0 && std::abs(scale) < 0x1p-40)) return std::nullopt;
  related.problem.params.set("scale", fmt::format("{}", scale * kFactor));
  related.problem.params = op_named("attention").canonical(related.problem.params);
  return related;
}

/// The same line with other storage.
std::optional<Related> restored(const Case& c, const std::vector<std::pair<std::string, std::string>>& changes) {
  Case other = c;
  for (const auto& [key, value] : changes) other.params.set(key, value);
  other.params = op_named("attention").canonical(other.params);
  if (other == c || !c.overrides.empty()) return std::nullopt;
  return Related{materialize(other), same};
}

std::optional<Related> plain_layout(const Case& c, const Problem&) {
  return restored(c, {{"layout", "bhsd"}, {"pad_rows", "0"}, {"pad_dim", "0"}, {"offset", "0"}});
}

std::optional<Related> other_pages(const Case& c, const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  if (p.kv_store == KvStore::kContiguous) return std::nullopt;
  return restored(c, {{"page_seed", std::to_string(p.page_seed + 1)}});
}

/// The same number added to the logits of all keys, so large that a maximum without it overflows e^x in fp32.
std::optional<Related> logit_shift(const Case&, const Problem& problem) {
  constexpr double kShift = 96;
  if (attention_params(problem.params).data_mask != DataMask::kAdditive) return std::nullopt;
  Related related{.problem = problem, .origin = same, .exact = false};
  for (Tensor& tensor : related.problem.inputs) {
    if (tensor.layout.role != "mask") continue;
    for (std::int64_t e = 0; e < tensor.layout.storage; ++e) {
      const double x = tensor.view().value(e);
      if (std::isfinite(x)) tensor.output().set_code(e, encode(tensor.layout.format, x + kShift));
    }
  }
  return related;
}

/// Keys and values, and the columns of a mask, in the reverse order.
std::optional<Related> reverse_keys(const Case&, const Problem& problem) {
  const AttentionParams p = attention_params(problem.params);
  const bool by_place = p.causal || p.window_left >= 0 || p.window_right >= 0 || p.alibi != Alibi::kNone ||
                        p.segments || p.descale == Descale::kBlock || p.data_mask == DataMask::kBlock ||
                        p.data_mask == DataMask::kList;
  if (by_place || p.batching != Batching::kDense || p.kv_store != KvStore::kContiguous || p.prefix > 0 || p.len_kv < 2)
    return std::nullopt;
  return Related{.problem = remapped(problem, problem.params,
                                     [](const InputSpec& spec, Index index, const std::vector<std::int64_t>& shape) {
                                       const std::string& role = spec.layout.role;
                                       if (role == "k" || role == "v") index[2] = shape[2] - 1 - index[2];
                                       if (role == "mask") index[3] = shape[3] - 1 - index[3];
                                       return index;
                                     }),
                 .origin = same,
                 .exact = false};
}

std::string compare(const std::vector<Tensor>& first, const std::vector<Tensor>& second, const Related& related,
                    const AttentionParams& p) {
  std::string difference;
  for (std::size_t k = 0; k < first.size() && difference.empty(); ++k) {
    const TensorLayout &before = first[k].layout, &after = second[k].layout;
    const bool o = after.role == "o";
    for_each_index(after.shape, [&](const Index& index) {
      if (!difference.empty()) return;
      const Index from = related.origin(index);
      const std::size_t query =
          from.size() == (o ? 4U : 3U) ? 2U : from.size();  // padded: rows behind a sequence are not written
      if (query < from.size() && !p.lens_q.empty() && from[query] >= p.lens_q[static_cast<std::size_t>(from[0])])
        return;
      std::uint64_t want = first[k].view().code(element_at(before, from));
      const std::uint64_t is = second[k].view().code(element_at(after, index));
      if (o && related.factor != 1) {
        const double x = decode(before.format, want), y = x * related.factor;
        // Smaller numbers, and zeros that come of them, are rounded to a fixed step.
        if (std::isfinite(x) &&
            (std::abs(x) < info(before.format).min_normal || std::abs(y) > info(before.format).max_finite))
          return;
        if (std::isfinite(x)) want = encode(before.format, y);
      }
      if (want == is || (is_nan(before.format, want) && is_nan(before.format, is))) return;
      difference = fmt::format("{}[{}] is {:#x}, not {:#x}", after.role, fmt::join(index, ","), is, want);
    });
  }
  return difference;
}

/// What is wrong with two runs that are both judged; "" where the first fails by itself.
std::string judge(const Problem& problem, const RunOutcome& first, const Related& related, const RunOutcome& second) {
  const Op& op = op_named("attention");
  const Evaluation one = op.evaluate(problem, first.declared, Level::kT1),
                   two = op.evaluate(related.problem, second.declared, Level::kT1);
  std::string difference;
  for (std::size_t k = 0; k < first.outputs.size(); ++k) {
    const OutputTruth &t1 = one.truth.outputs[k], &t2 = two.truth.outputs[k];
    for (std::size_t i = 0; i < t1.element.size(); ++i) {
      const std::uint64_t y1 = first.outputs[k].view().code(t1.element[i]),
                          y2 = second.outputs[k].view().code(t2.element[i]);
      if (!accepted(one, k, i, y1)) return {};
      if (!difference.empty()) continue;
      const Format format = t1.layout.format;
      const std::string where = fmt::format("{}[{}]", t1.layout.role, t2.element[i]);
      if (!accepted(two, k, i, y2)) {
        difference = fmt::format("{} is {:#x}, not what the second problem allows", where, y2);
        continue;
      }
      const double a = decode(format, y1), b = decode(format, y2);
      if (t1.classes[i] != kNumber || t2.classes[i] != kNumber || !std::isfinite(a) || !std::isfinite(b)) continue;
      const double slack = one.bound.outputs[k].tau[i] + t1.radius[i] + two.bound.outputs[k].tau[i] + t2.radius[i] +
                           (ulp(format, a) + ulp(format, b)) / 2;
      if (const double apart = std::abs((b - t2.mid[i]) - (a - t1.mid[i])); apart > slack)
        difference = fmt::format("{} moved by {:.3g}, not by at most {:.3g}", where, apart, slack);
    }
  }
  return difference;
}

}  // namespace

const std::vector<Relation>& relations() {
  static const std::vector<Relation> all{
      {"reverse_batch", "sequences in the reverse order give their rows in the reverse order", reverse_batch},
      {"same_requests", "copies of the first sequence give its rows", same_requests},
      {"reverse_heads", "query and key heads in the reverse order give rows in the reverse order", reverse_heads},
      {"expand_heads", "one key head per query head, copied, gives the same rows", expand_heads},
      {"reverse_channels", "channels of V in the reverse order give channels in the reverse order", reverse_channels},
      {"double_values", "2 V gives 2 o and the same lse", double_values},
      {"trade_scale", "Q / 4 with 4 times the scale gives the same rows", trade_scale},
      {"plain_layout", "contiguous [batch, head, position, channel] storage gives the same rows", plain_layout},
      {"other_pages", "other physical pages give the same rows", other_pages},
      {"logit_shift", "96 added to an additive mask gives the same o and adds 96 to the lse, up to rounding",
       logit_shift},
      {"reverse_keys", "keys and values in the reverse order give the same rows, up to rounding", reverse_keys},
  };
  return all;
}

std::string violation(const Relation& relation, const Case& c, const Problem& problem, std::string_view kernel,
                      const RunOutcome& first, Runner& runner) {
  if (c.op != "attention" || first.status != RunStatus::kOk) return {};
  const AttentionParams p = attention_params(problem.params);
  if (p.sampled_rows > 0) return {};
  const std::optional<Related> related = relation.relate(c, problem);
  if (!related) return {};
  const Problem& other = related->problem;
  const RunOutcome second = runner.run(kernel, other.params, other.inputs, other.outputs);
  if (second.status != RunStatus::kOk || !(second.declared == first.declared)) return {};
  const std::string difference =
      related->exact ? compare(first.outputs, second.outputs, *related, p) : judge(problem, first, *related, second);
  return difference.empty() ? "" : fmt::format("{}: {}", relation.name, difference);
}

}  // namespace assay

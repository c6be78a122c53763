// The probes of a fingerprint: a few keys with chosen logits and values, everything else out of sight.
#include "fuzz/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "cases/materialize.h"
#include "cases/walk.h"
#include "failure_catalog/tomography.h"
#include "oracle/error.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kOff = -256, kOn = 4;  // logit -1024: no weight in any format; both exact in 8 bits

/// The kernel on case lines of its own format and store.
class Subject {
 public:
  Subject(Runner& runner, const KernelIdentity& kernel) : runner_(runner), kernel_(kernel.name) {
    if (kernel.op != "attention")
      throw InputError(kernel.name + " computes " + kernel.op + "; fingerprints are of attention");
    const std::string dtype = kernel.dtypes.empty() ? "bf16" : kernel.dtypes[0];
    for (const auto& [words, first] :
         {std::pair{"", 0}, {" kv=vllm page=16", 0}, {" kv=nhd page=16", 0}, {" prefix=16", 16}}) {
      suffix_ = fmt::format(" dtype={}{}", dtype, words);
      first_ = first;
      if (run(fmt::format("skv={} d=64", first_ + 16)).status == RunStatus::kOk) return;
    }
    throw InputError(kernel.name + " declines every probe: " + reason_);
  }

  /// Keys in front of those that a probe uses.
  std::int64_t first() const { return first_; }
  std::string line(const std::string& words) const { return "attention " + words + suffix_; }
  Problem problem(const std::string& words) const { return materialize(parse_case(line(words))); }
  RunOutcome run(const Problem& p) {
    RunOutcome out = runner_.run(kernel_, p.params, p.inputs, p.outputs);
    if (out.status != RunStatus::kOk) reason_ = out.reason;
    return out;
  }
  RunOutcome run(const std::string& words) { return run(problem(words)); }
  Arithmetic declared(const std::string& words) { return run(words).declared; }
  Format format() const { return problem(fmt::format("skv={} d=64", first_ + 16)).inputs[0].layout.format; }
  Runner& runner() { return runner_; }
  const std::string& reason() const { return reason_; }

 private:
  Runner& runner_;
  std::string kernel_, suffix_, reason_;
  std::int64_t first_ = 0;
};

/// Writes values of one tensor and what continues it behind a prefix; nothing: the value stays.
void set_values(Problem& problem, std::string_view role,
                const std::function<std::optional<double>(const Row&, std::int64_t)>& value) {
  for (const InputSpec& spec : op_named("attention").inputs(problem.params)) {
    if (spec.layout.role != role && spec.layout.role != std::string(role) + "_prefix") continue;
    const auto tensor = std::find_if(problem.inputs.begin(), problem.inputs.end(),
                                     [&](const Tensor& t) { return t.layout.role == spec.layout.role; });
    for_each_row(spec, [&](const Row& row, const RowValues& at) {
      if (!is_used(row)) return;
      at.each([&](std::int64_t c, std::int64_t element, std::int64_t) {
        if (const std::optional<double> v = value(row, c))
          store_code(tensor->bytes.data(), spec.layout.format, element, encode(spec.layout.format, *v));
      });
    });
  }
}

/// Logits of the keys from `first` on; all others get none (-1024). The scale must be 1.
void set_logits(Problem& problem, std::int64_t first, const std::vector<double>& logits) {
  set_values(problem, "q", [](const Row&, std::int64_t c) { return c == 0 ? 1.0 : c == 1 ? kOn : 0.0; });
  set_values(problem, "k", [&](const Row& row, std::int64_t c) -> double {
    const std::int64_t key = row.position - first;
    const bool seen = key >= 0 && key < static_cast<std::int64_t>(logits.size());
    return c == 0 && seen ? logits[static_cast<std::size_t>(key)] : c == 1 && !seen ? kOff : 0.0;
  });
}

double o_at(const RunOutcome& run, std::int64_t channel) {
  const TensorView o = run.outputs[0].view();
  return o.value(o.layout->offset + channel * o.layout->strides.back());
}

Trait not_measured(std::string name, const Subject& k) {
  return {std::move(name), "not measured: " + k.reason(), {}, true};
}

/// Two keys of logits 0 and -x with values -RN(e^-x) and 1: o is exactly 0 only if P is rounded to that format.
Trait weight_format(Subject& k) {
  const Format format = k.format();
  int zeros = 0;
  constexpr std::array<double, 4> kLogits{0.75, 1.25, 2.5, 3.5};
  for (const double x : kLogits) {
    Problem p = k.problem(fmt::format("skv={} d=64 scale=1", k.first() + 2));
    set_logits(p, k.first(), {0, -x});
    set_values(p, "v", [&](const Row& row, std::int64_t) {
      return row.position == k.first() ? -round_to(format, exp64(-x)) : 1.0;
    });
    const RunOutcome run = k.run(p);
    if (run.status != RunStatus::kOk) return not_measured("P", k);
    zeros += o_at(run, 0) == 0;
  }
  const std::string name(info(format).name);
  const bool rounded = zeros == 4;
  const Arithmetic a = k.declared(fmt::format("skv={} d=64", k.first() + 2));
  Trait t{
      "P", rounded ? "rounded to " + name : fmt::format("not rounded to {} ({} of 4 cancel)", name, zeros), {}, true};
  if (format == Format::kFp32)
    t.measured = zeros == 4 ? "fp32" : fmt::format("narrower than fp32, or another exp ({} of 4 cancel)", zeros);
  if (a.p_known) {
    t.expected = a.p_format == Format::kFp32 ? "not rounded" : "rounded to " + std::string(info(a.p_format).name);
    t.agrees = format == Format::kFp32 || rounded == (a.p_format == format);
  }
  return t;
}

/// All weights equal, M and -M at two keys, a small number at the others: what was added between them is absorbed. One
/// pair per channel.
Trait value_order(Subject& k) {
  constexpr std::int64_t kKeys = 64;
  if (info(k.format()).storage_bits == 8) return {"P V", "not measured: 8-bit values span too few binades", {}, true};
  const bool fp16 = k.format() == Format::kFp16;
  // All small ones together are below half an ulp of the big one, also in fp32, and o / 64 is a number of the format.
  const double big = fp16 ? 0x1p15 : 0x1p40, small = fp16 ? 0x1p-17 : 1;
  const auto lost_between = [&](std::int64_t fixed) -> std::optional<std::vector<std::int64_t>> {
    Problem p = k.problem(fmt::format("skv={} d=64 scale=1 lse=none", k.first() + kKeys));
    set_logits(p, k.first(), std::vector<double>(kKeys, 0.0));
    set_values(p, "v", [&](const Row& row, std::int64_t c) {
      const std::int64_t key = row.position - k.first();
      return key == fixed ? big : key == c ? -big : small;
    });
    const RunOutcome run = k.run(p);
    if (run.status != RunStatus::kOk) return std::nullopt;
    std::vector<std::int64_t> lost;
    for (std::int64_t c = 0; c < kKeys; ++c)
      lost.push_back(kKeys - 2 - static_cast<std::int64_t>(std::nearbyint(o_at(run, c) / small * kKeys)));
    return lost;
  };
  const auto first = lost_between(0), last = lost_between(kKeys - 1);
  if (!first || !last) return not_measured("P V", k);
  // Forward, nothing is behind keys 0 and 1 but their own block; backward, the same of the last two.
  const std::int64_t forward = (*first)[1], backward = (*last)[kKeys - 2];
  const std::int64_t block = std::min(forward, backward) + 2;
  const char* order = forward < backward   ? "first to last"
                      : forward > backward ? "last to first"
                                           : "in no single chain";
  Trait t{"P V", {}, {}, true};
  const std::string blocks = block == 2 ? "one key at a time" : fmt::format("blocks of {} keys", block);
  t.measured =
      forward == backward && block == kKeys ? "a sum in one block, or of more bits than 24" : blocks + ", " + order;
  // Inside one tile keys go forward in every declaration.
  const Arithmetic a = k.declared(fmt::format("skv={} d=64", k.first() + kKeys));
  if (a.pv == Accumulate::kBlockHopper || a.pv == Accumulate::kBlockAmpere)
    t.expected = fmt::format("block FMA{}", a.tile_n > 0 ? fmt::format(", tiles of {}", a.tile_n) : "");
  if (a.pv == Accumulate::kFp32) t.expected = "scalar fp32";
  t.agrees = t.expected.empty() || (a.pv == Accumulate::kFp32) == (block == 2);
  return t;
}

Trait lse_base(Subject& k) {
  Problem p = k.problem(fmt::format("skv={} d=64 scale=1 lse=e", k.first() + 1));
  set_logits(p, k.first(), {64});
  const RunOutcome run = k.run(p);
  if (run.status != RunStatus::kOk) return not_measured("LSE base", k);
  const double lse = run.outputs[1].view().value(run.outputs[1].layout.offset);
  const bool natural = std::abs(lse - 64) < 0.01, two = std::abs(lse - 64 * 0x1.71547652b82fep+0) < 0.01;
  return {"LSE base", natural ? "e" : two ? "2" : fmt::format("neither: ln e^64 is {}", lse), "e", natural};
}

/// More queries than keys under a causal mask: the first rows have no key.
Trait empty_rows(Subject& k) {
  const std::int64_t keys = k.first() + 2;
  Problem p = k.problem(fmt::format("sq={} skv={} d=64 mask=causal", keys + 2, keys));
  set_values(p, "v", [](const Row&, std::int64_t) { return 3.0; });
  const RunOutcome run = k.run(p);
  if (run.status != RunStatus::kOk) return not_measured("empty row", k);
  const double o = o_at(run, 0), lse = run.outputs[1].view().value(run.outputs[1].layout.offset);
  const std::string value = std::isnan(o) ? "NaN" : o == 0 ? "0" : o == 3 ? "the mean of V" : fmt::format("{}", o);
  return {"empty row", fmt::format("o {}, LSE {}", value, lse), "o 0, LSE -inf", o == 0 && lse < 0 && std::isinf(lse)};
}

/// Which keys the rows of a masked case use, by tomography.
Trait key_sets(Subject& k, const std::string& name, const std::string& words) {
  const Problem p = k.problem(words);
  const auto found = weight_tomography(p, [&](const Problem& q) -> std::optional<std::vector<Tensor>> {
    RunOutcome run = k.run(q);
    if (run.status != RunStatus::kOk) return std::nullopt;
    return std::move(run.outputs);
  });
  if (!found) return not_measured(name, k);
  const auto used = [](const RowWeights& row, const auto& takes) {
    std::string text;
    for (std::size_t j = 0, end; j < row.expected.size(); j = end) {
      for (end = j; end < row.expected.size() && takes(end);) ++end;
      if (end > j) text += fmt::format("{}{}..{}", text.empty() ? "" : ", ", j, end - 1);
      if (end == j) ++end;
    }
    return text.empty() ? std::string("none") : text;
  };
  const RowWeights& row = found->rows.front();
  const std::string measured = used(row, [&](std::size_t j) { return row.measured[j] != 0; });
  const std::string expected = used(row, [&](std::size_t j) { return static_cast<bool>(row.admissible[j]); });
  const bool right = key_differences(*found).empty();
  return {name, "row 0 uses keys " + measured + (right || measured != expected ? "" : "; other rows differ"),
          "keys " + expected, right};
}

Trait subnormal_values(Subject& k) {
  const Format format = k.format();
  Problem p = k.problem(fmt::format("skv={} d=64 scale=1", k.first() + 1));
  const double tiny = info(format).min_subnormal;
  set_logits(p, k.first(), {0});
  set_values(p, "v", [&](const Row&, std::int64_t) { return tiny; });
  const RunOutcome run = k.run(p);
  if (run.status != RunStatus::kOk) return not_measured("subnormal V", k);
  const double o = o_at(run, 0);
  const Arithmetic a = k.declared(fmt::format("skv={} d=64", k.first() + 1));
  Trait t{"subnormal V",
          o == tiny ? "kept"
          : o == 0  ? "flushed to zero"
                    : fmt::format("{} from {}", o, tiny),
          {},
          true};
  if (a.subnormals != Subnormals::kUnknown) {
    t.expected = a.subnormals == Subnormals::kKept ? "kept" : "flushed";
    t.agrees = (o == tiny) == (a.subnormals == Subnormals::kKept);
  }
  return t;
}

/// NaN in K or V of a key that the mask takes out.
Trait masked_nan(Subject& k, const char* role) {
  Problem p = k.problem(fmt::format("sq={0} skv={0} d=64 mask=causal", k.first() + 4));
  const std::int64_t last = k.first() + 3;
  set_values(p, role, [&](const Row& row, std::int64_t c) {
    return row.position == last && c == 0 ? std::optional(std::nan("")) : std::nullopt;
  });
  const std::string name = fmt::format("NaN in a masked {}", role[0] == 'k' ? "K" : "V");
  if (info(k.format()).storage_bits == 8 && k.format() != Format::kE4m3 && k.format() != Format::kE5m2)
    return not_measured(name, k);
  const RunOutcome run = k.run(p);
  if (run.status != RunStatus::kOk) return not_measured(name, k);
  return {name, std::isnan(o_at(run, 0)) ? "reaches the row" : "ignored", {}, true};
}

bool same_front(const Tensor& a, const Tensor& b, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i)
    if (a.view().code(a.layout.offset + i * a.layout.strides.back()) !=
        b.view().code(b.layout.offset + i * b.layout.strides.back()))
      return false;
  return true;
}

/// Row 0 of head 0 of sequence 0 alone and among others; recipes give it the same bits.
Trait invariance(Subject& k, const std::string& name, const std::string& alone, const std::string& among) {
  const RunOutcome a = k.run(alone), b = k.run(among);
  if (a.status != RunStatus::kOk || b.status != RunStatus::kOk) return not_measured(name, k);
  const bool same = same_front(a.outputs[0], b.outputs[0], 64);
  return {name, same ? "same bits" : "other bits", {}, true};
}

Trait determinism(Subject& k) {
  const std::string words = "b=2 hq=2 sq=20 skv=300 d=64";
  const RunOutcome once = k.run(words);
  if (once.status != RunStatus::kOk) return not_measured("repeated runs", k);
  int same = 0;
  for (int i = 0; i < 4; ++i) {
    if (i == 2) k.runner().restart();
    const RunOutcome again = k.run(words);
    same += again.status == RunStatus::kOk && again.outputs[0].bytes == once.outputs[0].bytes;
  }
  return {"repeated runs", same == 4 ? "same bits" : fmt::format("other bits in {} of 4", 4 - same), "same bits",
          same == 4};
}

}  // namespace

std::vector<Trait> fingerprint(Runner& runner, const KernelIdentity& kernel) {
  Subject k(runner, kernel);
  const std::string keys = std::to_string(k.first() + 6);
  return {
      weight_format(k),
      value_order(k),
      lse_base(k),
      empty_rows(k),
      key_sets(k, "causal", "sq=2 skv=" + keys + " d=64 mask=causal"),
      key_sets(k, "causal from the top left", "sq=2 skv=" + keys + " d=64 mask=causal align=tl"),
      key_sets(k, "window 2,1", "sq=4 skv=" + keys + " d=64 window=2,1"),
      key_sets(k, "window 2,1 open to the left", "sq=4 skv=" + keys + " d=64 window=2,1 window_ends=left_exclusive"),
      subnormal_values(k),
      masked_nan(k, "k"),
      masked_nan(k, "v"),
      determinism(k),
      invariance(k, "alone or in a batch", "hq=2 skv=300 d=64", "b=5 hq=2 skv=300 d=64"),
      invariance(k, "one query or many", "skv=300 d=64", "sq=150 skv=300 d=64"),
      invariance(k, "one head or many", "skv=300 d=64", "hq=8 skv=300 d=64")};
}

}  // namespace assay

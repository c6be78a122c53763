// M20: soft cap, ALiBi, additive mask or sink left out, doubled, or in another order or frame.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "failure_catalog/deviations.h"
#include "oracle/exp64.h"

namespace assay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kLog2E = 0x1.71547652b82fep+0;

void soft_cap(Deviations& all) {
  const AttentionParams& p = *all.attention();
  const auto cap = static_cast<double>(p.softcap);
  const auto with = [&](auto transform, const std::string& what) {
    Deviation d;
    d.logit = [transform, cap](const AttentionRow&, const ReplayKey& key) {
      return transform(key.scale_q * key.k_scale * key.score, cap, key.alibi + key.additive);
    };
    all.add(d, what);
  };
  with([](double y, double, double bias) { return y + bias; }, fmt::format("the soft cap of {:g} is not applied", cap));
  with([](double y, double c, double bias) { return c * tanh64(y * kLog2E / c) / kLog2E + bias; },
       fmt::format("the soft cap of {:g} holds for logits in units of log2", cap));
  with([](double y, double c, double bias) { return c * tanh64((y + bias) / c); },
       fmt::format("the soft cap of {:g} is applied after the biases", cap));
  Deviation leak;
  leak.masked_too = true;
  leak.logit = [&p, cap](const AttentionRow&, const ReplayKey& key) {
    return key.admissible ? defined_logit(p, key) : -cap;
  };
  all.add(leak, fmt::format("the soft cap of {0:g} is applied after the mask: masked keys have logit -{0:g}", cap));
  all.add(
      [cap](double t) {
        Deviation d;
        d.logit = [c = cap * exp2_64(t)](const AttentionRow&, const ReplayKey& key) {
          return c * tanh64(key.scale_q * key.k_scale * key.score / c) + key.alibi + key.additive;
        };
        return d;
      },
      {.low = -3, .high = 3, .grid = 49}, "log2 of the soft cap over the declared one",
      [](const std::string& value) { return "the soft cap is 2^" + value + " of the declared one"; }, 0.3);
}

double slope_of(const Scene& scene, const AttentionRow& row) {
  const AttentionParams& p = scene.attention()->problem.params();
  for (const Tensor& t : scene.problem.inputs)
    if (t.layout.role == "slopes")
      return p.slopes_per_batch ? t.view().value(t.view().element(row.batch, row.head))
                                : t.view().value(t.view().element(row.head));
  return 0;
}

void alibi(const Scene& scene, Deviations& all) {
  const AttentionParams& p = *all.attention();
  const auto with = [&](auto change, const std::string& what, double cost = 0) {
    Deviation d;
    d.logit = [&p, &scene, change](const AttentionRow& row, ReplayKey key) {
      key.alibi = change(key, slope_of(scene, row), row);
      return defined_logit(p, key);
    };
    all.add(d, what, cost);
  };
  with([](const ReplayKey&, double, const AttentionRow&) { return 0.0; }, "the ALiBi bias is not applied");
  with([](const ReplayKey& key, double, const AttentionRow&) { return -key.alibi; },
       "ALiBi distances have the wrong sign");
  with([](const ReplayKey& key, double, const AttentionRow&) { return 2 * key.alibi; },
       "the ALiBi bias is applied twice");
  for (const int shift : {1, -1})
    with([shift](const ReplayKey& key, double slope, const AttentionRow&) { return key.alibi + shift * slope; },
         fmt::format("ALiBi distances are off by {}", shift));
  const auto heads = static_cast<double>(p.heads_q);
  const auto formula = [heads](std::int64_t head, double first) {
    return exp2_64(-8 * (static_cast<double>(head) + first) / heads);
  };
  with([formula](const ReplayKey& key, double slope,
                 const AttentionRow& row) { return slope == 0 ? 0.0 : key.alibi / slope * formula(row.head, 1); },
       "ALiBi slopes are 2^(-8 (h + 1) / heads), not those given");
  with([formula](const ReplayKey& key, double slope,
                 const AttentionRow& row) { return slope == 0 ? 0.0 : key.alibi / slope * formula(row.head, 0); },
       "ALiBi slopes are 2^(-8 h / heads), not those given");
  const AttentionProblem& problem = scene.attention()->problem;
  struct Form {
    Alibi form;
    std::string_view words;
  };
  for (const Form& form : {Form{Alibi::kDistance, "-|p - j|"}, Form{Alibi::kKey, "j"}, Form{Alibi::kDiagonal, "j - i"},
                           Form{Alibi::kLast, "j - kv_len + 1"}}) {
    if (form.form == p.alibi) continue;
    with(
        [&problem, kind = form.form](const ReplayKey& key, double slope, const AttentionRow& row) {
          const std::int64_t kv = problem.kv_len(row.batch), q = problem.q_len(row.batch);
          const std::int64_t at = problem.params().align == Align::kTopLeft ? row.query : row.query + kv - q;
          const std::int64_t d = kind == Alibi::kDistance   ? -std::abs(at - key.key)
                                 : kind == Alibi::kKey      ? key.key
                                 : kind == Alibi::kDiagonal ? key.key - row.query
                                                            : key.key - kv + 1;
          return slope * static_cast<double>(d);
        },
        fmt::format("convention: ALiBi distances are {}", form.words), 0.1);
  }
}

void mask(Deviations& all) {
  const AttentionParams& p = *all.attention();
  const auto scale = static_cast<double>(p.scale);
  const auto with = [&](double factor, const std::string& what, bool infinite_too = false) {
    Deviation d;
    d.logit = [&p, factor, infinite_too](const AttentionRow&, ReplayKey key) {
      key.additive = infinite_too || std::isfinite(key.additive) ? key.additive * factor : key.additive;
      return defined_logit(p, key);
    };
    all.add(d, what);
  };
  // A scale of 0 or below makes NaN or +inf of -inf.
  with(scale, fmt::format("the additive mask is multiplied by the scale {:.4g}", scale), true);
  with(2, "the additive mask is applied twice");
  with(0, "the finite entries of the additive mask are not applied");
  with(-1, "the additive mask has the wrong sign");
  with(kLog2E, "the additive mask is taken in units of log2");
}

void sink(Deviations& all) {
  const AttentionParams& p = *all.attention();
  const auto scale = static_cast<double>(p.scale);
  const auto with = [&](auto change, const std::string& what) {
    Deviation d;
    d.sink = change;
    all.add(d, what);
  };
  with([](double) { return -kInf; }, "the sink is not applied");
  with([scale](double x) { return x * scale; }, fmt::format("the sink is multiplied by the scale {:.4g}", scale));
  with([](double x) { return x * kLog2E; }, "the sink is taken in units of log2");
  with([](double x) { return x / kLog2E; }, "the sink is taken in natural units where it is one of log2");
  with([](double x) { return x + 1 / kLog2E; }, "the sink is counted twice");
  if (all.structure().splits > 1)
    all.add(
        Deviation{.sink_in_parts = true},
        fmt::format("each of {} splits has the sink among its keys, and so has their merge", all.structure().splits));
  if (all.structure().splits == 1)
    all.add(Deviation{.sink_in_parts = true, .merges_one = true},
            "a single split, merged like several, has the sink among its keys, and so has the merge", 0.3);
  if (all.structure().splits > 1) {
    const double more = log64(static_cast<double>(all.structure().splits));
    with([more](double x) { return x + more; },
         fmt::format("the sink is counted {} times, once per split", all.structure().splits));
  }
}

std::vector<Supposition> hypotheses(const Scene& scene) {
  Deviations all(scene);
  if (all.attention() == nullptr) return {};
  const AttentionParams& p = *all.attention();
  if (p.softcap > 0) soft_cap(all);
  if (p.alibi != Alibi::kNone) alibi(scene, all);
  if (p.data_mask == DataMask::kAdditive) mask(all);
  if (p.sink != Sink::kNone) sink(all);
  return all.take();
}

const RegisterMode kRegister({.name = "logit_transform",
                              .id = "M20",
                              .title = "Soft cap, bias or sink not as declared",
                              .hypotheses = hypotheses});

}  // namespace
}  // namespace assay

// Loading rows, splits, and the difference that a deviation makes.
#include "oracle/ops/attention/kernel_replay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/budget.h"
#include "oracle/exp64.h"
#include "oracle/ops/attention/kernel_replay_state.h"

namespace assay {
namespace {

constexpr float kLog2e = 0x1.715476p+0F;
constexpr double kLog2E = 0x1.71547652b82fep+0, kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kUsualTile = 64, kQueryTile = 64;
constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // of heads and rows kept

bool is_block(Accumulate kind) { return kind != Accumulate::kFp32; }

/// What is not declared has its usual value.
Arithmetic completed(const AttentionParams& p, Arithmetic a) {
  if (a.qk == Accumulate::kUnknown) a.qk = Accumulate::kBlockHopper;
  if (a.pv == Accumulate::kUnknown) a.pv = Accumulate::kBlockHopper;
  if (p.input == Format::kFp32) a.qk = a.pv = Accumulate::kFp32;
  if (!a.p_known) a.p_known = true, a.p_format = p.input;
  if (a.row_sum_of == RowSumOf::kUnknown) a.row_sum_of = RowSumOf::kUnroundedP;
  if (a.row_sum_tree == RowSumTree::kUnknown) a.row_sum_tree = RowSumTree::kQuad;
  if (a.max_policy == MaxPolicy::kUnknown) a.max_policy = MaxPolicy::kEveryTile;
  if (a.tile_order == TileOrder::kUnknown) a.tile_order = TileOrder::kForward;
  if (a.splits == 0) a.splits = 1;
  return a;
}

}  // namespace

KernelReplay::KernelReplay(const AttentionProblem& problem, const Arithmetic& declared)
    : problem_(problem), params_(problem.params()), a_(completed(problem.params(), declared)) {
  const bool adjusts = params_.data_mask == DataMask::kAdditive || params_.softcap > 0 || params_.alibi != Alibi::kNone;
  on_score_ = adjusts || a_.scale_form == ScaleForm::kOnScore || params_.descale == Descale::kBlock;
  narrow_ = info(params_.input).storage_bits == 8 && is_block(a_.pv);
}

KernelReplay::~KernelReplay() = default;

const KernelReplay::Head& KernelReplay::head(std::int64_t batch, std::int64_t kv_head) {
  std::unique_ptr<Head>& slot = heads_[{batch, kv_head}];
  if (slot != nullptr) return *slot;
  slot = std::make_unique<Head>();
  Head& h = *slot;
  h.keys = problem_.kv_len(batch);
  const auto d = static_cast<std::size_t>(params_.dim_qk), dv = static_cast<std::size_t>(params_.dim_v);
  std::vector<double> vector(std::max(d, dv));
  for (std::int64_t j = 0; j < h.keys; ++j) {
    problem_.load_k(batch, kv_head, j, {vector.data(), d});
    for (std::size_t c = 0; c < d; ++c) h.k.push_back(static_cast<float>(vector[c]));
    problem_.load_v(batch, kv_head, j, {vector.data(), dv});
    for (std::size_t c = 0; c < dv; ++c) {
      h.v.push_back(static_cast<float>(vector[c]));
      h.finite = h.finite && std::isfinite(vector[c]);
    }
  }
  bytes_ += (h.k.size() + h.v.size()) * sizeof(float);
  return h;
}

/// Scores as the declared product gives them, or with a narrower accumulator.
void KernelReplay::sum_scores(const Row& row, const Deviation& d, std::vector<double>& score) const {
  const std::size_t dim = static_cast<std::size_t>(params_.dim_qk), n = row.keys.size();
  score.resize(n);
  const bool block = is_block(a_.qk);
  const MmaModel* model = block ? &block_model(a_.qk, params_.input) : nullptr;
  // Bit by bit: whether P of the largest logit falls short of 1 depends on the last bit of its score.
  if (d.score_sum == Format::kFp32 && block) {
    std::vector<float> s(n, 0.0F);
    mma_tile(*model, params_.input, 1, static_cast<int>(n), static_cast<int>(dim), {row.q.data(), params_.dim_qk, 1},
             {row.head->k.data(), 1, params_.dim_qk}, s.data(), static_cast<std::int64_t>(n));
    for (std::size_t j = 0; j < n; ++j) score[j] = static_cast<double>(s[j]);
    return;
  }
  const std::size_t group = d.score_sum == Format::kFp32 ? dim : block ? static_cast<std::size_t>(model->block_k) : 1;
  for (std::size_t j = 0; j < n; ++j) {
    const float* k = row.head->k.data() + j * dim;
    double s = 0;
    for (std::size_t c = 0; c < dim; c += group) {
      for (std::size_t i = c; i < std::min(dim, c + group); ++i)
        s += static_cast<double>(row.q[i]) * static_cast<double>(k[i]);
      if (d.score_sum != Format::kFp32) s = stored(d.score_sum, s);
    }
    score[j] = s;
  }
}

/// Keys of the tiles that a query tile of 64 rows walks over.
void KernelReplay::visit(Row& row) const {
  const std::int64_t first = row.at.query / kQueryTile * kQueryTile;
  row.first_visited = row.first, row.end_visited = row.end;
  for (std::int64_t i = first; i < std::min(first + kQueryTile, problem_.q_len(row.at.batch)); ++i) {
    const auto [begin, end] = problem_.key_span({row.at.batch, row.at.head, i});
    if (begin >= end) continue;
    row.first_visited = std::min(row.first_visited, begin);
    row.end_visited = std::max(row.end_visited, end);
  }
}

const KernelReplay::Row& KernelReplay::load(std::size_t index) {
  if (bytes_ > kMostBytes) rows_.clear(), heads_.clear(), bytes_ = 0;
  std::unique_ptr<Row>& slot = rows_[index];
  if (slot != nullptr) return *slot;
  slot = std::make_unique<Row>();
  Row& row = *slot;
  bytes_ += static_cast<std::size_t>(problem_.kv_len(problem_.rows()[index].batch)) * sizeof(ReplayKey);
  row.at = problem_.rows()[index];
  row.head = &head(row.at.batch, problem_.kv_head(row.at.head));
  std::vector<double> q(static_cast<std::size_t>(params_.dim_qk));
  problem_.load_q(row.at, q);
  row.q.assign(q.begin(), q.end());
  row.keys.resize(static_cast<std::size_t>(row.head->keys));
  std::vector<std::int32_t> admissible;
  problem_.admissible_keys(row.at, admissible);
  for (ReplayKey& key : row.keys) key.admissible = false;
  for (const std::int32_t key : admissible) row.keys[static_cast<std::size_t>(key)].admissible = true;
  if (!admissible.empty()) row.first = admissible.front(), row.end = admissible.back() + 1;
  std::vector<double> score;
  sum_scores(row, {}, score);
  for (std::size_t j = 0; j < row.keys.size(); ++j) {
    ReplayKey& key = row.keys[j];
    key.key = static_cast<std::int32_t>(j);
    key.score = score[j];
    const AttentionProblem::Factors f = problem_.factors(row.at, key.key);
    key.scale_q = f.scale_q, key.k_scale = f.k;
    if (params_.alibi != Alibi::kNone) key.alibi = problem_.alibi(row.at, key.key);
    if (params_.data_mask == DataMask::kAdditive) key.additive = problem_.additive(row.at, key.key);
  }
  row.scale = row.keys.empty() ? 1 : std::abs(row.keys[0].scale_q * row.keys[0].k_scale);
  row.unit = on_score_ ? kLog2e : static_cast<float>(row.scale * 0x1.71547652b82fep+0);
  row.sink = problem_.sink(row.at);
  visit(row);
  return row;
}

/// What the case declares for a row without keys.
KernelReplay::Part KernelReplay::contract(const Row& row, const Deviation& d) const {
  const auto dv = static_cast<std::size_t>(params_.dim_v);
  const std::int64_t keys = row.head->keys;
  const double share = params_.empty_output == EmptyOutput::kMean ? 1 / static_cast<double>(keys) : 0;
  Part all;
  all.o.assign(dv, params_.empty_output == EmptyOutput::kNan ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  for (std::size_t j = 0; share > 0 && j < static_cast<std::size_t>(keys); ++j)
    for (std::size_t c = 0; c < dv; ++c)
      all.o[c] +=
          share * value_factor(row, d, static_cast<std::int64_t>(j)) * static_cast<double>(row.head->v[j * dv + c]);
  all.lse = params_.empty_lse == EmptyLse::kMinusInf ? -kInf : kInf;
  return all;
}

/// A row without keys has its sink alone; or what parts come to that hand over an LSE of 0 all the same.
std::optional<RowOutput> KernelReplay::without_keys(const Row& row, const Deviation& d) const {
  const bool counted = d.part_lse_factor == 0 || d.equal_parts || d.empty_counted;
  const double sink = d.sink ? d.sink(row.sink) : row.sink;
  std::vector<Part> parts(static_cast<std::size_t>(a_.splits));
  for (Part& part : parts) part.o.assign(static_cast<std::size_t>(params_.dim_v), 0.0), part.lse = 0;
  Part all{.o = parts[0].o};
  if (counted && (a_.splits > 1 || d.merges_one))
    all = merge(d, parts, sink);
  else if (row.sink == -kInf && params_.empty_output == EmptyOutput::kMean && row.head->keys > 0)
    all = contract(row, d);
  else if (sink == -kInf)
    return std::nullopt;
  else if (params_.sink == Sink::kInLse)
    all.lse = sink * (params_.lse == LseBase::kTwo ? kLog2E : 1.0);
  else
    all.lse = params_.empty_lse == EmptyLse::kMinusInf ? -kInf : kInf;
  return RowOutput{std::move(all.o), stored(d.lse_store, all.lse * d.lse_factor)};
}

std::optional<RowOutput> KernelReplay::row(std::size_t index, const Deviation& d) {
  const Row& row = load(index);
  if (row.end <= row.first && !d.masked_too) return without_keys(row, d);
  const double sink = d.sink ? d.sink(row.sink) : row.sink;
  const std::int64_t keys = row.head->keys;
  std::vector<Part> parts;
  if (a_.splits == 1) {
    parts.push_back(walk(row, d, 0, keys));
  } else if (a_.split_at > 0) {
    parts.push_back(walk(row, d, 0, a_.split_at));
    parts.push_back(walk(row, d, a_.split_at, keys));
  } else {
    const std::int64_t tile = a_.tile_n > 0 ? a_.tile_n : kUsualTile, tiles = (keys + tile - 1) / tile;
    const std::int64_t share = (tiles + a_.splits - 1) / a_.splits * tile;
    for (int s = 0; s < a_.splits; ++s)
      parts.push_back(walk(row, d, std::min(s * share, keys), std::min((s + 1) * share, keys)));
  }
  Part all = a_.splits == 1 && !d.merges_one ? std::move(parts[0]) : merge(d, parts, sink);
  if (all.empty && sink == -kInf)
    all = contract(row, d);  // a row that lost its maximum is answered like one without keys
  if (d.output_truncated)
    for (double& o : all.o) o = round_to(params_.output, o, Rounding::kTowardZero);
  return RowOutput{std::move(all.o), stored(d.lse_store, all.lse * d.lse_factor)};
}

std::optional<RowOutput> KernelReplay::predict(std::size_t index, const Deviation& d, const Truth& truth) {
  if (!nominal_.contains(index)) nominal_[index] = row(index, {});
  const std::optional<RowOutput>& nominal = nominal_[index];
  std::optional<RowOutput> out = row(index, d);
  if (!nominal || !out) return out;
  if (out->o == nominal->o && out->lse == nominal->lse) return std::nullopt;
  const std::size_t dv = out->o.size();
  for (std::size_t c = 0; c < dv; ++c) out->o[c] += truth.outputs[0].mid[index * dv + c] - nominal->o[c];
  if (truth.outputs.size() > 1 && std::isfinite(nominal->lse)) out->lse += truth.outputs[1].mid[index] - nominal->lse;
  return out;
}

}  // namespace assay

// Online softmax: tiles of keys with a running maximum and a running sum that is rescaled when the maximum rises.
#include <algorithm>
#include <array>

#include "kernels/coarse.h"
#include "kernels/fault.h"
#include "kernels/narrow.h"
#include "kernels/numeric.h"
#include "kernels/softmax/call.h"

namespace assay {
namespace {

std::int64_t tile_of(const SoftmaxParams& p) { return p.steps > 0 ? p.steps : 64; }

/// The scale is folded into the exponential unless something is added to the logit, or 0 times an infinity must show.
bool folds(const SoftmaxParams& p) { return p.data_mask != DataMask::kAdditive && p.scale != 0; }

template <Format kInput>
std::optional<std::string> unsupported(const Params& params) {
  return softmax_refuses(softmax_params(params), kInput);
}

Arithmetic declared(const Params& params) {
  const SoftmaxParams p = softmax_params(params);
  return {.scale_form = folds(p) ? ScaleForm::kFolded : ScaleForm::kOnScore,
          .exponential = Exponential::kEx2Approx,
          .row_sum_of = RowSumOf::kUnroundedP,
          .row_sum_tree = RowSumTree::kQuad,
          .normalize = Normalize::kDivide,
          .subnormals = Subnormals::kKept,
          .max_policy = MaxPolicy::kEveryTile,
          .tile_order = TileOrder::kForward,
          .tile_n = static_cast<int>(tile_of(p)),
          .splits = 1};
}

/// Scores are x with the scale's sign (folded), or fl(fl(scale x) + bias). Key j of a tile is summed in lane j % 8 / 2.
class OnlineRow {
 public:
  OnlineRow(const SoftmaxParams& params, bool other_order)
      : params_(params), folded_(folds(params)), other_order_(other_order) {
    magnitude_ = params.scale < 0 ? -params.scale : params.scale;
    const float log2e = faulty(Fault::kLog2eInBf16) ? narrowed(Format::kBf16, kLog2e) : kLog2e;
    c_ = folded_ ? magnitude_ * log2e : log2e;
  }

  void start(SoftmaxInput& in) {
    m_ = -kInfinity;
    l_ = {};
    for (std::size_t j = 0; j < in.x.size(); ++j) {
      if (folded_)
        in.x[j] = params_.scale < 0 ? -in.x[j] : in.x[j];
      else
        in.x[j] *= params_.scale;
      if (params_.data_mask == DataMask::kAdditive) in.x[j] += in.bias[j];
      if (faulty(Fault::kNanKeyDropped) && in.x[j] != in.x[j]) in.keep[j] = 0;
    }
  }

  void step(const SoftmaxInput& in, std::size_t first, std::size_t end) {
    float m = m_;
    for (std::size_t j = first; j < end; ++j) {
      if (in.keep[j] != 0) m = max_keeping_nan(m, in.x[j]);
      if (in.keep[j] == 0 && faulty(Fault::kMaskAddedInMaximum)) m = max_keeping_nan(m, in.x[j] - kInfinity);
    }
    const bool guarded = !faulty(Fault::kEmptyStepUnguarded);
    if (m == -kInfinity && guarded) return;
    if (faulty(Fault::kOnlineMaximumFloor)) m = max_keeping_nan(m, -1e4F);
    const float alpha = m_ == -kInfinity && guarded ? 0.0F : exp2_f32((m_ - m) * c_);
    if (!faulty(Fault::kSumNotRescaled))
      for (float& lane : l_) lane *= alpha;
    m_ = m;
    for (std::size_t j = first; j < end; ++j)
      if (in.keep[j] != 0) l_[(j - first) % 8 / 2] += weight(in.x[j]);
  }

  bool empty() const { return m_ == -kInfinity; }
  float weight(float x) const {
    const float y = folded_ ? fma_f32(x, c_, -(m_ * c_)) : (x - m_) * c_;
    return faulty(Fault::kTableExponentials) ? exp2_table_f32(y) : exp2_f32(y);
  }
  float sum() const { return other_order_ ? (l_[0] + l_[3]) + (l_[1] + l_[2]) : (l_[0] + l_[1]) + (l_[2] + l_[3]); }
  /// The maximum in natural units.
  float maximum() const { return folded_ && !empty() ? m_ * magnitude_ : m_; }
  float lse() const {
    if (params_.lse == LseBase::kTwo) return m_ * c_ + log2_f32(sum());
    return maximum() + log_f32(sum());
  }

 private:
  const SoftmaxParams& params_;
  bool folded_;
  bool other_order_;  ///< a planted fault: the lanes are added up crosswise
  float magnitude_, c_;
  float m_ = -kInfinity;
  std::array<float, 4> l_{};
};

RunFacts run(const Call& raw) {
  const SoftmaxCall call(raw);
  const SoftmaxParams& p = call.params();
  const auto n = static_cast<std::size_t>(p.n), tile = static_cast<std::size_t>(tile_of(p));
  SoftmaxInput input;
  std::vector<float> y(n);
  static int runs = 0;
  OnlineRow state(p, faulty(Fault::kSumOrderVaries) && ++runs % 2 == 0);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    call.load(row, input);
    state.start(input);
    for (std::size_t first = 0; first < n; first += tile) {
      state.step(input, first, std::min(n, first + tile));
      if (p.steps > 0) call.store_state(row, static_cast<std::int64_t>(first / tile), state.maximum(), state.sum());
    }
    if (state.empty()) {
      call.store_empty(row);
      continue;
    }
    const bool lost = state.sum() == 0.0F && faulty(Fault::kOnlineMaximumFloor);
    const float inverse = 1.0F / (lost ? 1.0F : state.sum());
    for (std::size_t j = 0; j < n; ++j) y[j] = input.keep[j] != 0 ? state.weight(input.x[j]) * inverse : 0.0F;
    call.store_y(row, y.data());
    call.store_lse(row, state.lse());
  }
  return {"tile " + std::to_string(tile)};
}

const RegisterKernel kFp32{{.name = "softmax_online_fp32",
                            .op = "softmax",
                            .summary = "online softmax over tiles of keys, fp32 inputs",
                            .formats = {Format::kFp32},
                            .unsupported = unsupported<Format::kFp32>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kFp16{{.name = "softmax_online_fp16",
                            .op = "softmax",
                            .summary = "online softmax over tiles of keys, fp16 inputs",
                            .formats = {Format::kFp16},
                            .unsupported = unsupported<Format::kFp16>,
                            .declared = declared,
                            .run = run}};
const RegisterKernel kBf16{{.name = "softmax_online_bf16",
                            .op = "softmax",
                            .summary = "online softmax over tiles of keys, bf16 inputs",
                            .formats = {Format::kBf16},
                            .unsupported = unsupported<Format::kBf16>,
                            .declared = declared,
                            .run = run}};

}  // namespace
}  // namespace assay

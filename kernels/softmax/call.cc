// Loads and stores of a softmax call.
#include "kernels/softmax/call.h"

#include <limits>
#include <stdexcept>

#include "kernels/fault.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

template <class View>
View required(std::span<const View> views, std::string_view role) {
  const View view = find_view(views, role);
  if (view.layout == nullptr) throw std::invalid_argument("softmax needs a tensor " + std::string(role));
  return view;
}

void store_fp32(const OutputView& view, std::int64_t element, float value) {
  view.set_code(element, encode(Format::kFp32, static_cast<double>(value)));
}

}  // namespace

SoftmaxCall::SoftmaxCall(const Call& call) : params_(softmax_params(call.params)) {
  x_ = required(call.inputs, "x");
  if (params_.data_mask != DataMask::kNone) mask_ = required(call.inputs, "mask");
  y_ = required(call.outputs, "y");
  if (params_.lse != LseBase::kNone) lse_ = required(call.outputs, "lse");
  if (params_.steps > 0) m_ = required(call.outputs, "m"), l_ = required(call.outputs, "l");
}

void SoftmaxCall::load(std::int64_t row, SoftmaxInput& input) const {
  const auto n = static_cast<std::size_t>(params_.n);
  input.x.resize(n);
  input.bias.assign(n, 0.0F);
  input.keep.assign(n, 1);
  for (std::size_t j = 0; j < n; ++j) {
    input.x[j] = static_cast<float>(x_.value(x_.element(row, j)));
    if (params_.data_mask == DataMask::kBool) input.keep[j] = mask_.code(mask_.element(row, j)) != 0 ? 1 : 0;
    if (params_.data_mask == DataMask::kAdditive)
      input.bias[j] = static_cast<float>(mask_.value(mask_.element(row, j)));
  }
}

void SoftmaxCall::store_y(std::int64_t row, const float* y) const {
  const std::int64_t stored = faulty(Fault::kTailColumnsUnstored) ? params_.n / 4 * 4 : params_.n;
  for (std::int64_t j = 0; j < stored; ++j) {
    std::uint64_t code = encode(y_.format(), static_cast<double>(y[j]));
    if (faulty(Fault::kSubnormalYFlushed) && is_subnormal(y_.format(), code)) code = 0;
    y_.set_code(y_.element(row, j), code);
  }
}

void SoftmaxCall::store_lse(std::int64_t row, float lse) const {
  if (params_.lse != LseBase::kNone) store_fp32(lse_, lse_.element(row), lse);
}

void SoftmaxCall::store_state(std::int64_t row, std::int64_t step, float m, float l) const {
  store_fp32(m_, m_.element(row, step), m);
  store_fp32(l_, l_.element(row, step), l);
}

void SoftmaxCall::store_empty(std::int64_t row) const {
  float y = 0.0F;
  if (params_.empty_output == EmptyOutput::kNan) y = std::numeric_limits<float>::quiet_NaN();
  const bool mean = params_.empty_output == EmptyOutput::kMean || faulty(Fault::kEmptyRowUniform);
  if (mean && params_.n > 0) y = 1.0F / static_cast<float>(params_.n);
  store_y(row, std::vector<float>(static_cast<std::size_t>(params_.n), y).data());
  store_lse(row, params_.empty_lse == EmptyLse::kMinusInf ? -kInfinity : kInfinity);
}

std::optional<std::string> softmax_refuses(const SoftmaxParams& params, Format input) {
  if (params.input != input) return "takes " + std::string(info(input).name) + " inputs only";
  return std::nullopt;
}

}  // namespace assay

// Loads and stores of a merge call.
#include "kernels/merge/call.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernels/fault.h"
#include "kernels/narrow.h"
#include "kernels/numeric.h"

namespace assay {
namespace {

template <class View>
View required(std::span<const View> views, std::string_view role) {
  const View view = find_view(views, role);
  if (view.layout == nullptr) throw std::invalid_argument("merge needs a tensor " + std::string(role));
  return view;
}

}  // namespace

MergeCall::MergeCall(const Call& call) : params_(merge_params(call.params)) {
  o_parts_ = required(call.inputs, "o_parts");
  lse_parts_ = required(call.inputs, "lse_parts");
  o_ = required(call.outputs, "o");
  if (params_.has_lse) lse_ = required(call.outputs, "lse");
}

float MergeCall::lse(std::int64_t part, std::int64_t row) const {
  if (faulty(Fault::kSplitLost) && params_.parts > 1 && part == params_.parts - 1) return -kInfinity;
  if (faulty(Fault::kPartsBeyondWidth) && part >= params_.dim_v) return -kInfinity;
  const auto lse = static_cast<float>(lse_parts_.value(lse_parts_.element(part, row)));
  return faulty(Fault::kPartialLseInBf16) ? narrowed(Format::kBf16, lse) : lse;
}

bool MergeCall::is_empty(float lse) const {
  if (faulty(Fault::kNanPartDropped) && lse != lse) return true;
  return lse == -kInfinity || (lse == kInfinity && params_.plus_inf_is_empty);
}

float MergeCall::o(std::int64_t part, std::int64_t row, std::int64_t channel) const {
  const auto o = static_cast<float>(o_parts_.value(o_parts_.element(part, row, channel)));
  if (faulty(Fault::kSubnormalPartFlushed) && std::abs(static_cast<double>(o)) < info(params_.input).min_normal)
    return 0.0F;
  return faulty(Fault::kPartialOutputInBf16) ? narrowed(Format::kBf16, o) : o;
}

void MergeCall::store(std::int64_t row, const float* o, float lse) const {
  const std::int64_t stored = faulty(Fault::kTailChannelsUnstored) ? params_.dim_v / 16 * 16 : params_.dim_v;
  for (std::int64_t c = 0; c < stored; ++c)
    o_.set_code(o_.element(row, c), encode(o_.format(), static_cast<double>(o[c])));
  if (params_.has_lse) lse_.set_code(lse_.element(row), encode(Format::kFp32, static_cast<double>(lse)));
}

void MergeCall::store_empty(std::int64_t row) const {
  const float o = params_.empty_output == EmptyOutput::kNan ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
  store(row, std::vector<float>(static_cast<std::size_t>(params_.dim_v), o).data(),
        faulty(Fault::kEmptyMergeLse)              ? 0.0F
        : params_.empty_lse == EmptyLse::kMinusInf ? -kInfinity
                                                   : kInfinity);
}

std::optional<std::string> merge_refuses(const Params& params, Format input) {
  if (merge_params(params).input != input) return "takes " + std::string(info(input).name) + " inputs only";
  return std::nullopt;
}

}  // namespace assay

// An attention call on the device as the forward kernels take it, and what they refuse.
#pragma once

#include <optional>
#include <string>

#include "kernels/attention/cuda/forward_params.h"
#include "kernels/device/device_call.h"
#include "oracle/ops/attention/attention.h"

namespace assay::cuda {

/// Addresses, strides and options of `call`, whose tensors are on the device. Throws std::invalid_argument if the
/// length tensors do not fit the others.
ForwardParams forward_params(const Call& host, const DeviceCall& call);

/// ex2.approx.f32 on the device that is here: as measured where it was, as documented elsewhere.
Exponential device_exponential();

/// The head size that tiles must hold.
std::int64_t largest_dim(const AttentionParams& params);
/// The variant of a tile kernel.
std::string tile_text(std::int64_t dim);

/// Stores, masks, factors, layouts and sizes that no forward kernel here takes; or nothing.
std::optional<std::string> forward_refuses(const AttentionParams& params);
/// The same for the tile kernels, with the largest head size `most`.
std::optional<std::string> tile_forward_refuses(const AttentionParams& params, std::int64_t most);

}  // namespace assay::cuda

// What unfused attention in scalar fp32 declares, on the host and on the device.
#pragma once

#include "oracle/arithmetic.h"
#include "oracle/ops/attention/attention.h"

namespace assay {

/// Every chain in fp32 in key or channel order, the maximum of the whole row first, P not rounded.
Arithmetic naive_arithmetic(const AttentionParams& params);

}  // namespace assay

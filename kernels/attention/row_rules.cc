// Masks, soft cap, biases and sinks of one query row.
#include "kernels/attention/row_rules.h"

#include <algorithm>

#include "kernels/coarse.h"
#include "kernels/fault.h"
#include "kernels/numeric.h"

namespace assay {

namespace {

/// Number `index` of the storage if its elements were bf16.
float half_at(const TensorView& t, std::int64_t index) {
  return static_cast<float>(decode(Format::kBf16, load_code(t.storage, Format::kBf16, index)));
}

}  // namespace

RowRules::RowRules(std::span<const TensorView> inputs, const AttentionParams& params) : params_(params) {
  if (params.data_mask != DataMask::kNone) mask_ = required_input(inputs, "mask");
  if (params.alibi != Alibi::kNone) slopes_ = required_input(inputs, "slopes");
  if (params.sink != Sink::kNone) sink_ = required_input(inputs, "sink");
  if (params.segments) {
    seg_q_ = required_input(inputs, "seg_q");
    seg_kv_ = required_input(inputs, "seg_kv");
  }
}

/// The key that stands above the query on the diagonal of causal and window masks.
std::int64_t RowRules::position(RowLengths lengths, std::int64_t query) const {
  if (faulty(Fault::kMaskTopLeft) || (faulty(Fault::kDecodeTopLeft) && lengths.q == 1)) return query;
  if (faulty(Fault::kPaddedLengthsInMask)) lengths = {params_.len_q, params_.len_kv};
  return params_.align == Align::kTopLeft ? query : query + lengths.kv - lengths.q;
}

KeyRange RowRules::range(RowLengths lengths, std::int64_t query) const {
  const std::int64_t diagonal =
      position(lengths, query) - (faulty(Fault::kWindowRowOff) && params_.window_left >= 0 && lengths.q > 1 ? 1 : 0);
  const std::int64_t leak = faulty(Fault::kMaskShiftedByOne) ? 1 : 0;
  KeyRange keys{0, lengths.kv};
  if (params_.causal && !faulty(Fault::kCausalIgnored)) keys.end = std::min(keys.end, diagonal + 1 + leak);
  if (params_.window_right >= 0) keys.end = std::min(keys.end, diagonal + params_.window_right + 1 + leak);
  if (faulty(Fault::kLastKeyDropped) && lengths.kv > 1) keys.end = std::min(keys.end, lengths.kv - 1);
  if (params_.window_left >= 0) {
    const bool exclusive = params_.window_ends == WindowEnds::kLeftExclusive || faulty(Fault::kWindowEndsOpen);
    const std::int64_t open = exclusive ? 1 : faulty(Fault::kWindowLeftWide) ? -1 : 0;
    keys.first = std::max<std::int64_t>(0, diagonal - params_.window_left + open);
    if (faulty(Fault::kWindowTailSliced)) keys.first = std::max(keys.first, lengths.kv - 1 - params_.window_left);
  }
  return keys;
}

/// Index lists name their keys in any order, perhaps twice; what is negative or behind the keys names none.
void RowRules::listed(std::int64_t batch, std::int64_t head, std::int64_t query, KeyRange keys,
                      std::uint8_t* keep) const {
  constexpr std::uint8_t kNamed = 2;
  for (std::int64_t n = 0; n < mask_.extent(3); ++n) {
    const std::int64_t key = int_element(mask_, batch, head, query, n);
    if (key >= keys.first && key < keys.end) keep[key - keys.first] |= kNamed;
  }
  for (std::int64_t j = 0; j < keys.size(); ++j) keep[j] = keep[j] == (kNamed | 1) ? 1 : 0;
}

void RowRules::admissible(RowLengths lengths, std::int64_t batch, std::int64_t head, std::int64_t query, KeyRange keys,
                          std::uint8_t* keep) const {
  const KeyRange inside = range(lengths, query);
  for (std::int64_t key = keys.first; key < keys.end; ++key)
    keep[key - keys.first] = key >= inside.first && key < inside.end ? 1 : 0;
  const auto cut = [&](auto&& allowed) {
    for (std::int64_t key = keys.first; key < keys.end; ++key)
      if (!allowed(key)) keep[key - keys.first] = 0;
  };
  if (params_.data_mask == DataMask::kBool)
    cut([&](std::int64_t key) {
      const std::int64_t at = mask_.element(batch, head, query, key);
      if (faulty(Fault::kMaskLengthMinusOne) && key + 2 == lengths.kv && mask_.code(at + mask_.stride(3)) == 0)
        return false;
      return mask_.code(faulty(Fault::kMaskOffsetWraps) ? at % 0x8000 : at) != 0;
    });
  if (params_.data_mask == DataMask::kBlock)
    cut([&](std::int64_t key) {
      return mask_.code(mask_.element(batch, head, query / params_.block_q, key / params_.block_kv)) != 0;
    });
  if (params_.data_mask == DataMask::kList) listed(batch, head, query, keys, keep);
  if (params_.segments && !faulty(Fault::kSegmentsIgnored)) {
    const std::int64_t own = int_element(seg_q_, batch, query);
    cut([&](std::int64_t key) { return int_element(seg_kv_, batch, key) == own; });
  }
}

void RowRules::adjust(RowLengths lengths, std::int64_t batch, std::int64_t head, std::int64_t query, KeyRange keys,
                      float* x) const {
  const std::int64_t count = keys.size();
  if (const float cap = params_.softcap; cap > 0.0F && !faulty(Fault::kSoftcapOmitted)) {
    const float unit = faulty(Fault::kSoftcapOfLog2) ? kLog2e : 1.0F;
    for (std::int64_t j = 0; j < count; ++j) {
      const float t = x[j] * unit / cap;
      x[j] = cap * (faulty(Fault::kTanhRational) ? tanh_rational_f32(t) : tanh_f32(t)) / unit;
    }
  }
  if (params_.alibi != Alibi::kNone) {
    float slope = params_.slopes_per_batch ? float_element(slopes_, batch, head) : float_element(slopes_, head);
    if (faulty(Fault::kSlopesFromFormula))
      slope = exp2_f32(-8.0F * static_cast<float>(head + 1) / static_cast<float>(params_.heads_q));
    const std::int64_t diagonal = position(lengths, query);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t key = keys.first + j;
      std::int64_t distance = 0;
      switch (params_.alibi) {
        case Alibi::kNone: break;
        case Alibi::kDistance: distance = key < diagonal ? key - diagonal : diagonal - key; break;
        case Alibi::kKey: distance = key; break;
        case Alibi::kDiagonal: distance = key - query; break;
        case Alibi::kLast: distance = key - lengths.kv + 1; break;
      }
      if (faulty(Fault::kAlibiSign)) distance = -distance;
      if (faulty(Fault::kAlibiOffByOne)) ++distance;
      x[j] += slope * static_cast<float>(distance);
    }
  }
  const float factor = faulty(Fault::kMaskScaled) ? params_.scale : 1.0F;
  if (params_.data_mask == DataMask::kAdditive)
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t at = mask_.element(batch, head, query, keys.first + j);
      x[j] += factor * (faulty(Fault::kMaskReadAsHalf) ? half_at(mask_, at) : static_cast<float>(mask_.value(at)));
    }
}

float RowRules::sink(std::int64_t head) const {
  return sink_.layout == nullptr ? -kInfinity : float_element(sink_, head);
}

bool masks_keys(const AttentionParams& params) {
  return params.causal || params.data_mask != DataMask::kNone || params.window_left >= 0 || params.window_right >= 0 ||
         params.segments;
}

}  // namespace assay

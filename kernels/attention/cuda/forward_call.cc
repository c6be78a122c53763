// From a call's tensors to ForwardParams.
#include "kernels/attention/cuda/forward_call.h"

#include <algorithm>

#include "kernels/attention/cuda/launches.h"
#include "kernels/attention/lengths.h"
#include "kernels/attention/online_softmax.h"
#include "kernels/device_info.h"

namespace assay::cuda {
namespace {

/// Chunks of 16 bytes start every vector of a tensor.
constexpr std::int64_t kChunkBytes = 16;

TokenStrides strides_of(const TensorLayout& layout, bool packed) {
  if (packed) return {0, layout.strides[1], layout.strides[0]};
  return {layout.strides[0], layout.strides[1], layout.strides[2]};
}

bool in_whole_chunks(const TensorLayout& layout) {
  const std::int64_t elements = kChunkBytes / bytes_per_element(layout.format);
  return layout.offset % elements == 0 && std::all_of(layout.strides.begin(), layout.strides.end() - 1,
                                                      [&](std::int64_t stride) { return stride % elements == 0; });
}

Lengths lengths_of(const DeviceCall& call, const AttentionParams& p, std::string_view side, std::int64_t longest) {
  Lengths lengths{.longest = static_cast<std::int32_t>(longest)};
  if (p.batching == Batching::kDense) return lengths;
  lengths.packed = p.batching == Batching::kPacked;
  const std::string role = (lengths.packed ? "cu_seqlens_" : "seqlens_") + std::string(side);
  lengths.lens = call.input(role).data<std::int32_t>();
  return lengths;
}

/// The tighter of the causal limit and the window's.
BandLimits band_of(const AttentionParams& p) {
  BandLimits band;
  const auto cut = [&](std::int64_t right) {
    band.end = static_cast<std::int32_t>(std::min<std::int64_t>(band.end, right + 1));
  };
  if (p.causal) cut(0);
  if (p.window_right >= 0) cut(p.window_right);
  const std::int64_t open = p.window_ends == WindowEnds::kLeftExclusive ? 1 : 0;
  if (p.window_left >= 0) band.first = static_cast<std::int32_t>(open - p.window_left);
  return band;
}

OutputFormat output_of(Format format) {
  return format == Format::kBf16   ? OutputFormat::kBf16
         : format == Format::kFp16 ? OutputFormat::kFp16
                                   : OutputFormat::kFp32;
}

}  // namespace

ForwardParams forward_params(const Call& host, const DeviceCall& call) {
  const AttentionParams p = attention_params(host.params);
  query_sequences(host.inputs, p);
  key_sequences(host.inputs, p);
  const bool packed = p.batching == Batching::kPacked;
  const DeviceInput q = call.input("q"), k = call.input("k"), v = p.v_in_k ? k : call.input("v");
  const DeviceOutput o = call.output("o");
  const auto address = [](const auto& tensor) {
    return tensor.storage + tensor.layout->offset * bytes_per_element(tensor.format());
  };

  ForwardParams f;
  f.q = address(q), f.k = address(k), f.v = address(v), f.o = address(o);
  f.q_at = strides_of(*q.layout, packed), f.k_at = strides_of(*k.layout, packed);
  f.v_at = strides_of(*v.layout, packed), f.o_at = strides_of(*o.layout, packed);
  if (p.lse != LseBase::kNone) {
    const DeviceOutput lse = call.output("lse");
    f.lse = lse.data<float>();
    f.lse_at = strides_of(*lse.layout, packed);
  }
  f.q_len = lengths_of(call, p, "q", p.len_q), f.kv_len = lengths_of(call, p, "kv", p.len_kv);
  f.batch = static_cast<std::int32_t>(p.batch);
  f.heads_q = static_cast<std::int32_t>(p.heads_q), f.heads_kv = static_cast<std::int32_t>(p.heads_kv);
  f.dim_qk = static_cast<std::int32_t>(p.dim_qk), f.dim_v = static_cast<std::int32_t>(p.dim_v);
  f.band = band_of(p);
  f.align = p.align;
  f.scale = p.scale, f.softcap = p.softcap;
  f.alibi = p.alibi;
  if (p.alibi != Alibi::kNone) f.slopes = call.input("slopes").data<float>();
  if (p.slopes_per_batch) f.slope_batch = p.heads_q;
  f.sink_kind = p.sink;
  if (p.sink != Sink::kNone) f.sink = call.input("sink").data<float>();
  f.lse_base = p.lse, f.empty_output = p.empty_output, f.empty_lse = p.empty_lse;
  f.output = output_of(p.output);
  f.whole_chunks = in_whole_chunks(*q.layout) && in_whole_chunks(*k.layout) && in_whole_chunks(*v.layout);
  f.whole_outputs = in_whole_chunks(*o.layout);
  return f;
}

Exponential device_exponential() {
  return device_info().capability == "9.0" ? Exponential::kEx2Hopper : Exponential::kEx2Approx;
}

std::int64_t largest_dim(const AttentionParams& p) { return std::max(p.dim_qk, p.dim_v); }

std::string tile_text(std::int64_t dim) {
  return "tile " + std::to_string(kTileRows) + "x" + std::to_string(keys_per_tile(dim)) + ", head size " +
         std::to_string(dim <= 64    ? 64
                        : dim <= 128 ? 128
                                     : 256);
}

std::optional<std::string> forward_refuses(const AttentionParams& p) {
  if (p.kv_store != KvStore::kContiguous) return "reads contiguous keys only";
  if (p.prefix > 0) return "reads the keys of a sequence from one tensor: takes no prefix";
  if (p.data_mask != DataMask::kNone || p.segments) return "takes causal and window masks only";
  if (p.descale != Descale::kNone) return "takes no descale factors";
  if (p.layout == Layout::kBhds) return "needs neighbouring channels: takes no layout=bhds";
  constexpr std::int64_t kMostTiles = (std::int64_t{1} << 31) - 1;
  const std::int64_t tiles = (p.len_q + kTileRows - 1) / kTileRows, vectors = p.batch * p.heads_q;
  if (vectors > kMostTiles / std::max<std::int64_t>(1, std::max(tiles, p.dim_v)))
    return "a grid of " + std::to_string(vectors) + " heads times query tiles or channels passes 2^31 - 1 blocks";
  return std::nullopt;
}

std::optional<std::string> tile_forward_refuses(const AttentionParams& p, std::int64_t most) {
  if (largest_dim(p) > most) return "has tiles of head size " + std::to_string(most) + " at most";
  if (auto reason = forward_refuses(p)) return reason;
  return tile_kernel_refuses(p);
}

}  // namespace assay::cuda

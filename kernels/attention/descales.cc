// Descale factors by tensor, head or block.
#include "kernels/attention/descales.h"

namespace assay {

Descales::Descales(std::span<const TensorView> inputs, const AttentionParams& params) : params_(params) {
  if (params.descale == Descale::kNone) return;
  q_ = required_input(inputs, "q_scale");
  k_ = required_input(inputs, "k_scale");
  v_ = required_input(inputs, "v_scale");
}

float Descales::at(const TensorView& t, std::int64_t batch, std::int64_t head, std::int64_t token) const {
  switch (params_.descale) {
    case Descale::kTensor: return float_element(t, 0);
    case Descale::kHead: return float_element(t, batch, head);
    case Descale::kBlock: return float_element(t, batch, head, token / params_.scale_block);
    case Descale::kNone: break;
  }
  return 1.0F;
}

double Descales::score_factor(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key) const {
  if (params_.descale == Descale::kNone) return static_cast<double>(params_.scale);
  const std::int64_t kv_head = head / (params_.heads_q / params_.heads_kv);
  const float q = at(q_, batch, per_block() ? head : kv_head, query);
  const float k = at(k_, batch, kv_head, key);
  return static_cast<double>(q) * static_cast<double>(k) * static_cast<double>(params_.scale);
}

float Descales::value(std::int64_t batch, std::int64_t kv_head, std::int64_t key) const {
  return at(v_, batch, kv_head, key);
}

}  // namespace assay

// Descale factors by tensor, head or block.
#include "kernels/attention/descales.h"

#include <algorithm>

#include "kernels/fault.h"

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
    case Descale::kBlock: return float_element(t, batch, head, block_of(t, token));
    case Descale::kNone: break;
  }
  return 1.0F;
}

std::int64_t Descales::block_of(const TensorView& t, std::int64_t token) const {
  if (faulty(Fault::kFactorOfFirstBlock)) return 0;
  if (faulty(Fault::kFactorPer128)) return std::min(token / 128, t.extent(2) - 1);
  return token / params_.scale_block;
}

double Descales::score_factor(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key) const {
  if (params_.descale == Descale::kNone) return static_cast<double>(params_.scale);
  const std::int64_t kv_head = head / (params_.heads_q / params_.heads_kv);
  const float q = faulty(Fault::kQueryDescaleDropped) ? 1.0F : at(q_, batch, per_block() ? head : kv_head, query);
  float k = faulty(Fault::kKeyDescaleDropped) ? 1.0F : at(k_, batch, kv_head, key);
  if (faulty(Fault::kKeyDescaleTwice)) k *= k;
  return static_cast<double>(q) * static_cast<double>(k) * static_cast<double>(params_.scale);
}

float Descales::value(std::int64_t batch, std::int64_t head, std::int64_t key) const {
  std::int64_t kv_head = head / (params_.heads_q / params_.heads_kv);
  if (faulty(Fault::kFactorOfQueryHead)) kv_head = head % params_.heads_kv;
  if (faulty(Fault::kValueDescaleDropped)) return 1.0F;
  if (faulty(Fault::kValueDescaleOfKeys)) return at(k_, batch, kv_head, key);
  if (faulty(Fault::kValueDescaleOfFirstHead)) return at(v_, batch, 0, key);
  const float factor = at(v_, batch, kv_head, key);
  const bool tiny = factor < 0x1p-14F && factor > -0x1p-14F;
  return tiny && faulty(Fault::kSmallFactorFlushed) ? 0.0F : factor;
}

}  // namespace assay

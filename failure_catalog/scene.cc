// What modes share about a scene, made when first asked for.
#include "failure_catalog/scene.h"

#include <algorithm>

#include "oracle/format.h"

namespace assay {
namespace {

constexpr std::size_t kRows = 48;                        // sampled
constexpr std::size_t kProducts = std::size_t{1} << 24;  // row by key by channel that one hypothesis may cost
constexpr std::size_t kFewest = 8;

}  // namespace

const std::vector<std::int32_t>& AttentionView::keys(std::size_t row) {
  problem.admissible_keys(problem.rows()[row], keys_);
  return keys_;
}

double Scene::p_unit() const {
  if (c.op != "attention") return 0;
  const Format format = declared.p_known ? declared.p_format : attention_params(problem.params).input;
  return format == Format::kFp32 ? 0 : ulp(format, 1.0) / 2;
}

const Trial& Scene::trial() const {
  if (trial_ == nullptr) {
    std::size_t rows = kRows;
    if (const AttentionView* view = attention(); view != nullptr) {
      const AttentionParams& p = view->problem.params();
      const auto cost = static_cast<std::size_t>(std::max<std::int64_t>(1, p.len_kv * (p.dim_qk + p.dim_v)));
      rows = std::clamp(kProducts / cost, kFewest, kRows);
    }
    trial_ = std::make_unique<Trial>(evaluation, outputs, p_unit(), rows);
  }
  return *trial_;
}

AttentionView* Scene::attention() const {
  if (attention_ == nullptr && c.op == "attention") attention_ = std::make_unique<AttentionView>(problem);
  return attention_.get();
}

KernelReplay* Scene::replay() const {
  if (replay_ == nullptr && attention() != nullptr)
    replay_ = std::make_unique<KernelReplay>(attention_->problem, declared);
  return replay_.get();
}

}  // namespace assay

// Loads a head tile by tile on every thread that asks for it.
#include "oracle/ops/attention/shared_head.h"

namespace assay {

template <class Work, class Finish>
void SharedHead::take_part(Step& step, std::size_t tiles, const Work& work, const Finish& finish) {
  if (tiles == 0) return;
  for (std::size_t tile; (tile = step.next++) < tiles;) {
    try {
      work(tile);
      if (++step.done < tiles) continue;
      finish();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      step.ready = true;
      step.ready.notify_all();
      break;
    }
    step.ready = true;
    step.ready.notify_all();
  }
  step.ready.wait(false);
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

const HeadOperands& SharedHead::load(const AttentionProblem& problem, const AttentionRow& row) {
  {
    const std::lock_guard lock(mutex_);
    if (!loader_) loader_.emplace(problem, row.batch, problem.kv_head(row.head), head_);
  }
  const std::size_t tiles = head_.tiles();
  take_part(decode_, tiles, [&](std::size_t tile) { loader_->decode_tile(tile); }, [&] { loader_->join_tiles(); });
  take_part(bound_, tiles, [&](std::size_t tile) { loader_->bound_values(tile); }, [] {});
  return head_;
}

void SharedHead::release() {
  if (++released_ < users) return;
  loader_.reset();
  head_ = {};
}

}  // namespace assay

// One head's operands, decoded by all the threads that want them and dropped when none does any more.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>

#include "oracle/ops/attention/operands.h"

namespace assay {

class SharedHead {
 public:
  std::size_t users = 0;  ///< strips that will load and release it; set before any does

  /// The operands of the head that `row` is of. Threads that come while others load take part; all return when it is done.
  const HeadOperands& load(const AttentionProblem& problem, const AttentionRow& row);
  void release();

 private:
  /// Tiles that threads take one by one, and who waits for the last of them.
  struct Step {
    std::atomic<std::size_t> next{0}, done{0};
    std::atomic<bool> ready{false};
  };
  template <class Work, class Finish>
  void take_part(Step& step, std::size_t tiles, const Work& work, const Finish& finish);

  std::mutex mutex_;
  std::exception_ptr failure_;  ///< of any thread: nobody gets the head then
  HeadOperands head_;
  std::optional<HeadLoader> loader_;
  Step decode_, bound_;
  std::atomic<std::size_t> released_{0};
};

}  // namespace assay

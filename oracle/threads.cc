// Threads of one evaluation.
#include "oracle/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace assay {
namespace {

std::atomic<unsigned> threads{1};

}  // namespace

void set_oracle_threads(unsigned count) { threads = std::max(1U, count); }
unsigned oracle_threads() { return threads; }

void on_threads(std::size_t most, const std::function<void()>& serve) {
  std::exception_ptr failure;
  std::mutex mutex;
  const auto guarded = [&] {
    try {
      serve();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min<std::size_t>(most, oracle_threads()); ++i) others.emplace_back(guarded);
  guarded();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace assay

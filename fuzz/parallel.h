// Numbered work on several threads, each with a runner of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/runner.h"

namespace assay {

/// Opens the workers of one thread.
using OpenRunner = std::function<std::unique_ptr<Runner>()>;

/// When no further item may start.
struct Deadline {
  std::chrono::steady_clock::time_point at = std::chrono::steady_clock::time_point::max();
  bool passed() const { return std::chrono::steady_clock::now() >= at; }
};

/// Calls work(i, runner) for i < count; items are started in order, so that results kept by index do not depend on the
/// threads. Returns the number of items left out by the deadline. The first exception is thrown again when all threads
/// have ended.
template <class Work>
std::size_t in_parallel(std::size_t count, unsigned jobs, const OpenRunner& open, const Deadline& deadline,
                        Work&& work) {
  std::atomic<std::size_t> next{0}, done{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto serve = [&] {
    try {
      const std::unique_ptr<Runner> runner = open();
      for (std::size_t i; !deadline.passed() && (i = next++) < count; ++done) work(i, *runner);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned j = 1; j < jobs; ++j) threads.emplace_back(serve);
  serve();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return count - done;
}

}  // namespace assay

// How many threads one evaluation may use. Results never depend on it.
#pragma once

#include <cstddef>
#include <functional>

namespace assay {

/// 1 at start: programs that run several cases side by side leave it there; those that wait for one evaluation raise it.
void set_oracle_threads(unsigned count);
unsigned oracle_threads();

/// Calls `serve` once on each of at most `most` threads, this one among them, and waits for all. The first exception is thrown here
/// once all have returned.
void on_threads(std::size_t most, const std::function<void()>& serve);

}  // namespace assay

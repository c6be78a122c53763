// Signal: features of a run, in the bytes that libFuzzer reads as extra counters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cases/case.h"
#include "fuzz/regimes.h"

namespace assay {

/// Sets the feature's byte. Features that share a byte look the same to libFuzzer.
void signal_feature(std::uint64_t feature);

/// Features of a case: every regime and every coverage cell. `salt` tells kernels apart.
void signal_case(std::uint64_t salt, const Case& c, const Regimes& regimes);

/// Features of a judged run: for each output and level all powers of two up to the share of the bound that is used, so
/// that progress towards the bound is kept.
void signal_use(std::uint64_t salt, const Measurement& measurement);

/// How many bytes between the section's ends, as the linker gives them to libFuzzer, are set; and clears them.
std::size_t signal_count();
void signal_clear();

}  // namespace assay

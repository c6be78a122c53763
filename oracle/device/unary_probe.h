// Scalar approximations of this device over fp32 codes, against our own fp64 functions.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/device/instructions.h"

namespace assay {

/// A largest value and the fp32 code where it was first seen.
struct Largest {
  double value = 0;
  std::uint32_t at = 0;
  void take(double candidate, std::uint32_t code);
  void take(const Largest& other) { take(other.value, other.at); }
};

/// Errors against the exact result, known to 2^-50 relatively; ulps against its rounding to fp32.
struct UnaryProbe {
  Unary function = Unary::kEx2;
  std::int64_t arguments = 0;
  // Normal arguments with a normal result:
  std::int64_t normal = 0, not_nearest = 0;  ///< of them, results that are not the nearest fp32
  Largest relative;                          ///< lg2: outside (1/2, 2) only
  Largest absolute;                          ///< lg2 in (1/2, 2); 0 for the others
  Largest ulps;
  // The rest:
  std::int64_t subnormal_arguments = 0, taken_as_zero = 0;  ///< of them, with the bits of f(+-0), though f differs
  std::int64_t subnormal_results = 0, flushed = 0;          ///< normal arguments; of them, given as zero
  Largest subnormal_error;                                  ///< of those not flushed, in units of 2^-149
  std::int64_t class_differs = 0;                           ///< NaN or infinity for a number, or the reverse
  std::uint32_t class_at = 0;                               ///< the first such argument
  void take(const UnaryProbe& other);
};

/// The codes [first, first + count). Throws EnvironmentError if the device cannot.
UnaryProbe probe_unary(Unary f, std::uint32_t first, std::size_t count);

/// All 2^32 codes, on oracle_threads() threads.
UnaryProbe probe_unary(Unary f);

/// Whether the errors are within the documented ones (PTX ISA, "Floating Point Instructions") and, for Hopper, within
/// those that bounds take as measured (oracle/function_errors.h).
bool within_bounds(const UnaryProbe& probe);

}  // namespace assay

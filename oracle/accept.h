// The acceptance set: one tested function that says whether an output code is legal.
#pragma once

#include <cstdint>

#include "oracle/format.h"
#include "oracle/truth.h"

namespace assay {

/// The legal values of one element: the classes, and for kNumber the codes between RN(low) and RN(high).
/// Round-to-nearest is monotone, so those are exactly the roundings of all z in [low, high].
struct Acceptance {
  Format format = Format::kFp32;
  ClassSet classes = kNumber;
  double low = 0, high = 0;
};

/// low and high are mid -+ (tau + radius), rounded outward; tau = +inf gives (-inf, +inf).
Acceptance acceptance(Format format, ClassSet classes, double mid, double radius, double tau);

/// +0 and -0 are equal, all NaNs are equal. An infinity is legal as a number where RN(low) or RN(high) overflows to it.
bool accepts(const Acceptance& set, std::uint64_t code);

/// How much of tau this code needs: the smallest f >= 0 such that the set for f tau holds it; 0 for RN of any z within the
/// radius of mid, +inf for a class outside the set. At most about 1 exactly when accepted.
double tolerance_used(Format format, ClassSet classes, double mid, double radius, double tau, std::uint64_t code);

}  // namespace assay

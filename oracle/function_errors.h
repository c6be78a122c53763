// Largest errors of the scalar approximations that kernels build on: as documented, and as measured over every
// argument.
#pragma once

#include <string>

#include "oracle/arithmetic.h"

namespace assay {

// Relative errors, where argument and result are normal. Documented: PTX ISA, "Floating Point Instructions". Measured:
// all 2^32 arguments on an H200 (reports/published/2026-11-29-h200/probes.json), rounded up.
inline constexpr double kEx2Documented = 2.5 * 0x1p-23;  ///< 2 ulp from the correctly rounded result
inline constexpr double kEx2Hopper = 1.4585e-7;
inline constexpr double kPolynomial3 = 9e-5;  ///< its published coefficients give 8.8e-5
inline constexpr double kTanhDocumented = 0x1p-11;
inline constexpr double kTanhHopper = 1.1127e-5;
/// lg2.approx: absolute in (0.5, 2), relative elsewhere. Measured: 2^-22.06, not worth a name of its own.
inline constexpr double kLg2 = 0x1p-22;

/// Of one exponential; the worst where it is not declared.
double exponential_error(Exponential declared);
/// Of one hyperbolic tangent.
double tanh_error(Tanh declared);

/// What a bound assumes about exponentials, log2 and reciprocal, one sentence each.
std::string exponential_assumption(Exponential declared);
inline constexpr const char* kLogAssumption =
    "log2 is within 2^-22, the reciprocal within 1 ulp of the correctly rounded result";

}  // namespace assay

// Our own fp64 exp, exp2, log and tanh with proven error bounds: the same bits on every compiler, level and register width.
#pragma once

#include <cstddef>

namespace assay {

/// |exp64(x) - e^x| <= kExp64RelativeError e^x + kExp64AbsoluteError; the second term only where e^x < 2^-1022, where
/// the result is subnormal or zero. The same bounds hold for exp2_64. Proofs in exp64.cc.
inline constexpr double kExp64RelativeError = 0x1p-52;
inline constexpr double kExp64AbsoluteError = 0x1p-1074;
/// |log64(x) - log x| <= kLog64RelativeError |log x| for every finite x > 0, subnormal ones too.
inline constexpr double kLog64RelativeError = 0x1p-52;
/// |tanh64(x) - tanh x| <= kTanh64RelativeError |tanh x| for every finite x.
inline constexpr double kTanh64RelativeError = 0x1p-50;

/// e^x. exp64(0) = 1 exactly. Zero below -745.14, infinity above 709.79; at the edge of overflow, within the error
/// bound. -inf gives 0, inf gives inf, NaN gives the quiet NaN 0x7ff8000000000000.
double exp64(double x);
/// 2^x; exact for integers x. Zero at and below -1075, infinity from 1024. Special values as exp64.
double exp2_64(double x);
/// Natural logarithm. log64(1) = +0, log64(+-0) = -inf, log64(inf) = inf; negative and NaN give the same NaN as exp64.
double log64(double x);
/// Odd; tanh64(+-0) = +-0, tanh64(+-inf) = +-1; NaN as exp64.
double tanh64(double x);

/// y[i] = f(x[i]) for i < n, bit for bit the scalar function. y may be x itself, else the arrays must not overlap.
void exp64(const double* x, double* y, std::size_t n);
void exp2_64(const double* x, double* y, std::size_t n);
void log64(const double* x, double* y, std::size_t n);
void tanh64(const double* x, double* y, std::size_t n);

}  // namespace assay

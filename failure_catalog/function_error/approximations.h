// Approximations of exp2, tanh, log2 and 1 / x that kernels use, in fp64: what a coarse function predicts.
#pragma once

namespace assay {

/// 2^y = 2^n 2^r, 0 <= r < 1, with 2^r by the cubic through 1 at r = 0 of least relative error on [0, 1] (8.6e-5;
/// FlashAttention-4).
double exp2_by_cubic(double y);
/// 2^r by the quadratic through 2^0, 2^(1/2) and 2^1.
double exp2_by_quadratic(double y);
/// r cut to `bits` bits.
double exp2_by_table(double y, int bits);
/// t (27 + t^2) / (27 + 9 t^2), cut off at +-1.
double tanh_by_fraction(double t);
/// e + (m - 1) (4/3 - (m - 1) / 3), and e + m - 1: a quadratic and a line in the significand m.
double log2_by_quadratic(double x);
double log2_by_line(double x);
/// The line 48/17 - 32/17 d in the significand d in [1/2, 1), and `steps` Newton steps.
double reciprocal_by_steps(double x, int steps);

}  // namespace assay

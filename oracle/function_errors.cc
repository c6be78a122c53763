// The declared functions' errors and the sentences about them.
#include "oracle/function_errors.h"

namespace assay {

double exponential_error(Exponential declared) {
  switch (declared) {
    case Exponential::kEx2Approx: return kEx2Documented;
    case Exponential::kEx2Hopper: return kEx2Hopper;
    case Exponential::kPolynomial3:
    case Exponential::kUnknown: break;
  }
  return kPolynomial3;
}

double tanh_error(Tanh declared) {
  switch (declared) {
    case Tanh::kTwoUlp: return 4 * 0x1p-24;
    case Tanh::kApproxHopper: return kTanhHopper;
    case Tanh::kApprox:
    case Tanh::kUnknown: break;
  }
  return kTanhDocumented;
}

std::string exponential_assumption(Exponential declared) {
  switch (declared) {
    case Exponential::kEx2Approx: return "exp2 is within 2 ulp of the correctly rounded result; exp2(0) = 1";
    case Exponential::kEx2Hopper:
      return "exp2 is within 1.4585e-7 of the exact value, as measured over all arguments of ex2.approx.f32 on an "
             "H200; "
             "exp2(0) = 1";
    case Exponential::kPolynomial3:
    case Exponential::kUnknown: break;
  }
  return "exp2 is within 9e-5 of the exact value (a degree-3 polynomial or better); exp2(0) = 1";
}

}  // namespace assay

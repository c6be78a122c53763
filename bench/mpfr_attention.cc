// Plain loops over MPFR numbers.
#include "bench/mpfr_attention.h"

#include <mpfr.h>

#include <vector>

namespace assay::bench {
namespace {

/// Numbers that live as long as the array; never moved.
class Numbers {
 public:
  Numbers(std::size_t n, int bits) : x_(n) {
    for (Number& x : x_) mpfr_init2(x.value, bits), mpfr_set_zero(x.value, 1);
  }
  ~Numbers() {
    for (Number& x : x_) mpfr_clear(x.value);
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  mpfr_ptr operator[](std::size_t i) { return x_[i].value; }

 private:
  struct Number {
    mpfr_t value;
  };
  std::vector<Number> x_;
};

}  // namespace

struct MpfrAttention::State {
  State(const DenseOperands& in, int bits)
      : rows(in.rows), keys(in.keys), d(in.d), q(rows * d, bits), k(keys * d, bits), v(keys * d, bits), p(keys, bits), o(d, bits),
        scratch(4, bits) {
    for (std::size_t i = 0; i < rows * d; ++i) mpfr_set_d(q[i], in.q[i], MPFR_RNDN);
    for (std::size_t i = 0; i < keys * d; ++i) mpfr_set_d(k[i], in.k[i], MPFR_RNDN), mpfr_set_d(v[i], in.v[i], MPFR_RNDN);
    mpfr_set_d(scratch[3], in.scale, MPFR_RNDN);
  }
  std::size_t rows, keys, d;
  Numbers q, k, v, p, o, scratch;
};

MpfrAttention::MpfrAttention(const DenseOperands& in, int bits) : state_(std::make_unique<State>(in, bits)) {}
MpfrAttention::~MpfrAttention() = default;

void MpfrAttention::row(std::size_t r, double* o, double* lse) {
  State& s = *state_;
  const mpfr_ptr product = s.scratch[0], largest = s.scratch[1], sum = s.scratch[2], scale = s.scratch[3];
  for (std::size_t j = 0; j < s.keys; ++j) {
    mpfr_set_zero(s.p[j], 1);
    for (std::size_t c = 0; c < s.d; ++c) {
      mpfr_mul(product, s.q[r * s.d + c], s.k[j * s.d + c], MPFR_RNDN);
      mpfr_add(s.p[j], s.p[j], product, MPFR_RNDN);
    }
    mpfr_mul(s.p[j], s.p[j], scale, MPFR_RNDN);
    if (j == 0 || mpfr_cmp(s.p[j], largest) > 0) mpfr_set(largest, s.p[j], MPFR_RNDN);
  }
  mpfr_set_zero(sum, 1);
  for (std::size_t c = 0; c < s.d; ++c) mpfr_set_zero(s.o[c], 1);
  for (std::size_t j = 0; j < s.keys; ++j) {
    mpfr_sub(s.p[j], s.p[j], largest, MPFR_RNDN);
    mpfr_exp(s.p[j], s.p[j], MPFR_RNDN);
    mpfr_add(sum, sum, s.p[j], MPFR_RNDN);
    for (std::size_t c = 0; c < s.d; ++c) {
      mpfr_mul(product, s.p[j], s.v[j * s.d + c], MPFR_RNDN);
      mpfr_add(s.o[c], s.o[c], product, MPFR_RNDN);
    }
  }
  for (std::size_t c = 0; c < s.d; ++c) {
    mpfr_div(s.o[c], s.o[c], sum, MPFR_RNDN);
    o[c] = mpfr_get_d(s.o[c], MPFR_RNDN);
  }
  mpfr_log(sum, sum, MPFR_RNDN);
  mpfr_add(sum, sum, largest, MPFR_RNDN);
  *lse = mpfr_get_d(sum, MPFR_RNDN);
}

}  // namespace assay::bench

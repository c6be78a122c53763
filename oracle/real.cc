// Ball arithmetic on Arb (its own library up to FLINT 2, part of FLINT 3).
#include "oracle/real.h"

#if __has_include(<flint/arb.h>)
#include <flint/arb.h>
#else
#include <arb.h>
#endif

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

namespace assay {

struct BallAccess {
  static arb_ptr get(Ball& ball) { return std::launder(reinterpret_cast<arb_ptr>(ball.storage_)); }
  static arb_srcptr get(const Ball& ball) { return std::launder(reinterpret_cast<arb_srcptr>(ball.storage_)); }
};

namespace {

// An array of balls is an array of arb_struct, which is what arb_dot walks over.
static_assert(sizeof(Ball) == sizeof(arb_struct) && alignof(Ball) >= alignof(arb_struct));

constexpr slong kShortPrecision = 64;  // of bounds that end up as a double

thread_local int working_bits = 64;

/// Frees the calling thread's tables of constants when the thread ends.
struct ThreadTables {
  ~ThreadTables() { flint_cleanup(); }
  void touch() const {}
};
thread_local const ThreadTables thread_tables;

arb_ptr raw(Ball& ball) { return BallAccess::get(ball); }
arb_srcptr raw(const Ball& ball) { return BallAccess::get(ball); }

class Float {
 public:
  Float() { arf_init(value_); }
  ~Float() { arf_clear(value_); }
  Float(const Float&) = delete;
  Float& operator=(const Float&) = delete;
  arf_ptr get() { return value_; }

 private:
  arf_t value_;
};

void check_finite(double value) {
  if (std::isfinite(value)) return;
  std::fprintf(stderr, "Ball of the non-finite double %g\n", value);
  std::abort();
}

}  // namespace

Precision::Precision(int bits) : outer_(working_bits) {
  if (bits < 2) {
    std::fprintf(stderr, "Precision of %d bits, below 2\n", bits);
    std::abort();
  }
  thread_tables.touch();
  working_bits = bits;
}
Precision::~Precision() { working_bits = outer_; }
int Precision::bits() { return working_bits; }

Ball::Ball() { arb_init(raw(*this)); }
Ball::Ball(double value) : Ball() { *this = value; }
Ball::Ball(const Ball& other) : Ball() { arb_set(raw(*this), raw(other)); }
Ball::Ball(Ball&& other) noexcept : Ball() { arb_swap(raw(*this), raw(other)); }
Ball& Ball::operator=(const Ball& other) {
  arb_set(raw(*this), raw(other));
  return *this;
}
Ball& Ball::operator=(Ball&& other) noexcept {
  arb_swap(raw(*this), raw(other));
  return *this;
}
Ball::~Ball() { arb_clear(raw(*this)); }

Ball& Ball::operator=(double value) {
  check_finite(value);
  arb_set_d(raw(*this), value);
  return *this;
}
Ball& Ball::operator+=(const Ball& other) {
  arb_add(raw(*this), raw(*this), raw(other), working_bits);
  return *this;
}
Ball& Ball::operator-=(const Ball& other) {
  arb_sub(raw(*this), raw(*this), raw(other), working_bits);
  return *this;
}
Ball& Ball::operator*=(const Ball& other) {
  arb_mul(raw(*this), raw(*this), raw(other), working_bits);
  return *this;
}
Ball& Ball::operator/=(const Ball& other) {
  arb_div(raw(*this), raw(*this), raw(other), working_bits);
  return *this;
}
Ball Ball::operator-() const {
  Ball result;
  arb_neg(raw(result), raw(*this));
  return result;
}

Ball Ball::midpoint() const {
  Ball result;
  arb_get_mid_arb(raw(result), raw(*this));
  return result;
}
bool Ball::is_exact() const { return arb_is_exact(raw(*this)) != 0; }
bool Ball::midpoint_is_zero() const { return arf_is_zero(arb_midref(raw(*this))) != 0; }
bool Ball::contains(double value) const { return contains(Ball(value)); }
bool Ball::contains(const Ball& other) const { return arb_contains(raw(*this), raw(other)) != 0; }

bool Ball::relative_radius_within(int log2_ratio) const {
  if (is_exact()) return true;
  if (arb_is_finite(raw(*this)) == 0) return false;
  Float radius, limit;
  arf_set_mag(radius.get(), arb_radref(raw(*this)));
  arf_abs(limit.get(), arb_midref(raw(*this)));
  arf_mul_2exp_si(limit.get(), limit.get(), log2_ratio);
  return arf_cmp(radius.get(), limit.get()) <= 0;
}

Enclosure Ball::to_double() const {
  constexpr Enclosure kUnknown{0, std::numeric_limits<double>::infinity()};
  if (arb_is_finite(raw(*this)) == 0) return kUnknown;
  const double mid = arf_get_d(arb_midref(raw(*this)), ARF_RND_NEAR);
  if (!std::isfinite(mid)) return kUnknown;
  // radius = up(|m - mid| + r). Bounded precision: m may be 2^-(2^64), whose exact distance to mid has 2^64 bits.
  Float bound, r;
  arf_set_d(bound.get(), mid);
  arf_sub(bound.get(), arb_midref(raw(*this)), bound.get(), kShortPrecision, ARF_RND_UP);
  arf_abs(bound.get(), bound.get());
  arf_set_mag(r.get(), arb_radref(raw(*this)));
  arf_add(bound.get(), bound.get(), r.get(), kShortPrecision, ARF_RND_UP);
  return {mid, arf_get_d(bound.get(), ARF_RND_UP)};
}

std::string Ball::digits(int count) const {
  char* text = arb_get_str(raw(*this), count, ARB_STR_NO_RADIUS);
  std::string result = text;
  flint_free(text);
  return result;
}

Ball exp(const Ball& x) {
  Ball result;
  arb_exp(raw(result), raw(x), working_bits);
  return result;
}
Ball log(const Ball& x) {
  Ball result;
  arb_log(raw(result), raw(x), working_bits);
  return result;
}
Ball tanh(const Ball& x) {
  Ball result;
  arb_tanh(raw(result), raw(x), working_bits);
  return result;
}
Ball max(const Ball& a, const Ball& b) {
  Ball result;
  arb_max(raw(result), raw(a), raw(b), working_bits);
  return result;
}

bool certainly_less(const Ball& a, const Ball& b) { return arb_lt(raw(a), raw(b)) != 0; }
bool overlap(const Ball& a, const Ball& b) { return arb_overlaps(raw(a), raw(b)) != 0; }
bool midpoint_less(const Ball& a, const Ball& b) { return arf_cmp(arb_midref(raw(a)), arb_midref(raw(b))) < 0; }

Ball dot(const Ball& start, std::span<const Ball> a, std::span<const Ball> b, std::size_t b_step) {
  Ball result = start;
  if (a.empty()) return result;
  if ((a.size() - 1) * b_step >= b.size()) {
    std::fprintf(stderr, "dot of %zu terms with step %zu over %zu balls\n", a.size(), b_step, b.size());
    std::abort();
  }
  arb_dot(raw(result), raw(start), 0, raw(a.front()), 1, raw(b.front()), static_cast<slong>(b_step),
          static_cast<slong>(a.size()), working_bits);
  return result;
}

}  // namespace assay

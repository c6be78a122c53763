// Ball: a real number known as midpoint plus radius, at any precision; arithmetic that proves its own error (Arb).
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace assay {

/// Working precision of ball arithmetic in this thread, in bits (>= 2), while the object lives; scopes nest.
class Precision {
 public:
  explicit Precision(int bits);
  ~Precision();
  Precision(const Precision&) = delete;
  Precision& operator=(const Precision&) = delete;
  static int bits();

 private:
  int outer_;
};

/// A double interval [mid - radius, mid + radius]; radius = +inf if the midpoint has no double or nothing is known.
struct Enclosure {
  double mid = 0, radius = 0;
};

/// The set [m - r, m + r] with binary m of any exponent. Every operation returns a ball that holds the exact result for
/// all members of its operands, rounded to the working precision. A division by a ball with 0, or the log of one with a
/// number <= 0, holds everything. No Ball may have static storage: Arb's caches are freed when their thread ends.
class Ball {
 public:
  Ball();                       ///< 0
  explicit Ball(double value);  ///< exactly; aborts unless finite
  Ball(const Ball& other);
  Ball(Ball&& other) noexcept;  ///< leaves 0 behind
  Ball& operator=(const Ball& other);
  Ball& operator=(Ball&& other) noexcept;
  ~Ball();

  Ball& operator=(double value);  ///< exactly; aborts unless finite
  Ball& operator+=(const Ball& other);
  Ball& operator-=(const Ball& other);
  Ball& operator*=(const Ball& other);
  Ball& operator/=(const Ball& other);
  Ball operator-() const;
  friend Ball operator+(Ball a, const Ball& b) { return a += b; }
  friend Ball operator-(Ball a, const Ball& b) { return a -= b; }
  friend Ball operator*(Ball a, const Ball& b) { return a *= b; }
  friend Ball operator/(Ball a, const Ball& b) { return a /= b; }

  /// The midpoint as an exact ball.
  Ball midpoint() const;
  bool is_exact() const;  ///< radius 0
  bool midpoint_is_zero() const;
  bool contains(double value) const;
  bool contains(const Ball& other) const;  ///< as sets
  /// radius <= 2^log2_ratio |midpoint|
  bool relative_radius_within(int log2_ratio) const;

  /// The midpoint rounded to nearest and a radius, rounded up, that covers the ball and that rounding.
  Enclosure to_double() const;
  /// At most `count` significant decimal digits, only those off by less than one unit of the last; "0e+k" if none is.
  std::string digits(int count) const;

 private:
  friend struct BallAccess;
  alignas(8) std::byte storage_[48];  ///< an arb_struct; the library's headers stay out of this one
};

Ball exp(const Ball& x);
Ball log(const Ball& x);
Ball tanh(const Ball& x);
Ball max(const Ball& a, const Ball& b);  ///< holds max(x, y) for all x in a, y in b

/// Every member of a is less than every member of b.
bool certainly_less(const Ball& a, const Ball& b);
bool overlap(const Ball& a, const Ball& b);
/// Midpoints only.
bool midpoint_less(const Ball& a, const Ball& b);

/// start + sum_i a[i] b[i b_step], one rounding error for the whole sum relative to its largest term.
/// Aborts if b is shorter than the sum needs.
Ball dot(const Ball& start, std::span<const Ball> a, std::span<const Ball> b, std::size_t b_step = 1);

}  // namespace assay

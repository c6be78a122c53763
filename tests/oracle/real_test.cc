// Ball against MPFR: every operation holds the exact result, and conversion to double rounds outward.
#include "oracle/real.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <thread>
#include <vector>

#include "tests/oracle/problems.h"

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr mpfr_prec_t kWide = 2400;  // holds sums and products of any two doubles exactly

class Exact {
 public:
  explicit Exact(double value = 0) {
    mpfr_init2(x, kWide);
    mpfr_set_d(x, value, MPFR_RNDN);
  }
  ~Exact() { mpfr_clear(x); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  mpfr_t x;
};

/// The number as an exact ball: its leading 53 bits, the next 53, ... each times a power of two.
Ball ball_of(const Exact& value, int pieces) {
  const Precision scope(kWide + 64);
  Exact rest, piece;
  mpfr_set(rest.x, value.x, MPFR_RNDN);
  Ball sum;
  const mpfr_exp_t shift = mpfr_zero_p(rest.x) ? 0 : mpfr_get_exp(rest.x);
  mpfr_mul_2si(rest.x, rest.x, -shift, MPFR_RNDN);
  for (int i = 0; i < pieces && !mpfr_zero_p(rest.x); ++i) {
    const double leading = mpfr_get_d(rest.x, MPFR_RNDZ);
    mpfr_set_d(piece.x, leading, MPFR_RNDN);
    mpfr_sub(rest.x, rest.x, piece.x, MPFR_RNDN);
    sum += Ball(leading);
  }
  const Ball two(shift < 0 ? 0.5 : 2.0);
  Ball power(1.0);
  for (mpfr_exp_t bit = mpfr_exp_t{1} << 20; bit > 0; bit >>= 1) {
    power *= power;
    if ((std::abs(shift) & bit) != 0) power *= two;
  }
  return sum * power;
}

double random_double(Dice& dice) {
  for (;;) {
    const double x = dice.one_in(3) ? dice.real(-10, 10) : std::bit_cast<double>(dice.bits());
    if (x - x == 0) return x;
  }
}

TEST(Ball, HoldsEveryFiniteDoubleExactly) {
  Dice dice(1);
  for (int n = 0; n < 20000; ++n) {
    const double x = random_double(dice);
    const Ball ball(x);
    const Enclosure e = ball.to_double();
    ASSERT_EQ(e.mid, x);
    ASSERT_EQ(e.radius, 0);
    ASSERT_TRUE(ball.is_exact());
    ASSERT_TRUE(ball.contains(x));
    ASSERT_FALSE(ball.contains(x == 0 ? 0x1p-1074 : -x));
  }
  for (const double x : {0x1p-1074, -0x1p-1022, 0x1.fffffffffffffp1023, -0.0}) EXPECT_EQ(Ball(x).to_double().mid, x);
}

TEST(Ball, AbortsOnANonFiniteDoubleAndOnAShortDotOperand) {
  EXPECT_DEATH(Ball{kInfinity}, "non-finite");
  EXPECT_DEATH(Ball{kInfinity - kInfinity}, "non-finite");
  EXPECT_DEATH(Precision{1}, "below 2");
  const std::vector<Ball> a(3), b(6);
  EXPECT_DEATH(dot(Ball(), a, b, 3), "dot of 3 terms with step 3 over 6");
}

TEST(Ball, SumsDifferencesProductsAndQuotientsHoldTheExactResult) {
  Dice dice(2);
  int exact = 0;
  for (int n = 0; n < 4000; ++n) {
    const Precision scope(static_cast<int>(dice.pick({24, 53, 64, 128, 300})));
    const double a = random_double(dice), b = random_double(dice);
    Exact x(a), y(b), z;
    mpfr_add(z.x, x.x, y.x, MPFR_RNDN);
    const Ball sum = Ball(a) + Ball(b);
    ASSERT_TRUE(sum.contains(ball_of(z, 50))) << a << " + " << b;
    ASSERT_TRUE(sum.relative_radius_within(2 - Precision::bits()));
    exact += sum.is_exact();
    mpfr_sub(z.x, x.x, y.x, MPFR_RNDN);
    ASSERT_TRUE((Ball(a) - Ball(b)).contains(ball_of(z, 50))) << a << " - " << b;
    mpfr_mul(z.x, x.x, y.x, MPFR_RNDN);
    const Ball product = Ball(a) * Ball(b);
    ASSERT_TRUE(product.contains(ball_of(z, 50))) << a << " * " << b;
    ASSERT_TRUE(product.relative_radius_within(2 - Precision::bits()));
    ASSERT_TRUE((-product).contains(-product));
    if (b == 0) continue;
    const Ball quotient = Ball(a) / Ball(b);
    mpfr_div(z.x, x.x, y.x, MPFR_RNDN);
    ASSERT_TRUE(quotient.contains(ball_of(z, 50))) << a << " / " << b;
    ASSERT_TRUE(quotient.relative_radius_within(2 - Precision::bits()));
  }
  EXPECT_LT(exact, 4000);
  EXPECT_EQ((Ball(1.0) / Ball(0.0)).to_double().radius, kInfinity);
}

TEST(Ball, ExpAndLogHoldWhatMpfrFindsAtFourTimesThePrecision) {
  Dice dice(3);
  for (int n = 0; n < 1500; ++n) {
    const Precision scope(static_cast<int>(dice.pick({53, 128, 256})));
    const double a = dice.one_in(4) ? dice.real(-1e5, 1e5) : dice.real(-3, 3);
    Exact x(a), down, up;
    mpfr_exp(down.x, x.x, MPFR_RNDD);
    const Ball e = exp(Ball(a));
    ASSERT_TRUE(e.contains(ball_of(down, 40))) << "exp " << a;
    ASSERT_TRUE(e.relative_radius_within(3 - Precision::bits()));
    const double positive = std::bit_cast<double>(dice.bits() & 0x7fefffffffffffffU);
    if (positive == 0) continue;
    Exact y(positive);
    mpfr_log(down.x, y.x, MPFR_RNDD);
    const Ball l = log(Ball(positive));
    ASSERT_TRUE(l.contains(ball_of(down, 40))) << "log " << positive;
    ASSERT_TRUE(l.relative_radius_within(3 - Precision::bits()));
  }
  EXPECT_EQ(exp(Ball(0.0)).to_double().mid, 1);
  EXPECT_EQ(log(Ball(-1.0)).to_double().radius, kInfinity);
}

TEST(Ball, TanhHoldsWhatMpfrFindsAtFourTimesThePrecisionFromTinyToSaturated) {
  Dice dice(5);
  for (int n = 0; n < 1500; ++n) {
    const Precision scope(static_cast<int>(dice.pick({53, 128, 256})));
    const double a = dice.one_in(3) ? dice.real(-1, 1) * dice.pick({1e-300, 1e-20, 1e-3, 30.0, 1e4}) : dice.real(-4, 4);
    Exact x(a), t;
    mpfr_tanh(t.x, x.x, MPFR_RNDN);
    const Ball y = tanh(Ball(a));
    ASSERT_TRUE(y.contains(ball_of(t, 40))) << "tanh " << a;
    ASSERT_TRUE(y.relative_radius_within(4 - Precision::bits())) << "tanh " << a;
  }
  EXPECT_EQ(tanh(Ball(0.0)).to_double().mid, 0);
  EXPECT_EQ(tanh(Ball(1e300)).to_double().mid, 1);
}

TEST(Ball, DotHoldsTheExactSumAlsoWhenItCancels) {
  Dice dice(4);
  for (int n = 0; n < 1000; ++n) {
    const Precision scope(128);
    const auto count = static_cast<std::size_t>(dice.between(0, 20)),
               step = static_cast<std::size_t>(dice.between(1, 3));
    std::vector<Ball> a(count), b(count * step);
    const double start = dice.real(-1, 1);
    Exact sum(start), term, x, y;
    for (std::size_t i = 0; i < count; ++i) {
      const double u = dice.real(-1, 1) * dice.pick({1.0, 1e30, 1e-30}), v = dice.one_in(5) ? 0.0 : dice.real(-1, 1);
      a[i] = u;
      b[i * step] = v;
      mpfr_set_d(x.x, u, MPFR_RNDN);
      mpfr_set_d(y.x, v, MPFR_RNDN);
      mpfr_mul(term.x, x.x, y.x, MPFR_RNDN);
      mpfr_add(sum.x, sum.x, term.x, MPFR_RNDN);
    }
    ASSERT_TRUE(dot(Ball(start), a, b, step).contains(ball_of(sum, 50)));
  }
}

TEST(Ball, ToDoubleRoundsTheMidpointToNearestAndTheRadiusUp) {
  Dice dice(5);
  for (int n = 0; n < 4000; ++n) {
    // A 300-bit number over a binade range that reaches past both ends of double.
    Exact exact(dice.real(1, 2) * (dice.one_in(2) ? 1 : -1)), tail(dice.real(-1, 1)), rounded;
    mpfr_mul_2si(tail.x, tail.x, -static_cast<long>(dice.pick({53, 54, 60, 200})), MPFR_RNDN);
    mpfr_add(exact.x, exact.x, tail.x, MPFR_RNDN);
    mpfr_mul_2si(exact.x, exact.x, static_cast<long>(dice.pick({0, 0, 1000, -1000, -1022, -1060, -1074, -1080, 1030})),
                 MPFR_RNDN);
    const Ball ball = ball_of(exact, 8);
    const Enclosure e = ball.to_double();
    const double nearest = mpfr_get_d(exact.x, MPFR_RNDN);
    if (nearest - nearest != 0) {
      ASSERT_EQ(e.radius, kInfinity);
      ASSERT_EQ(e.mid, 0);
      continue;
    }
    ASSERT_EQ(e.mid, nearest);
    mpfr_set_d(rounded.x, nearest, MPFR_RNDN);
    mpfr_sub(rounded.x, exact.x, rounded.x, MPFR_RNDN);
    mpfr_abs(rounded.x, rounded.x, MPFR_RNDN);
    const double smallest = mpfr_get_d(rounded.x, MPFR_RNDU);
    ASSERT_GE(e.radius, smallest);
    ASSERT_LE(e.radius, smallest * (1 + 0x1p-50) + 0x1p-1074);
  }
  // With a radius of its own: 1/3 at 30 bits must hold 1/3, of which 0.333... is the nearest double.
  const Precision coarse(30);
  const Enclosure third = (Ball(1.0) / Ball(3.0)).to_double();
  EXPECT_GE(third.radius, std::abs(third.mid - 1.0 / 3));
  EXPECT_LE(third.radius, 0x1p-29);
  // 1 + 2^-60 + 2^-200: the last bit is far below the first of the distance to 1, and still counts.
  Exact close(1), bit(1);
  mpfr_mul_2si(bit.x, bit.x, -60, MPFR_RNDN);
  mpfr_add(close.x, close.x, bit.x, MPFR_RNDN);
  mpfr_mul_2si(bit.x, bit.x, -140, MPFR_RNDN);
  mpfr_add(close.x, close.x, bit.x, MPFR_RNDN);
  EXPECT_EQ(ball_of(close, 8).to_double().mid, 1);
  EXPECT_GT(ball_of(close, 8).to_double().radius, 0x1p-60);
  // Far below double, where the exact distance from the midpoint to its double has 10^30 bits.
  const Enclosure vanishing = exp(Ball(-1e30)).to_double();
  EXPECT_EQ(vanishing.mid, 0);
  EXPECT_EQ(vanishing.radius, 0x1p-1074);
}

TEST(Ball, ComparesOnlyWhatIsCertain) {
  const Precision scope(40);
  const Ball third = Ball(1.0) / Ball(3.0), one(1.0), again = Ball(2.0) / Ball(6.0);
  EXPECT_TRUE(certainly_less(third, one));
  EXPECT_FALSE(certainly_less(one, third));
  EXPECT_FALSE(certainly_less(third, again));
  EXPECT_TRUE(overlap(third, again));
  EXPECT_FALSE(overlap(third, one));
  EXPECT_TRUE(third.contains(third.midpoint()));
  EXPECT_FALSE(third.midpoint().contains(third));
  EXPECT_TRUE(third.midpoint().is_exact());
  EXPECT_TRUE(midpoint_less(third, one));
  EXPECT_FALSE(midpoint_less(one, one));
  EXPECT_TRUE(max(third, one).contains(1.0));
  EXPECT_TRUE(max(third, again).contains(third.midpoint()));
  EXPECT_FALSE(third.relative_radius_within(-50));
  EXPECT_TRUE(third.relative_radius_within(-36));
  EXPECT_FALSE((third - again).relative_radius_within(0));
  EXPECT_TRUE((one - one).midpoint_is_zero());
}

TEST(Ball, CopiesAndMovesKeepValuesAndLeaveZeroBehind) {
  const Precision scope(600);
  Ball a = Ball(1.0) / Ball(3.0);
  const Ball copy = a;
  Ball moved = std::move(a);
  EXPECT_TRUE(moved.contains(copy) && copy.contains(moved));
  EXPECT_TRUE(a.is_exact() && a.midpoint_is_zero());
  std::vector<Ball> grown;
  for (int i = 1; i <= 100; ++i) grown.push_back(Ball(1.0) / Ball(static_cast<double>(i)));
  EXPECT_TRUE((grown[6] * Ball(7.0)).contains(1.0));
  moved = moved * moved;
  EXPECT_TRUE((moved * Ball(9.0)).contains(1.0));
}

TEST(Ball, PrintsOnlyDigitsThatAreCertain) {
  const Precision scope(128);
  EXPECT_EQ((Ball(1.0) / Ball(3.0)).digits(20), "0.33333333333333333333");
  EXPECT_EQ((Ball(2.0) / Ball(3.0)).digits(10), "0.6666666667");
  EXPECT_EQ(Ball(0.1).digits(30), "0.100000000000000005551115123126");
  const Precision coarse(12);
  const std::string short_text = (Ball(1.0) / Ball(3.0)).digits(20);
  EXPECT_EQ(short_text.rfind("0.333", 0), 0U) << short_text;
  EXPECT_LT(short_text.size(), 8U) << short_text;
}

TEST(Precision, NestsAndBelongsToItsThread) {
  const Precision outer(200);
  {
    const Precision inner(30);
    EXPECT_EQ(Precision::bits(), 30);
    std::thread([] {
      const Precision other(500);
      EXPECT_TRUE(log(Ball(2.0)).relative_radius_within(-490));
    }).join();
    EXPECT_EQ(Precision::bits(), 30);
  }
  EXPECT_EQ(Precision::bits(), 200);
}

}  // namespace
}  // namespace assay

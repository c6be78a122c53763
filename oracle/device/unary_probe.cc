// Scalar approximations against fp64 references, code by code.
#include "oracle/device/unary_probe.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>

#include "oracle/exp64.h"
#include "oracle/function_errors.h"
#include "oracle/threads.h"

namespace assay {
namespace {

constexpr double kMinNormal = 0x1p-126, kMinSubnormal = 0x1p-149;
constexpr double kTooLarge = 0x1.ffffffp127;  // rounds to infinity from here on
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr std::size_t kChunk = std::size_t{1} << 22;

float value_of(std::uint32_t code) { return std::bit_cast<float>(code); }

void reference(Unary f, const std::vector<double>& x, std::vector<double>& y) {
  switch (f) {
    case Unary::kEx2:
    case Unary::kEx2Ftz: return exp2_64(x.data(), y.data(), x.size());
    case Unary::kLg2:
      log64(x.data(), y.data(), x.size());
      for (double& v : y) v *= kLog2E;
      return;
    case Unary::kRcp:
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = 1.0 / x[i];
      return;
    case Unary::kRsqrt:
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = 1.0 / std::sqrt(x[i]);
      return;
    case Unary::kTanh: return tanh64(x.data(), y.data(), x.size());
  }
}

/// Monotone in the value, neighbours one apart.
std::int64_t position(float x) {
  const auto code = std::bit_cast<std::int32_t>(x);
  return code >= 0 ? code : std::numeric_limits<std::int32_t>::min() - static_cast<std::int64_t>(code);
}

void compare(UnaryProbe& probe, std::uint32_t code, double exact, float got, float at_zero) {
  const float x = value_of(code);
  const auto given = static_cast<double>(got);
  ++probe.arguments;
  const bool subnormal_argument = x != 0 && std::abs(x) < static_cast<float>(kMinNormal);
  if (subnormal_argument) {
    ++probe.subnormal_arguments;
    const bool as_zero = std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(at_zero);
    if (as_zero && static_cast<double>(at_zero) != static_cast<double>(static_cast<float>(exact))) {
      ++probe.taken_as_zero;
      return;
    }
  }
  const double magnitude = std::abs(exact);
  const bool number = magnitude < kTooLarge;                                        // false for NaN
  const bool edge = magnitude >= kTooLarge * (1 - 0x1p-21) && magnitude < 0x1p128;  // either is within the promise
  if (number != (given - given == 0) && !edge) {
    if (probe.class_differs++ == 0) probe.class_at = code;
    return;
  }
  if (!number || edge || subnormal_argument) return;
  if (magnitude < kMinNormal) {
    const bool below = magnitude < kMinSubnormal;  // zero is a neighbour
    probe.subnormal_results += !below;
    if (given == 0 && !below)
      ++probe.flushed;
    else
      probe.subnormal_error.take(std::abs(given - exact) / kMinSubnormal, code);
    return;
  }
  ++probe.normal;
  const auto nearest = static_cast<float>(exact);
  const double error = std::abs(given - exact);
  const bool near_one = probe.function == Unary::kLg2 && x > 0.5F && x < 2.0F;
  if (near_one)
    probe.absolute.take(error, code);
  else
    probe.relative.take(error / magnitude, code);
  if (got == nearest) return;
  ++probe.not_nearest;
  if (!near_one) probe.ulps.take(static_cast<double>(std::abs(position(got) - position(nearest))), code);
}

}  // namespace

void Largest::take(double candidate, std::uint32_t code) {
  if (candidate > value || (candidate == value && candidate > 0 && code < at)) value = candidate, at = code;
}

void UnaryProbe::take(const UnaryProbe& other) {
  arguments += other.arguments, normal += other.normal, not_nearest += other.not_nearest;
  relative.take(other.relative), absolute.take(other.absolute), ulps.take(other.ulps);
  subnormal_arguments += other.subnormal_arguments, taken_as_zero += other.taken_as_zero;
  subnormal_results += other.subnormal_results, flushed += other.flushed;
  subnormal_error.take(other.subnormal_error);
  if (other.class_differs > 0 && (class_differs == 0 || other.class_at < class_at)) class_at = other.class_at;
  class_differs += other.class_differs;
}

UnaryProbe probe_unary(Unary f, std::uint32_t first, std::size_t count) {
  UnaryProbe probe;
  probe.function = f;
  std::uint32_t zeros[2];
  run_unary(f, 0, std::span(zeros).first(1));
  run_unary(f, 0x80000000U, std::span(zeros).last(1));
  std::vector<std::uint32_t> got;
  std::vector<double> x, y;
  for (std::size_t done = 0; done < count; done += got.size()) {
    const std::uint32_t begin = first + static_cast<std::uint32_t>(done);
    got.resize(std::min(kChunk, count - done)), x.resize(got.size()), y.resize(got.size());
    run_unary(f, begin, got);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<double>(value_of(begin + static_cast<std::uint32_t>(i)));
    reference(f, x, y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::uint32_t code = begin + static_cast<std::uint32_t>(i);
      compare(probe, code, y[i], value_of(got[i]), value_of(zeros[code >> 31]));
    }
  }
  return probe;
}

UnaryProbe probe_unary(Unary f) {
  constexpr std::uint64_t kParts = 256, kPart = (std::uint64_t{1} << 32) / kParts;
  UnaryProbe all;
  all.function = f;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  on_threads(oracle_threads(), [&] {
    for (std::uint64_t part; (part = next++) < kParts;) {
      const UnaryProbe one = probe_unary(f, static_cast<std::uint32_t>(part * kPart), kPart);
      const std::lock_guard lock(mutex);
      all.take(one);
    }
  });
  return all;
}

bool within_bounds(const UnaryProbe& probe) {
  if (probe.class_differs > 0) return false;
  switch (probe.function) {
    case Unary::kEx2:
    case Unary::kEx2Ftz: return probe.ulps.value <= 2 && probe.relative.value <= kEx2Hopper;
    case Unary::kLg2: return probe.relative.value <= kLg2 && probe.absolute.value <= kLg2;
    case Unary::kRcp: return probe.ulps.value <= 1;
    case Unary::kRsqrt: return probe.relative.value <= 0x1.126p-23;  // 2^-22.9
    case Unary::kTanh: return probe.relative.value <= kTanhHopper;
  }
  return false;
}

}  // namespace assay

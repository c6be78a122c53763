// A threshold law: a quantity of rows or elements, large where they came out wrong and small where they came out right.
#pragma once

#include <algorithm>
#include <limits>

namespace assay {

/// The quantity is known to lie between low and high; orders of summation and rounding may move it.
struct Threshold {
  double limit = 0;
  double least_bad = std::numeric_limits<double>::infinity();
  double most_good = -std::numeric_limits<double>::infinity();
  int bad = 0, good = 0;

  void add(bool fails, double low, double high) {
    if (fails)
      least_bad = std::min(least_bad, high), ++bad;
    else
      most_good = std::max(most_good, low), ++good;
  }
  bool holds() const { return bad > 0 && least_bad >= limit * (1 - 1e-3) && most_good <= limit * (1 + 1e-3); }
};

}  // namespace assay

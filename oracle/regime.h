// Regimes: on which stretches of an op's numeric axes the rows of a case lie; what fuzzing is steered by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

/// One axis, cut into at most 32 stretches ("largest logit": "below -1e4", ...).
struct RegimeAxis {
  std::string_view name;
  std::vector<std::string_view> levels;
};

/// Which stretches of each axis are reached; parallel to the op's axes.
class Regimes {
 public:
  explicit Regimes(std::size_t axes) : reached_(axes, 0) {}
  void mark(std::size_t axis, std::size_t level) { reached_[axis] |= std::uint32_t{1} << level; }
  /// The first level whose limit lies above `value` (ascending limits); the one behind the last limit otherwise.
  void mark_below(std::size_t axis, double value, std::span<const double> limits) {
    std::size_t level = 0;
    while (level < limits.size() && !(value < limits[level])) ++level;
    mark(axis, level);
  }
  /// Bit l: level l.
  std::uint32_t reached(std::size_t axis) const { return reached_[axis]; }
  std::size_t axes() const { return reached_.size(); }
  /// The axes of `other` behind these.
  void append(const Regimes& other) { reached_.insert(reached_.end(), other.reached_.begin(), other.reached_.end()); }
  /// The union with a set over the same axes.
  void merge(const Regimes& other) {
    for (std::size_t axis = 0; axis < reached_.size(); ++axis) reached_[axis] |= other.reached_[axis];
  }

 private:
  std::vector<std::uint32_t> reached_;
};

}  // namespace assay

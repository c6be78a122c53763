// How much an action adds to the largest resident size of this process, as Linux accounts it.
#pragma once

namespace assay::bench {

class PeakMemory {
 public:
  /// Gives free memory back to the system and sets the peak to the present size.
  PeakMemory();
  /// Bytes by which the size has been above that since; NaN where the system does not say.
  double growth() const;

 private:
  double before_;
};

}  // namespace assay::bench

// Reads /proc/self/status.
#include "bench/peak_memory.h"

#include <malloc.h>

#include <fstream>
#include <limits>
#include <string>

namespace assay::bench {
namespace {

double status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return 1024 * std::stod(line.substr(field.size() + 1));
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  before_ = reset ? status_bytes("VmRSS") : std::numeric_limits<double>::quiet_NaN();
}

double PeakMemory::growth() const { return status_bytes("VmHWM") - before_; }

}  // namespace assay::bench

// What compute-sanitizer's text says: one finding per kind and place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct SanitizerFinding {
  std::string place;  ///< headline and place: "Invalid __global__ write of size 4 bytes at f(int)+0x40 in a.cu:7"
  std::string text;   ///< its first report: the place, and by which thread, at which address
  std::int64_t reports = 1;  ///< how many reports name this kind and place
};

/// The findings in a log of memcheck, racecheck, initcheck or synccheck, in order of appearance. Banners, summaries and
/// host stack frames are no findings; nor are errors of CUDA calls, which runs report themselves.
std::vector<SanitizerFinding> sanitizer_findings(std::string_view log);

}  // namespace assay

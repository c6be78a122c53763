// What stands in storage that no element uses.
#include "cases/poison.h"

#include <limits>

namespace assay {

std::uint64_t poison_code(Format format, Poison poison) {
  const FormatInfo& f = info(format);
  const bool integer = f.specials == Specials::kInteger;
  switch (poison) {
    case Poison::kZero: return f.specials == Specials::kE8m0 ? 0 : encode(format, 0.0);
    case Poison::kNan:
      if (!integer) return encode(format, std::numeric_limits<double>::quiet_NaN());
      break;
    case Poison::kInf:
      if (!integer) return encode(format, std::numeric_limits<double>::infinity());
      break;
    case Poison::kMax: break;
    case Poison::kTag: return encode(format, integer || f.specials == Specials::kE8m0 ? 208.0 : -208.0);
  }
  return encode(format, f.max_finite);
}

}  // namespace assay

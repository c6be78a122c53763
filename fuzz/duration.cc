// Reading durations.
#include "fuzz/duration.h"

#include <optional>

#include "cases/text.h"
#include "oracle/error.h"

namespace assay {

double read_duration(const std::string& text, const std::string& field) {
  std::string number = text;
  double unit = 1;
  if (!text.empty()) {
    const char last = text.back();
    unit = last == 'm' ? 60 : last == 'h' ? 3600 : last == 'd' ? 86400 : 1;
    if (last == 's' || unit > 1) number.pop_back();
  }
  const std::optional<double> value = read_number(number);
  if (!value || !(*value > 0)) throw InputError(field + " " + text + ": must be a duration such as 90s, 10m, 2h or 3d");
  return *value * unit;
}

}  // namespace assay

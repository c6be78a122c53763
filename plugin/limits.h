// Limits: which values of its op's parameters a plug-in's kernel takes; everything else is refused before the launch.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "oracle/json_field.h"
#include "oracle/op_parameters.h"
#include "oracle/tensor.h"

namespace assay {

/// The values of one parameter. For lists of numbers the range holds for each of them.
struct Limit {
  std::string key;
  bool any = false;
  std::vector<std::string> values;  ///< if not empty: one of these
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
  std::int64_t multiple_of = 1;

  bool admits(const std::string& value) const;
  std::string text() const;  ///< "64 or 128", "at least 1, at most 4096, a multiple of 8"
};

/// Members of `limits` and `conventions` of a manifest. Throw InputError naming file, field and value.
Limit number_limit(const JsonField& field, const std::string& key, const OpParameters& op);
Limit name_limit(const JsonField& field, const std::string& key, const OpParameters& op);

/// Why a case is outside the limits, or nothing. `canonical`: defaults left out, `complete`: with them.
std::optional<std::string> outside(const std::vector<Limit>& limits, const OpParameters& op, const Params& canonical,
                                   const Params& complete);

/// Why a tensor in a storage that is aligned to `bytes` itself is not: its first element, or a stride but the last.
std::optional<std::string> misaligned(const TensorLayout& layout, std::int64_t bytes);

}  // namespace assay

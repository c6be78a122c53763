// OpParameters: what a program outside needs to know about an op's parameters: their values in full, and their names.
#pragma once

#include <string_view>
#include <vector>

#include "oracle/params.h"

namespace assay {

/// The names that one parameter takes.
struct ParamNames {
  std::string_view key;
  std::vector<std::string_view> names;
};

struct OpParameters {
  std::string_view op;
  /// Every parameter that has a value, defaults too. Throws InputError as Op::canonical does.
  Params (*complete)(const Params&);
  /// Parameters whose values are names; all others are numbers or lists of numbers.
  std::vector<ParamNames> named;
  std::string_view format_key;                  ///< the parameter that Op::input_format reads
  std::vector<std::string_view> for_the_judge;  ///< they say what is judged: a kernel may ignore them
};

/// Registration: one static RegisterOpParameters per op folder.
struct RegisterOpParameters {
  explicit RegisterOpParameters(OpParameters parameters);
};
/// Throws InputError if there is no such op.
const OpParameters& op_parameters(std::string_view op);

}  // namespace assay

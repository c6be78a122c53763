// Registry of what the outside is told about ops' parameters.
#include "oracle/op_parameters.h"

#include <deque>
#include <string>

#include "oracle/error.h"

namespace assay {
namespace {

std::deque<OpParameters>& registry() {
  static std::deque<OpParameters> ops;
  return ops;
}

}  // namespace

RegisterOpParameters::RegisterOpParameters(OpParameters parameters) { registry().push_back(std::move(parameters)); }

const OpParameters& op_parameters(std::string_view op) {
  for (const OpParameters& parameters : registry())
    if (parameters.op == op) return parameters;
  throw InputError("op '" + std::string(op) + "' is unknown");
}

}  // namespace assay

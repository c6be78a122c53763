// Op registry.
#include "oracle/op.h"

#include <algorithm>
#include <deque>

#include "oracle/error.h"

namespace assay {
namespace {

/// A deque: pointers to its elements stay valid while it grows.
std::deque<Op>& registry() {
  static std::deque<Op> ops;
  return ops;
}

}  // namespace

RegisterOp::RegisterOp(const Op& op) { registry().push_back(op); }

std::vector<const Op*> all_ops() {
  std::vector<const Op*> ops;
  for (const Op& op : registry()) ops.push_back(&op);
  std::sort(ops.begin(), ops.end(), [](const Op* a, const Op* b) { return a->name < b->name; });
  return ops;
}

const Op& op_named(std::string_view name) {
  for (const Op& op : registry())
    if (op.name == name) return op;
  throw InputError("case: op '" + std::string(name) + "' is unknown");
}

}  // namespace assay

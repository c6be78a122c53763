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

class PlainPlanter final : public FaultPlanter {
 public:
  PlainPlanter(const Op& op, const Problem& problem) : op_(op), problem_(problem) {}
  PlantedOutputs plant(std::size_t fault, double size) override { return op_.plant(problem_, fault, size); }
  FaultSite site(std::size_t fault, std::size_t row) override {
    return op_.fault_site != nullptr ? op_.fault_site(problem_, fault, row) : FaultSite{};
  }

 private:
  const Op& op_;
  const Problem& problem_;
};

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

std::unique_ptr<FaultPlanter> fault_planter(const Op& op, const Problem& problem) {
  if (op.planter != nullptr) return op.planter(problem);
  return std::make_unique<PlainPlanter>(op, problem);
}

}  // namespace assay

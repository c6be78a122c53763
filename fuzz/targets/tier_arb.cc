// Fuzz target: the fp64 tier and ball arithmetic agree within the sum of their radii on every element of any case.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "cases/materialize.h"
#include "fuzz/case_mutator.h"
#include "fuzz/input_case.h"
#include "fuzz/signal.h"
#include "fuzz/targets/target.h"
#include "oracle/error.h"

namespace assay {
namespace {

constexpr int kBits = 128;
constexpr MutationLimits kLimits{.elements = 6000, .overrides = 48, .dictionary = true};  // ball arithmetic is slow

[[noreturn]] void disagree(const Case& c, const OutputTruth& output, std::size_t i, const std::string& what) {
  fmt::print(stderr, "{} element {}: {}\n  {}\n", output.layout.role, output.element[i], what, print_case(c));
  std::abort();
}

class TierArb final : public Target {
 public:
  int run(std::span<const std::uint8_t> input) override {
    const Op* op = op_of(input);
    const std::optional<Case> c = input_case(op->name, input, kLimits);
    if (!c) return -1;
    const Problem problem = materialize(*c);
    Evaluation fast;
    try {
      fast = op->evaluate(problem, {}, Level::kT0);
    } catch (const InputError&) {
      return -1;  // values that are no legal indices
    }
    signal_case(0, *c, regimes_of(*op, problem, {}, fast, {}));
    compare(*c, fast.truth, op->reference(problem, kBits));
    return 0;
  }

  std::string mutate(std::span<const std::uint8_t> input, std::uint64_t seed) override {
    return CaseMutator(op_of(input)->name, kLimits).mutate(input, seed);
  }

 private:
  /// Whose name the input begins with; else as many bytes as it has decide.
  static const Op* op_of(std::span<const std::uint8_t> input) {
    const std::vector<const Op*> ops = all_ops();
    const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
    for (const Op* op : ops)
      if (text.starts_with(op->name)) return op;
    return ops[input.size() % ops.size()];
  }

  static void compare(const Case& c, const Truth& fast, const Truth& exact) {
    for (std::size_t k = 0; k < exact.outputs.size(); ++k) {
      const OutputTruth &f = fast.outputs[k], &e = exact.outputs[k];
      for (std::size_t i = 0; i < e.mid.size(); ++i) {
        if (f.classes[i] != e.classes[i])
          disagree(c, e, i, fmt::format("classes {} in fp64, {} in balls", f.classes[i], e.classes[i]));
        if ((e.classes[i] & kNumber) == 0) continue;
        if (!(std::abs(f.mid[i] - e.mid[i]) <= f.radius[i] + e.radius[i]))
          disagree(c, e, i, fmt::format("{} +- {} in fp64, {} +- {} in balls", f.mid[i], f.radius[i], e.mid[i], e.radius[i]));
      }
    }
  }
};

const RegisterTarget kRegister({"tier_arb", "the fp64 tier against ball arithmetic, all ops",
                                [](const std::string&, const TargetOptions&) -> std::unique_ptr<Target> {
                                  return std::make_unique<TierArb>();
                                }});

}  // namespace
}  // namespace assay

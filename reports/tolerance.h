// What a case can prove: its bound by term and level, its detection floors, and how another tolerance compares.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oracle/floor.h"
#include "oracle/op.h"

namespace assay {

/// Smallest, median and largest of the finite values of an array, and where they stand in it; -1 and NaN if there is
/// none.
struct Spread {
  std::int64_t count = 0, at_min = -1, at_max = -1;
  double min = std::numeric_limits<double>::quiet_NaN(), median = min, max = min;
};
Spread spread_of(std::span<const double> values);

/// Positions (`at_min`, `at_max`) are indices into the arrays of OutputTruth; only elements that must be numbers count.
struct LevelReport {
  std::string name;
  Spread tau, ulps;            ///< tau itself and in units of the output format at the truth
  std::int64_t unbounded = 0;  ///< elements about which the level says nothing
};
struct TermReport {
  std::string name;
  Spread size;
  double share = 0;  ///< median of size / tau of T0
};
struct OutputReport {
  TensorLayout layout;
  std::vector<std::int64_t> element;  ///< positions in the storage
  std::int64_t numbers = 0;
  Spread magnitude, radius;
  double radius_share = 0;          ///< largest radius / tau of T0
  std::vector<LevelReport> levels;  ///< T0 and the tiers that the declaration reaches
  std::vector<TermReport> terms;    ///< of T0, the last one the output's rounding
};

/// |y - r| <= atol + rtol |r| on the same elements.
struct Rule {
  double atol = 0, rtol = 0;
};
struct RuleOutput {
  std::vector<Spread> looseness;  ///< (atol + rtol |r|) / tau, per level of the output
  std::int64_t numbers = 0;
  std::int64_t legal_outside = 0;  ///< elements for which the bound accepts some value that the rule rejects
};
struct WrongReport {
  std::string name;
  std::vector<bool> bound_rejects, rule_passes;  ///< per output
};
struct RuleReport {
  Rule rule;
  std::vector<RuleOutput> outputs;
  std::vector<WrongReport> wrong;  ///< known-wrong outputs of the op, and planted faults at size 1
};

struct ToleranceReport {
  std::string case_line, kernel;  ///< kernel: empty if nothing is declared
  Arithmetic arithmetic;
  std::vector<OutputReport> outputs;
  std::int64_t rows = 0, rows_out_of_range = 0;
  std::string out_of_range;         ///< the first such row's reason
  std::vector<std::string> levels;  ///< rows of the floors: "T0", ..., and the rule if there is one
  std::vector<FaultFloors> faults;  ///< [level of `levels`][output]
  std::optional<RuleReport> rule;
  std::vector<std::string> assumptions;
};

/// `level`: the highest that is tried. case_line and kernel are left for the caller.
ToleranceReport tolerance_report(const Op& op, const Problem& problem, const Arithmetic& arithmetic, Level level,
                                 const std::optional<Rule>& rule);

/// The rule's acceptance sets: the codes y with |y - r| <= atol + rtol |r|, r the truth rounded to fp32, as
/// judges/allclose has it.
JudgedLevel rule_level(const Truth& truth, const Rule& rule);

/// [i, j, ...] of a storage position; layouts of outputs do not overlap.
std::vector<std::int64_t> index_of(const TensorLayout& layout, std::int64_t element);

std::string tolerance_text(const ToleranceReport& report);
nlohmann::ordered_json tolerance_json(const ToleranceReport& report);

}  // namespace assay

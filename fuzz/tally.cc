// Counts, largest shares of the bound, regimes: kept in memory, written as JSON.
#include "fuzz/tally.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fuzz/durable_file.h"
#include "oracle/json_field.h"

namespace assay {
namespace {

void add_used(std::map<std::string, double>& worst, Level level, const OutputMeasure& output, const ElementReport& element) {
  if (element.element < 0 || element.rejected) return;
  double& most = worst[std::string(level_name(level)) + " " + output.role];
  most = std::max(most, element.used);
}

}  // namespace

void Tally::add(const Record& record, const std::optional<Regimes>& regimes) {
  ++executions_;
  ++verdicts_[std::string(verdict_name(record.verdict.kind))];
  KernelTally& kernel = kernels_[record.kernel];
  ++kernel.executions;
  if (!regimes) return;
  if (record.verdict.kind == CaseVerdict::kClean || record.verdict.kind == CaseVerdict::kVacuous)
    for (const OutputMeasure& output : record.measurement.outputs) {
      add_used(kernel.worst, Level::kT0, output, output.worst);
      for (const TierMeasure& tier : output.tiers) add_used(kernel.worst, tier.level, output, tier.worst);
    }
  if (kernel.regimes.axes() == 0) kernel.regimes = Regimes(regimes->axes());
  kernel.regimes.merge(*regimes);
}

void Tally::write(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (file_.empty() || (!now && time - written_ < std::chrono::seconds(1))) return;
  written_ = time;
  nlohmann::json kernels = nlohmann::json::object();
  for (const auto& [name, kernel] : kernels_) {
    nlohmann::json worst = nlohmann::json::object();
    for (const auto& [where, used] : kernel.worst) worst[where] = number_to_json(used);
    kernels[name] = {
        {"executions", kernel.executions},
        {"worst", worst},
        {"regimes", kernel.regimes.axes() == 0 ? std::vector<std::string>{} : regime_names(op_, kernel.regimes)}};
  }
  const nlohmann::json document = {{"op", op_.name},
                                   {"executions", executions_},
                                   {"rejected_inputs", rejected_},
                                   {"seconds", std::chrono::duration<double>(time - start_).count()},
                                   {"verdicts", verdicts_},
                                   {"kernels", kernels}};
  write_durably(file_, document.dump(1) + "\n");
}

}  // namespace assay

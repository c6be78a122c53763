// Executions: sums, maxima and unions, and their JSON.
#include "reports/executions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace assay {

std::int64_t Executions::verdict(const std::string& name) const {
  const auto at = verdicts.find(name);
  return at == verdicts.end() ? 0 : at->second;
}

std::int64_t Executions::judged() const { return verdict("clean") + verdict("finding") + verdict("unclassified"); }

Executions& operator+=(Executions& sum, const Executions& more) {
  sum.executions += more.executions;
  sum.seconds += more.seconds;
  for (const auto& [name, count] : more.verdicts) sum.verdicts[name] += count;
  for (const auto& [name, kernel] : more.kernels) {
    KernelExecutions& mine = sum.kernels[name];
    mine.executions += kernel.executions;
    for (const auto& [where, used] : kernel.worst) {
      const auto at = mine.worst.emplace(where, used).first;
      at->second = std::max(at->second, used);
    }
    mine.regimes.insert(kernel.regimes.begin(), kernel.regimes.end());
  }
  return sum;
}

nlohmann::json to_json(const Executions& executions) {
  nlohmann::json kernels = nlohmann::json::object();
  for (const auto& [name, kernel] : executions.kernels) {
    nlohmann::json worst = nlohmann::json::object();
    for (const auto& [where, used] : kernel.worst) worst[where] = number_to_json(used);
    kernels[name] = {{"executions", kernel.executions}, {"worst", worst}, {"regimes", kernel.regimes}};
  }
  return {{"executions", executions.executions},
          {"verdicts", executions.verdicts},
          {"seconds", executions.seconds},
          {"kernels", kernels}};
}

Executions executions_from_json(const JsonField& field) {
  Executions executions;
  executions.executions = field["executions"].integer();
  executions.seconds = field["seconds"].number();
  for (const auto& [name, count] : field["verdicts"].members()) executions.verdicts[name] = count.integer();
  for (const auto& [name, kernel] : field["kernels"].members()) {
    KernelExecutions& mine = executions.kernels[name];
    mine.executions = kernel["executions"].integer();
    for (const auto& [where, used] : kernel["worst"].members()) mine.worst[where] = used.number();
    for (const JsonField& regime : kernel["regimes"].elements()) mine.regimes.insert(regime.text());
  }
  return executions;
}

}  // namespace assay

// Executions: what engines ran and what came of it, per verdict and per kernel; adds up over processes and campaigns.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "oracle/json_field.h"

namespace assay {

struct KernelExecutions {
  std::int64_t executions = 0;
  std::map<std::string, double> worst;  ///< "T1 o" -> largest part of the tolerance that an element used
  std::set<std::string> regimes;        ///< numeric regimes that its cases reached
};

struct Executions {
  std::int64_t executions = 0;
  std::map<std::string, std::int64_t> verdicts;  ///< name of the verdict -> executions
  double seconds = 0;                            ///< of the engines together
  std::map<std::string, KernelExecutions> kernels;

  std::int64_t verdict(const std::string& name) const;
  /// Executions whose outputs were judged: clean, finding or unclassified.
  std::int64_t judged() const;
};

Executions& operator+=(Executions& sum, const Executions& more);
nlohmann::json to_json(const Executions& executions);
/// The form of an engine's `--stats` file. Throws InputError naming file and field.
Executions executions_from_json(const JsonField& field);

}  // namespace assay

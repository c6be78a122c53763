// What `assay mutants` found, as JSON, text and Markdown.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "fuzz/confusion.h"
#include "fuzz/false_alarms.h"
#include "fuzz/kill_matrix.h"

namespace assay {

struct MutantsReport {
  std::vector<KernelIdentity> mutants;
  std::optional<KillMatrix> matrix;
  std::optional<FalseAlarms> alarms;
  std::optional<Confusion> confusion;
};

/// Faults are pairs of a switch and a sound kernel, sites are switches of fault.h (a switch is one place in the code,
/// which kernels may share); the same switch with another size counts once.
struct MutantCounts {
  std::size_t mutants = 0, faults = 0, sites = 0, modes = 0, after_reports = 0;
};
MutantCounts counts_of(const std::vector<KernelIdentity>& mutants);

/// Mutants that change bits on fewer than three cases of our suites.
std::vector<std::string> nearly_equivalent(const KillMatrix& matrix);
/// Mutants that no level kills.
std::vector<std::string> survivors(const KillMatrix& matrix);

nlohmann::ordered_json mutants_json(const MutantsReport& report, const nlohmann::json& environment);
std::string mutants_text(const MutantsReport& report);
std::string mutants_markdown(const MutantsReport& report, const nlohmann::json& environment);

}  // namespace assay

// Environment of a run: date, machine, build, commit, GPU and library versions, as JSON for records and reports.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay {

/// The current time as "2025-01-31T12:00:00Z".
std::string utc_now();

/// {date, host: {cpu, cores, os}, build: {compiler, flags, commit, dirty}, gpu: ["name, driver", ...] or "none",
/// libraries: {mpfr, flint, gmp}}. What cannot be found is "unknown", never left out. `date` is recorded as given.
nlohmann::json environment(const std::string& date = utc_now());

/// The processor's name in the text of /proc/cpuinfo ("model name", or "Model" on ARM boards), or "unknown".
std::string cpu_model(const std::string& cpuinfo);

}  // namespace assay

// CampaignState: everything that a campaign needs to go on after a kill, as one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fuzz/assignments.h"
#include "reports/executions.h"

namespace assay {

/// What was asked for.
struct CampaignSpec {
  std::vector<CampaignKernel> kernels;
  unsigned jobs = 1;
  double seconds = 600;   ///< budget; 0: none
  std::int64_t runs = 0;  ///< executions; 0: no limit
  int deadline = 60;      ///< seconds after which one execution counts as hung
  std::uint64_t seed = 1;
  int devices = 0;           ///< GPUs of the host, for device kernels
  std::string known = {};    ///< ledger of known failures, a file
  std::string command = {};  ///< as typed, for the summary
};

struct CampaignState {
  CampaignSpec spec;
  std::string started;                                      ///< date of the first start
  std::map<std::string, std::vector<std::string>> regimes;  ///< op -> all that its engine knows
  double seconds = 0;                                       ///< spent
  Executions done;                                          ///< of engines that have ended
  std::map<std::string, double> turns;                      ///< assignment -> seconds that its engines ran
  std::map<std::string, std::string> given_up;              ///< assignment -> why
  std::int64_t next = 0;                                    ///< number of the next engine process
  std::map<std::int64_t, std::string> open;  ///< engine processes whose statistics are not in `done` yet -> assignment
  std::int64_t restarts = 0, torn = 0;
};

/// Written whole or not at all. Throws EnvironmentError naming the file.
void save(const CampaignState& state, const std::filesystem::path& file);
/// Throws InputError naming file and field, or that there is none.
CampaignState load_campaign(const std::filesystem::path& file);

}  // namespace assay

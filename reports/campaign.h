// CampaignSummary: what a fuzzing campaign executed, found and never reached; JSON form and exit code.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "oracle/json_field.h"
#include "reports/executions.h"

namespace assay {

/// An input that killed or hung an engine.
struct QuarantineEntry {
  std::string name;       ///< of the input's file: "crash-<sha1>"
  std::string kind = {};  ///< "crashed" or "hung"
  std::string op = {};
  std::vector<std::string> kernels = {};  ///< of the engine that it ended
  std::string how = {};                   ///< "signal 11 (SIGSEGV)"
  std::string first_seen = {};
  std::int64_t times = 1;
  bool has_input = true;
  std::string known = {};  ///< the issue that the ledger names for it
};
nlohmann::json to_json(const QuarantineEntry& entry);
QuarantineEntry quarantine_entry_from_json(const JsonField& field);

/// One kernel and signature of failure.
struct CampaignFinding {
  std::string folder;  ///< with smallest.case, worst.case, finding.json, repro.txt
  std::string kernel, signature, smallest;
  double worst_used = 0;  ///< largest error in units of its bound; 0 where nothing was measured
  std::int64_t times = 0;
  bool ended = false;      ///< a crash or a hang, of a plug-in's own process
  std::string known = {};  ///< the issue that the ledger names for it
};

struct CampaignSummary {
  std::string command;
  double seconds = 0;  ///< of the campaign, without merges
  Executions done;
  std::map<std::string, std::vector<std::string>> reached, never_reached;  ///< op -> regimes
  std::map<std::string, std::int64_t> corpus;                              ///< op -> inputs
  std::vector<CampaignFinding> findings;
  std::vector<QuarantineEntry> quarantine;
  std::vector<std::string> passes;    ///< entries of the ledger that pass today, or fail otherwise
  std::vector<std::string> given_up;  ///< assignments whose engine kept dying, with the reason
  std::int64_t restarts = 0;          ///< engines started again after a death
  std::int64_t torn = 0;              ///< files removed because a kill or a full disk had cut them short
  std::int64_t members = 1;           ///< processes of a job array that this sums up
};

/// 1 for findings that no ledger knows and for unexpected passes; 5 for inputs that kill or hang and are not known; 6
/// if no execution was judged; else 0. The first that applies.
int exit_code(const CampaignSummary& summary);

/// {version, kind: "campaign", environment, command, ...}.
nlohmann::json to_json(const CampaignSummary& summary, const nlohmann::json& environment);

}  // namespace assay

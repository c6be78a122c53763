// Assignments: which target and kernels one engine fuzzes, so that all kernels are covered by the engines there are.
#pragma once

#include <string>
#include <vector>

namespace assay {

struct CampaignKernel {
  std::string name, op;
  std::string plugin = {};  ///< the file it comes from; empty: assay's own
  bool device = false, mutant = false;
  bool operator==(const CampaignKernel&) const = default;
};

struct Assignment {
  std::string label;  ///< "attention 1/2": unique in a campaign
  std::string op;
  std::vector<std::string> kernels;
  std::string plugin = {};
  bool device = false, mutant = false;
};

/// Kernels that one process can hold share an assignment: those of one op, program, plug-in and kind of machine. Where
/// there are fewer such groups than `jobs`, the groups with most kernels per engine are dealt to several; a group with
/// fewer kernels than engines has some on the same ones. Where there are more groups, engines take turns.
std::vector<Assignment> assignments(const std::vector<CampaignKernel>& kernels, unsigned jobs);

}  // namespace assay

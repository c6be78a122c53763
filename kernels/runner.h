// Runner: runs a named kernel on a problem's bits and returns an outcome, never an exception for what a kernel does.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device_info.h"
#include "kernels/kernel.h"

namespace assay {

enum class RunStatus : std::uint8_t { kOk, kSkipped, kCrashed, kHung };

struct RunOutcome {
  RunStatus status = RunStatus::kOk;
  std::string reason;  ///< skipped: why; crashed: "signal 11 (SIGSEGV)" or "exit 3"; hung: the deadline
  RunFacts facts;
  Arithmetic declared;
  std::vector<Tensor> outputs;  ///< valid for kOk
  /// What every kernel must keep and this run did not, for kOk and kCrashed, as the end of a sentence about the kernel:
  /// "changed input q", "wrote outside output o".
  std::vector<std::string> broken;
  bool spoiled =
      false;  ///< the process it ran in must run no further kernel; a worker ends, and its runner starts another
};

/// What a runner can run, for `list` and for choosing kernels.
struct KernelIdentity {
  std::string name, op, summary, expects;
  bool mutant = false;
  bool device = false;              ///< runs on a GPU
  std::vector<std::string> dtypes;  ///< names of the input formats it takes
  std::string plugin = {};          ///< the file it comes from; empty: the program's own
  /// Of mutants: the sound kernel, the fault's switch, and the public report it is modelled on.
  std::string base = {}, fault = {}, report = {};
};

class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::vector<KernelIdentity> kernels() = 0;
  /// The op that a kernel computes; empty if there is none of that name. Asked before every run.
  virtual std::string op_of(std::string_view kernel);
  virtual RunOutcome run(std::string_view kernel, const Params& params, const std::vector<Tensor>& inputs,
                         const std::vector<TensorLayout>& outputs) = 0;
  /// The device that its kernels run on; asks it (a worker, not this process).
  virtual DeviceInfo device();
  /// Call::fill of later runs.
  virtual void set_fill(int /*fill*/) {}
  /// Later runs start in a fresh process, where this runner uses processes.
  virtual void restart() {}
};

/// Calls the kernels linked into this program, in this process (tests, fuzz targets).
std::unique_ptr<Runner> in_process_runner();

/// Outputs before a run: NaN-pattern canary in every element, so that an unwritten element is visible.
void fill_canary(Tensor& output);

}  // namespace assay

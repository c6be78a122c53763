// Runs the probes of oracle/device and sums them up.
#include "cli/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "oracle/error.h"
#include "reports/environment.h"

#ifdef ASSAY_HAVE_CUDA
#include "oracle/device/mma_probe.h"
#include "oracle/device/unary_probe.h"
#include "oracle/threads.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kElements = 1 << 18, kSampleElements = 1 << 12;
constexpr std::uint64_t kSeed = 1;
constexpr std::uint32_t kSampleStep = 1U << 26, kSampleRun = 1U << 14;

Json to_json(const MmaProbe& probe) {
  Json out{{"instruction", probe.instruction.name()},
           {"operands", name_of(probe.operands)},
           {"elements", probe.elements},
           {"different", probe.different}};
  if (probe.different > 0) out["first_difference"] = probe.first;
  return out;
}

Json to_json(const Largest& largest) { return {{"value", largest.value}, {"at", fmt::format("{:08x}", largest.at)}}; }

Json to_json(const UnaryProbe& probe) {
  return {{"instruction", unary_name(probe.function)},
          {"arguments", probe.arguments},
          {"normal", probe.normal},
          {"not_nearest", probe.not_nearest},
          {"relative", to_json(probe.relative)},
          {"absolute", to_json(probe.absolute)},
          {"ulps", to_json(probe.ulps)},
          {"subnormal_arguments", probe.subnormal_arguments},
          {"taken_as_zero", probe.taken_as_zero},
          {"subnormal_results", probe.subnormal_results},
          {"flushed", probe.flushed},
          {"subnormal_error", to_json(probe.subnormal_error)},
          {"class_differs", probe.class_differs},
          {"within_bounds", within_bounds(probe)}};
}

UnaryProbe sample_unary(Unary f) {
  UnaryProbe all;
  all.function = f;
  std::uint32_t first = 0;
  do all.take(probe_unary(f, first, kSampleRun));
  while ((first += kSampleStep) != 0);
  return all;
}

}  // namespace

ProbeSummary probe_device(bool full) {
  const DeviceFacts device = device_facts();
  const std::vector<MmaProbe> products = probe_mma(full ? kElements : kSampleElements, kSeed);
  const unsigned before = oracle_threads();
  if (full) set_oracle_threads(std::max(1U, std::thread::hardware_concurrency()));
  Json mma = Json::array(), functions = Json::array();
  std::int64_t elements = 0, different = 0, arguments = 0, beyond = 0;
  for (const MmaProbe& probe : products) {
    mma.push_back(to_json(probe));
    elements += probe.elements, different += probe.different;
  }
  for (const Unary f : kUnaries) {
    const UnaryProbe probe = full ? probe_unary(f) : sample_unary(f);
    functions.push_back(to_json(probe));
    arguments += probe.arguments, beyond += !within_bounds(probe);
  }
  set_oracle_threads(before);
  ProbeSummary summary;
  summary.ok = different == 0 && beyond == 0;
  summary.text = fmt::format(
      "{}: {} of {} tensor-core elements differ from the model; {} of {} functions beyond what bounds take, {} "
      "arguments",
      device.name, different, elements, beyond, functions.size(), arguments);
  summary.document = {{"version", 1},
                      {"tool", full ? "assay doctor --probe" : "assay doctor"},
                      {"device", device.name},
                      {"capability", fmt::format("{}.{}", device.major, device.minor)},
                      {"driver", device.driver},
                      {"runtime", device.runtime},
                      {"environment", environment()},
                      {"mma", mma},
                      {"functions", functions}};
  return summary;
}

}  // namespace assay

#else

namespace assay {

ProbeSummary probe_device(bool) { throw EnvironmentError("this program was built without device code"); }

}  // namespace assay

#endif

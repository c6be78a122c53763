// Fuzz target: a case and a correct kernel chosen by the input run down the straight line; a finding is a false alarm.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/text.h"
#include "fuzz/pairwise.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "oracle/error.h"
#include "oracle/op.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 14> kValues{"nan", "inf", "-inf", "-0", "0", "max", "-max", "min_sub", "-min_sub",
                                                   "1", "-50000", "88.7", "0.0078125", "448"};

/// Reads choices off the input; all zero behind its end.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::size_t below(std::size_t n) {
    std::size_t value = next();
    if (n > 256) value = value << 8 | next();
    return value % n;
  }
  bool empty() const { return at_ >= size_; }

 private:
  std::size_t next() { return at_ < size_ ? data_[at_++] : 0; }
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

/// Whether the format has the value, so that an override may name it.
bool exists(Format format, std::string_view value) {
  if (const std::optional<double> number = read_number(value)) return std::abs(*number) <= info(format).max_finite;
  return !value.ends_with("inf") || info(format).specials == Specials::kIeee;
}

/// Up to four elements of q, k or v (what has channels) replaced by special values that their format has, while the input lasts.
void add_overrides(Case& c, Bytes& bytes) {
  std::vector<InputSpec> inputs = op_named(c.op).inputs(c.params);
  std::erase_if(inputs, [](const InputSpec& input) { return input.axes.find('c') == std::string::npos; });
  for (int i = 0; i < 4 && !bytes.empty(); ++i) {
    const TensorLayout& tensor = inputs[bytes.below(inputs.size())].layout;
    const std::string_view value = kValues[bytes.below(kValues.size())];
    if (tensor.count() == 0 || !exists(tensor.format, value)) continue;
    Override one{.role = tensor.role, .index = {}, .value = std::string(value)};
    for (const std::int64_t extent : tensor.shape)
      one.index.push_back(static_cast<std::int64_t>(bytes.below(static_cast<std::size_t>(extent))));
    c.overrides.push_back(std::move(one));
  }
}

/// Counts executions that reached a verdict, and prints the share when the program ends.
struct Tally {
  std::int64_t runs = 0, verdicts = 0, clean = 0;
  ~Tally() {
    if (runs > 0)
      std::fprintf(stderr, "attention_fuzz: %lld runs of a kernel, %lld with a verdict, %lld clean\n",
                   static_cast<long long>(runs), static_cast<long long>(verdicts), static_cast<long long>(clean));
  }
};

void run(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<Runner> runner = in_process_runner();
  static const std::vector<KernelIdentity> kernels = runner->kernels();
  static Tally tally;
  Bytes bytes(data, size);
  Case c = parse_case(chosen_line([&](std::size_t n) { return bytes.below(n); }));
  add_overrides(c, bytes);
  std::vector<std::string> takers;
  for (const KernelIdentity& kernel : kernels)
    if (takes(kernel, c)) takers.push_back(kernel.name);
  const std::string& kernel = takers[bytes.below(takers.size())];
  const Record record = run_case(c, kernel, *runner);
  const CaseVerdict kind = record.verdict.kind;
  ++tally.runs;
  tally.verdicts += kind != CaseVerdict::kSkipped;
  tally.clean += kind == CaseVerdict::kClean;
  if (kind == CaseVerdict::kClean || kind == CaseVerdict::kVacuous || kind == CaseVerdict::kOutOfRange ||
      kind == CaseVerdict::kSkipped)
    return;
  std::fprintf(stderr, "%s: %s %s%s\n  assay repro '%s' --kernel %s\n", kernel.c_str(),
               std::string(verdict_name(kind)).c_str(), record.verdict.evidence.c_str(), record.verdict.reason.c_str(),
               print_case(c).c_str(), kernel.c_str());
  std::abort();
}

}  // namespace
}  // namespace assay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::run(data, size);
  return 0;
}

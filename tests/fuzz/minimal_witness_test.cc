// Witnesses of the catalogue through the minimiser: it ends at a fixed point that still has the witness's mode.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include "cases/file_source.h"
#include "failure_catalog/mode.h"
#include "fuzz/minimize.h"
#include "fuzz/suites.h"
#include "kernels/worker.h"

namespace assay {
namespace {

constexpr std::size_t kEvery = 4;  // modes, for the time it takes; `assay minimize` does any of them

TEST(MinimalWitness, HasItsModeAndNoSingleStepMakesItSmaller) {
  const std::unique_ptr<Runner> runner =
      worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}, .deadline = std::chrono::minutes(2)});
  const MinimizeOptions options{.repeats = {.runs = 2}};
  const auto minimized = [&](std::string_view mode) -> std::optional<Minimized> {
    std::ifstream in(find_data_file("failure_catalog/" + std::string(mode) + "/witness.case"));
    for (std::string line; std::getline(in, line);)
      for (const KernelIdentity& kernel : runner->kernels()) {
        const Case c = parse_case(line);
        if (kernel.expects != mode || kernel.device || !takes(kernel, c)) continue;
        const Record record = run_case(c, kernel.name, *runner, options.level, options.repeats);
        if (record.verdict.mode == mode) return minimize(c, kernel.name, *runner, options);
      }
    return std::nullopt;
  };
  std::size_t number = 0;
  for (const Mode* mode : all_modes()) {
    if (number++ % kEvery != 0) continue;
    const std::optional<Minimized> found = minimized(mode->name);
    ASSERT_TRUE(found.has_value()) << mode->name;
    EXPECT_EQ(found->record.verdict.mode, mode->name) << found->record.case_line;
    EXPECT_TRUE(found->minimal) << mode->name << ": " << found->record.case_line;
  }
}

}  // namespace
}  // namespace assay

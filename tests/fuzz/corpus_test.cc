// The committed corpus: case lines on which planted faults were found; together they reach every mode of the catalogue.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "cases/file_source.h"
#include "failure_catalog/mode.h"
#include "fuzz/pipeline.h"
#include "fuzz/suites.h"
#include "kernels/worker.h"

namespace assay {
namespace {

struct Entry {
  std::string name;  ///< of the mutant that it was found on, for most
  Case c;
};

std::vector<Entry> corpus_of(const Op& op) {
  std::vector<Entry> all;
  for (const auto& file : std::filesystem::directory_iterator(find_data_file("fuzz/corpus/" + std::string(op.name)))) {
    std::ifstream in(file.path());
    all.push_back({file.path().filename().string(), parse_case(std::string(std::istreambuf_iterator<char>(in), {}))});
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return all;
}

TEST(Corpus, ReachesEveryModeOfTheCatalogue) {
  const auto mutants = worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}, .deadline = std::chrono::minutes(2)});
  std::map<std::string, KernelIdentity> by_name;
  for (KernelIdentity& kernel : mutants->kernels()) by_name[kernel.name] = std::move(kernel);
  Judging judging(Level::kT2);
  judging.evidence = false;
  std::set<std::string> reached;
  for (const Op* op : all_ops())
    for (const Entry& entry : corpus_of(*op)) {
      EXPECT_EQ(entry.c.op, op->name) << entry.name;
      const auto mutant = by_name.find(entry.name);
      if (mutant == by_name.end() || reached.contains(mutant->second.expects)) continue;
      EXPECT_TRUE(takes(mutant->second, entry.c)) << entry.name;
      const Record record = run_case(entry.c, entry.name, *mutants, judging, {.runs = 2});
      EXPECT_TRUE(record.verdict.kind == CaseVerdict::kFinding || record.verdict.kind == CaseVerdict::kUnclassified) << entry.name;
      reached.insert(record.verdict.mode);
    }
  for (const Mode* mode : all_modes()) EXPECT_TRUE(reached.contains(std::string(mode->name))) << mode->name;
}

}  // namespace
}  // namespace assay

// How kernels are dealt to engines.
#include "fuzz/assignments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace assay {
namespace {

std::vector<CampaignKernel> attention_kernels(int count) {
  std::vector<CampaignKernel> kernels;
  for (int i = 0; i < count; ++i) kernels.push_back({.name = "k" + std::to_string(i), .op = "attention"});
  return kernels;
}

TEST(Assignments, CoverEveryKernelOnceWhereThereAreNoMoreEnginesThanKernels) {
  for (unsigned jobs = 1; jobs <= 7; ++jobs) {
    std::multiset<std::string> seen;
    const auto all = assignments(attention_kernels(7), jobs);
    EXPECT_EQ(all.size(), jobs);
    for (const Assignment& a : all) seen.insert(a.kernels.begin(), a.kernels.end());
    EXPECT_EQ(seen.size(), 7U) << jobs;
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 7U) << jobs;
  }
}

TEST(Assignments, PutSeveralEnginesOnAKernelWhereThereAreMoreEngines) {
  const auto all = assignments(attention_kernels(2), 5);
  std::map<std::string, int> engines;
  for (const Assignment& a : all) {
    ASSERT_EQ(a.kernels.size(), 1U);
    ++engines[a.kernels[0]];
  }
  EXPECT_EQ(engines, (std::map<std::string, int>{{"k0", 3}, {"k1", 2}}));
}

TEST(Assignments, KeepOpsProgramsPluginsAndDevicesApart) {
  std::vector<CampaignKernel> kernels = attention_kernels(3);
  kernels.push_back({.name = "s", .op = "softmax"});
  kernels.push_back({.name = "p", .op = "attention", .plugin = "/x.so"});
  kernels.push_back({.name = "d", .op = "attention", .device = true});
  kernels.push_back({.name = "m", .op = "attention", .mutant = true});
  const auto all = assignments(kernels, 2);
  ASSERT_EQ(all.size(), 5U);
  std::set<std::string> labels;
  for (const Assignment& a : all) labels.insert(a.label);
  EXPECT_EQ(labels,
            (std::set<std::string>{"attention 1/4", "attention 2/4", "attention 3/4", "attention 4/4", "softmax 1/1"}));
  EXPECT_EQ(all[2].plugin, "/x.so");
  EXPECT_TRUE(all[3].device);
  EXPECT_TRUE(all[4].mutant);
  const auto six = assignments(kernels, 6);
  EXPECT_EQ(std::count_if(six.begin(), six.end(),
                          [](const Assignment& a) { return a.kernels.size() < 3 && a.kernels[0][0] == 'k'; }),
            2);
}

}  // namespace
}  // namespace assay

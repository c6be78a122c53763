// The parser of compute-sanitizer's text, on what version 2025.3.1 wrote on an H200.
#include "fuzz/sanitizer_log.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr const char* kMemcheck = R"(========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at add_one(float *, const float *, int, int)+0xf0 in proto.cu:6
=========     by thread (100,0,0) in block (0,0,0)
=========     Access to 0x7f939ea00390 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f939ea00200 of size 400 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8cd9] in proto
========= 
========= Invalid __global__ write of size 4 bytes
=========     at add_one(float *, const float *, int, int)+0xf0 in proto.cu:6
=========     by thread (100,0,0) in block (1,0,0)
=========     Access to 0x7f939ea00394 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f939ea00200 of size 400 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8cd9] in proto
========= 
========= ERROR SUMMARY: 2 errors
)";

constexpr const char* kInitcheck = R"(========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at accumulate(float *, float *)+0x60 in proto.cu:7
=========     by thread (32,0,0) in block (0,0,0)
=========     Address 0x7fddeaa00480
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8d64] in proto
========= 
========= ERROR SUMMARY: 200 errors
========= ERROR SUMMARY: 100 errors were not printed. Use --print-limit option to adjust the number of printed errors
)";

constexpr const char* kRacecheck = R"(========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at race(float *)+0x130 in proto.cu:8
=========     and Read access at race(float *)+0xc0 in proto.cu:8 [256 hazards]
=========     and Read access at race(float *)+0xf0 in proto.cu:8 [64 hazards]
========= 
========= Warning: Race reported between Write access at race(float *)+0x200 in proto.cu:8
=========     and Read access at race(float *)+0x210 in proto.cu:8 [4 hazards]
========= 
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
)";

constexpr const char* kSynccheck = R"(========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at diverge(float *)+0x80 in proto.cu:9
=========     by thread (40,0,0) in block (0,0,0)
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8e53] in proto
========= 
========= Target application returned an error
========= ERROR SUMMARY: 56 errors
)";

TEST(SanitizerLog, OneFindingPerKindAndPlaceWithItsFirstReport) {
  const auto findings = sanitizer_findings(kMemcheck);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].reports, 2);
  EXPECT_EQ(findings[0].place,
            "Invalid __global__ write of size 4 bytes at add_one(float *, const float *, int, int)+0xf0 in proto.cu:6");
  EXPECT_EQ(findings[0].text,
            findings[0].place +
                ", by thread (100,0,0) in block (0,0,0), Access to 0x7f939ea00390 is out of bounds, and "
                "is 1 bytes after the nearest allocation at 0x7f939ea00200 of size 400 bytes");
}

TEST(SanitizerLog, ReadsInitcheckAndSynccheck) {
  const auto unset = sanitizer_findings(kInitcheck);
  ASSERT_EQ(unset.size(), 1U);
  EXPECT_EQ(
      unset[0].text,
      "Uninitialized __global__ memory read of size 4 bytes at accumulate(float *, float *)+0x60 in proto.cu:7, by "
      "thread (32,0,0) in block (0,0,0), Address 0x7fddeaa00480");
  const auto barrier = sanitizer_findings(kSynccheck);
  ASSERT_EQ(barrier.size(), 1U);
  EXPECT_EQ(barrier[0].text,
            "Barrier error detected. Divergent thread(s) in warp. at diverge(float *)+0x80 in proto.cu:9, by thread "
            "(40,0,0) in block (0,0,0)");
}

TEST(SanitizerLog, ReadsRacesAndTheirWarnings) {
  const auto races = sanitizer_findings(kRacecheck);
  ASSERT_EQ(races.size(), 2U);
  EXPECT_EQ(
      races[0].text,
      "Error: Race reported between Write access at race(float *)+0x130 in proto.cu:8 and Read access at race(float "
      "*)+0xc0 in proto.cu:8 [256 hazards], and Read access at race(float *)+0xf0 in proto.cu:8 [64 hazards]");
  EXPECT_EQ(races[1].text.find("Warning: Race reported between"), 0U);
}

TEST(SanitizerLog, ASilentToolAndTheProgramsOwnWordsAreNoFindings) {
  EXPECT_TRUE(sanitizer_findings("").empty());
  EXPECT_TRUE(
      sanitizer_findings("========= COMPUTE-SANITIZER\na program's line\n========= ERROR SUMMARY: 0 errors\n").empty());
  EXPECT_TRUE(
      sanitizer_findings("========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed").empty());
}

TEST(SanitizerLog, ALogThatBreaksOffKeepsWhatStandsThere) {
  const auto findings = sanitizer_findings("========= COMPUTE-SANITIZER\n========= Invalid __shared__ read of size 2");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text, "Invalid __shared__ read of size 2");
}

}  // namespace
}  // namespace assay

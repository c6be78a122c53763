// The fixed mix is what its file says: half small, a quarter with two tiles and a tail, a tenth split or paged.
#include "fuzz/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "oracle/error.h"
#include "oracle/ops/attention/attention.h"

namespace assay {
namespace {

TEST(Mix, HasTheSharesThatItsFileClaims) {
  const std::vector<MixCase> mix = read_mix("bench/fuzz_mix.txt");
  std::size_t two_tiles_and_tail = 0, split_or_paged = 0;
  for (const MixCase& item : mix) {
    const AttentionParams p = attention_params(item.c.params);
    two_tiles_and_tail += p.len_kv > 128 && p.len_kv < 192;
    split_or_paged += item.kernel.starts_with("split") || item.kernel.starts_with("paged");
  }
  EXPECT_GE(4 * two_tiles_and_tail, mix.size());
  EXPECT_GE(10 * split_or_paged, mix.size());
  const std::vector<MixCase> small = small_half(mix);
  EXPECT_LE(small.size(), mix.size() / 2);
  EXPECT_GE(small.size(), mix.size() / 3);
  const auto largest = std::max_element(small.begin(), small.end(), [](const auto& a, const auto& b) { return a.scores < b.scores; });
  EXPECT_LE(std::count_if(mix.begin(), mix.end(), [&](const MixCase& item) { return item.scores <= largest->scores; }),
            static_cast<std::ptrdiff_t>(small.size()));
}

TEST(Mix, IsVerifiedWithoutAFailureAndCounted) {
  const std::vector<MixCase> mix = read_mix("bench/fuzz_mix.txt");
  const Throughput t = verify_mix(mix, in_process_runner, 1, Level::kT1, 0, 1);
  EXPECT_EQ(t.cases, static_cast<std::int64_t>(mix.size()));
  EXPECT_EQ(t.left_out, 0);
  std::int64_t scores = 0;
  for (const MixCase& item : mix) scores += item.scores;
  EXPECT_EQ(t.scores, scores);
  EXPECT_GT(t.seconds, t.kernel_seconds + t.oracle_seconds);
}

TEST(Mix, IsVerifiedOnceByThreadsTogether) {
  const std::vector<MixCase> mix = small_half(read_mix("bench/fuzz_mix.txt"));
  const Throughput t = verify_mix(mix, in_process_runner, 3, Level::kT1, 0, 1);
  EXPECT_GE(t.cases, static_cast<std::int64_t>(mix.size()));
  EXPECT_LE(t.cases, static_cast<std::int64_t>(mix.size()) + 2);  // begun before the end was seen
}

TEST(Mix, NamesFileAndLineOfWhatItCannotRead) {
  const std::string file = testing::TempDir() + "mix.txt";
  std::ofstream(file) << "# a mix\nfa2_bf16 attention sq=0x\n";
  try {
    read_mix(file);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("mix.txt:2: "), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay

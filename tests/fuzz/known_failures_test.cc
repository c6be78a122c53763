// The ledger of known failures: what it knows, what it refuses, and that an entry which passes again is seen.
#include "fuzz/known_failures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "kernels/worker.h"
#include "oracle/error.h"

namespace assay {
namespace {

const std::string kFails = "attention skv=65 d=16 v=ones";
const std::string kEntry = "fa2_bf16_split_lost attention-dropped_keys-tail-gross issue=#7 case=" + kFails;

class Ledger : public ::testing::Test {
 protected:
  void TearDown() override { unlink(file_.c_str()); }
  KnownFailures read(const std::string& text) {
    std::ofstream(file_) << text;
    return KnownFailures(file_);
  }
  std::string error_of(const std::string& text) {
    try {
      read(text);
      return "no error";
    } catch (const InputError& error) {
      return error.what();
    }
  }
  std::string file_ = "/tmp/assay_ledger_" + std::to_string(getpid());
};

TEST_F(Ledger, KnowsKernelAndSignatureTogether) {
  const KnownFailures ledger = read("# why\n\n  " + kEntry + "\n");
  ASSERT_EQ(ledger.entries().size(), 1U);
  EXPECT_EQ(ledger.entries()[0].issue, 7);
  EXPECT_EQ(ledger.entries()[0].where, file_ + ":3");
  const Signature signature{"attention", "dropped_keys", "tail", "gross"};
  EXPECT_EQ(ledger.find("fa2_bf16_split_lost", signature), &ledger.entries()[0]);
  EXPECT_EQ(ledger.find("fa2_bf16", signature), nullptr);
  EXPECT_EQ(ledger.find("fa2_bf16_split_lost", {"attention", "dropped_keys", "part", "gross"}), nullptr);
  EXPECT_EQ(KnownFailures().find("fa2_bf16", signature), nullptr);
}

TEST_F(Ledger, RefusesAMalformedLineNamingFileLineFieldAndValue) {
  const std::string rest = " case=" + kFails;
  EXPECT_EQ(error_of("\nk attention-a-b-c" + rest),
            file_ + ":2: issue 'case=attention': must be issue=# and the number of the issue that is open for it");
  EXPECT_NE(error_of("k attention-a-b-c issue=7" + rest).find(":1: issue 'issue=7': must"), std::string::npos);
  EXPECT_NE(error_of("k attention-a-b-c issue=#0" + rest).find(":1: issue 'issue=#0': must"), std::string::npos);
  EXPECT_NE(error_of("k attention-a issue=#7" + rest).find(":1: signature 'attention-a': must"), std::string::npos);
  EXPECT_NE(error_of("k softmax-a-b-c issue=#7" + rest).find(":1: signature 'softmax-a-b-c': is of another op"),
            std::string::npos);
  EXPECT_NE(error_of("k attention-a-b-c issue=#7 attention").find(":1: case 'attention': must"), std::string::npos);
  EXPECT_NE(error_of("k attention-a-b-c issue=#7 case=attention sq=none").find(":1: case: attention sq=none"),
            std::string::npos);
  EXPECT_NE(error_of(kEntry + "\n" + kEntry)
                .find(":2: signature 'attention-dropped_keys-tail-gross': "
                      "fa2_bf16_split_lost has it already, at " +
                      file_ + ":1"),
            std::string::npos);
  EXPECT_THROW(KnownFailures("/no/such/file"), EnvironmentError);
}

TEST_F(Ledger, SeesEntriesThatPassAgainOrFailOtherwise) {
  const std::unique_ptr<Runner> mutants =
      worker_runner({.command = {ASSAY_MUTANTS_PROGRAM, "worker"}, .deadline = std::chrono::minutes(1)});
  const std::string line = "attention sq=3 skv=37 d=16 dtype=bf16 q=normal@1 k=normal@2 v=normal@3";
  const std::string mutant = "fa2_bf16_last_key_dropped";
  const Signature signature = signature_of(parse_case(line), run_case(parse_case(line), mutant, *mutants));
  const std::string good = signature.slug() + " issue=#1 case=" + line;
  const KnownFailures ledger = read(mutant + " " + good + "\nfa2_bf16 " + good + "\n" + mutant +
                                    " attention-value_scale-part-gross issue=#2 case=" + line + "\nno_such_kernel " +
                                    good + "\nfa2_fp16 " + good + "\n");
  const std::vector<LedgerCheck> checks = check_ledger(ledger, *mutants);
  using State = LedgerCheck::State;
  ASSERT_EQ(checks.size(), 5U);
  EXPECT_EQ(checks[0].state, State::kFails) << checks[0].text;
  EXPECT_EQ(checks[1].state, State::kPasses) << checks[1].text;
  EXPECT_EQ(checks[2].state, State::kOther) << checks[2].text;
  EXPECT_EQ(checks[3].state, State::kNotAsked) << checks[3].text;
  EXPECT_EQ(checks[4].state, State::kNotAsked) << checks[4].text;
  EXPECT_NE(checks[1].text.find(file_ + ":2: fa2_bf16"), std::string::npos) << checks[1].text;
  EXPECT_NE(checks[1].text.find("issue #1"), std::string::npos);
  EXPECT_FALSE(is_unexpected(checks[0]));
  EXPECT_TRUE(is_unexpected(checks[1]));
  EXPECT_TRUE(is_unexpected(checks[2]));
  EXPECT_FALSE(is_unexpected(checks[3]));
}

}  // namespace
}  // namespace assay

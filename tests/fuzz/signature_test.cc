// Signatures: what they are made of, and that the same fault on other cases gets the same one.
#include "fuzz/signature.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/fuzz/failures.h"

namespace assay {
namespace {

constexpr const char* kPlain = "attention skv=200 d=16";

Signature of(const Record& record) { return signature_of(parse_case(record.case_line), record); }

TEST(Signature, SaysOpModePlaceAndBand) {
  const Signature s = of(failing(kPlain, "dropped_keys", 199, 100));
  EXPECT_EQ(s.op, "attention");
  EXPECT_EQ(s.mode, "dropped_keys");
  EXPECT_EQ(s.slug(), "attention-dropped_keys-tail-gross");
}

TEST(Signature, NeverDependsOnTheKernelsName) {
  EXPECT_EQ(of(failing(kPlain, "dropped_keys", 199, 100, "one")),
            of(failing(kPlain, "dropped_keys", 199, 100, "other")));
}

TEST(Signature, PlacesTheSimplestFailingRowInItsTiles) {
  const auto locus = [](std::int32_t first, std::int32_t last) {
    Record record = failing(kPlain, "dropped_keys", last, 100);
    record.failed_rows[0].first_key = first;
    return of(record).locus;
  };
  EXPECT_EQ(locus(0, 10), "part");
  EXPECT_EQ(locus(0, 63), "full");
  EXPECT_EQ(locus(0, 64), "tail");
  EXPECT_EQ(locus(0, 127), "tiles");
  EXPECT_EQ(locus(70, 100), "part") << "tiles in front of the window do not count";
  Record record = failing(kPlain, "dropped_keys", 150, 100);
  record.failed_rows.push_back({.keys = 5, .first_key = 0, .last_key = 4});
  EXPECT_EQ(of(record).locus, "part");
  record.failed_rows.push_back({.keys = 0});
  EXPECT_EQ(of(record).locus, "part") << "a row without keys says nothing where others fail";
  record.failed_rows = {{.keys = 0}};
  EXPECT_EQ(of(record).locus, "empty");
  record.declared.tile_n = 0;
  record.failed_rows = {{.keys = 1, .first_key = 0, .last_key = 0}};
  EXPECT_EQ(of(record).locus, "key");
  record.failed_rows = {{.keys = 7, .first_key = 0, .last_key = 6}};
  EXPECT_EQ(of(record).locus, "keys");
}

TEST(Signature, NamesSplitsPagesAndMasksOfTheCase) {
  Record record = failing("attention sq=5 skv=200 d=16 mask=causal kv=nhd page=16", "dropped_keys", 9, 100);
  EXPECT_EQ(of(record).locus, "part+masked");
  record.failed_rows[0].last_key = 16;
  record.declared.splits = 2;
  EXPECT_EQ(of(record).locus, "part+splits+pages+masked");
}

TEST(Signature, BandsTheWorstErrorByItsBound) {
  EXPECT_EQ(of(failing(kPlain, "value_scale", 3, 2)).band, "slight");
  EXPECT_EQ(of(failing(kPlain, "value_scale", 3, 1e6)).band, "gross");
  Record record = failing(kPlain, "value_scale", 3, std::numeric_limits<double>::infinity());
  EXPECT_EQ(of(record).band, "nonfinite");
}

TEST(Signature, NamesWhatIsWrongWhereNoModeDoes) {
  Record record = failing(kPlain, "", 3, 100);
  record.verdict.kind = CaseVerdict::kUnclassified;
  ElementReport& worst = record.measurement.outputs[0].worst;
  EXPECT_EQ(of(record).mode, "unclassified_magnitude");
  worst.value = -1;
  EXPECT_EQ(of(record).mode, "unclassified_sign");
  worst.value = 0;
  EXPECT_EQ(of(record).mode, "unclassified_zero");
  worst.value = std::numeric_limits<double>::infinity();
  EXPECT_EQ(of(record).mode, "unclassified_inf");
  worst.value = std::nan("");
  EXPECT_EQ(of(record).mode, "unclassified_nan");
  record.measurement.outputs[0].canary = 1;
  EXPECT_EQ(of(record).mode, "unclassified_unwritten");
}

TEST(Signature, NamesRunsWithoutOutputsAndBrokenPromises) {
  Record record;
  record.case_line = kPlain;
  record.verdict.kind = CaseVerdict::kCrashed;
  EXPECT_EQ(of(record).slug(), "attention-crash-call-none");
  record.verdict.kind = CaseVerdict::kHung;
  EXPECT_EQ(of(record).mode, "hang");
  record.verdict = {.kind = CaseVerdict::kUnclassified,
                    .level = "invariant",
                    .mode = {},
                    .evidence = "the kernel changed input q; wrote outside output o",
                    .reason = {}};
  EXPECT_EQ(of(record).mode, "wrote_outside");
  record.verdict.evidence = "the kernel changed input q";
  EXPECT_EQ(of(record).mode, "changed_input");
  record.verdict.evidence = "a race, or memory nobody wrote: rerun 1 in a fresh process wrote other bits: ...";
  EXPECT_EQ(of(record).mode, "not_repeatable");
  EXPECT_TRUE(is_failure(record));
  record.verdict.kind = CaseVerdict::kOutOfRange;
  EXPECT_FALSE(is_failure(record));
}

}  // namespace
}  // namespace assay

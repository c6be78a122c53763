// Tests of the record's JSON form, totals and exit codes.
#include "reports/record.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "oracle/arithmetic_json.h"
#include "oracle/error.h"
#include "tests/reports/example.h"

namespace assay {
namespace {

nlohmann::json through_text(const nlohmann::json& document) { return nlohmann::json::parse(json_text(document)); }

std::string error_of(const nlohmann::json& document) {
  try {
    records_from_json(document, "result.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Record, SurvivesTheWayThroughJsonText) {
  const std::vector<Record> records = one_of_each();
  const nlohmann::json document = to_json(records, {{"date", "2025-01-31T12:00:00Z"}});
  const std::vector<Record> back = records_from_json(through_text(document), "result.json");
  EXPECT_EQ(to_json(back, document["environment"]), document);
  ASSERT_EQ(back.size(), records.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].declared, records[i].declared);
    EXPECT_EQ(back[i].verdict.kind, records[i].verdict.kind);
    EXPECT_EQ(back[i].verdict.evidence, records[i].verdict.evidence);
    EXPECT_EQ(back[i].verdict.rivals, records[i].verdict.rivals);
    ASSERT_EQ(back[i].verdict.estimate.has_value(), records[i].verdict.estimate.has_value());
    if (const std::optional<Estimate>& estimate = records[i].verdict.estimate) {
      EXPECT_EQ(back[i].verdict.estimate->parameter, estimate->parameter);
      EXPECT_EQ(back[i].verdict.estimate->value, estimate->value);
      EXPECT_EQ(back[i].verdict.estimate->standard_error, estimate->standard_error);
      EXPECT_EQ(back[i].verdict.estimate->budget, estimate->budget);
    }
    EXPECT_EQ(back[i].case_line, records[i].case_line);
    EXPECT_EQ(back[i].variant, records[i].variant);
    EXPECT_EQ(back[i].device, records[i].device);
    EXPECT_EQ(back[i].cells, records[i].cells);
    EXPECT_EQ(back[i].measurement.outputs.size(), records[i].measurement.outputs.size());
  }
}

TEST(Record, KeepsEveryNumberToTheLastBit) {
  const Record record = example_record(CaseVerdict::kFinding);
  const Record back = records_from_json(through_text(to_json(std::vector{record}, {})), "f").at(0);
  const OutputMeasure& o = back.measurement.outputs.at(0);
  EXPECT_EQ(o.max_error, 0.1);
  EXPECT_EQ(o.max_ulp_error, 1.0 / 3.0);
  EXPECT_EQ(o.median_tau, 5e-324);
  EXPECT_EQ(o.worst.code, 0x3f80U);
  EXPECT_EQ(o.worst.element, 17);
  EXPECT_TRUE(o.worst.rejected);
}

TEST(Record, ElementsAreWrittenFieldByField) {
  const nlohmann::json document = to_json(example_record(CaseVerdict::kFinding));
  const nlohmann::json expected = {{"element", 17},  {"at", 16},      {"row", 1},        {"code", "0x3f80"},
                                   {"value", 1.0},   {"mid", 0.875},  {"radius", 1e-17}, {"tau", 0.004},
                                   {"error", 0.125}, {"used", 31.25}, {"rejected", true}};
  EXPECT_EQ(document["measurement"]["outputs"][0]["worst"], expected);
}

TEST(Record, ArithmeticHasAStableNameForEveryValue) {
  Arithmetic a;
  a.subnormals = Subnormals::kFlushed;
  a.normalize = Normalize::kDivide;
  a.row_sum_of = RowSumOf::kRoundedP;
  a.row_sum_tree = RowSumTree::kQuad;
  a.max_policy = MaxPolicy::kGlobal;
  a.tile_order = TileOrder::kBackward;
  a.scale_form = ScaleForm::kOnScore;
  a.score_store = ScoreStore::kFp16;
  a.exponential = Exponential::kEx2Approx;
  a.qk = Accumulate::kBlockAmpere;
  a.pv = Accumulate::kFp32;
  a.tanh = Tanh::kApprox;
  a.p_offset = 8;
  a.promote_n = 64;
  a.lazy_threshold = 3;
  const nlohmann::json expected = {{"qk", "block_ampere"},
                                   {"pv", "fp32"},
                                   {"score_store", "fp16"},
                                   {"scale_form", "on_score"},
                                   {"exponential", "ex2_approx"},
                                   {"row_sum_of", "rounded_p"},
                                   {"row_sum_tree", "quad"},
                                   {"normalize", "divide"},
                                   {"subnormals", "flushed"},
                                   {"max_policy", "global"},
                                   {"tile_order", "backward"},
                                   {"tanh", "approx"},
                                   {"p_format", "unknown"},
                                   {"p_offset", 8},
                                   {"promote_n", 64},
                                   {"lazy_threshold", 3},
                                   {"tile_n", 0},
                                   {"splits", 0},
                                   {"split_at", 0}};
  EXPECT_EQ(to_json(a), expected);
}

/// A record judged at T1, with an inferred structure and a warning.
Record tiered_record() {
  Record record = example_record(CaseVerdict::kClean);
  record.bound_level = "T1";
  TierMeasure tier;
  tier.judged = 96;
  tier.rejected = 2;
  tier.bit_equal = 90;
  tier.median_tau = 1e-5;
  tier.median_tau_ulp = 0.125;
  tier.gain = -2e-5;
  tier.gain_error = 1e-6;
  tier.gain_budget = 3e-6;
  tier.worst = record.measurement.outputs[0].worst;
  record.measurement.outputs[0].tiers = {tier};
  record.measurement.outputs[0].median_tau_ulp = 2.5;
  record.inferred = Inference{.arithmetic = {.tile_n = 128}, .structure = "tiles of 128", .bit_equal = 0.994, .runner_up = 0.7,
                              .rounded_truth = 0.6};
  record.warnings = {"o is 1e-4 too large"};
  return record;
}

TEST(Record, TiersInferenceAndWarningsSurvive) {
  const Record record = tiered_record();
  const nlohmann::json document = through_text(to_json(std::vector{record}, {}));
  EXPECT_EQ(document["summary"]["warned"], 1);
  const Record back = records_from_json(document, "f").at(0);
  EXPECT_EQ(to_json(back), to_json(record));
  ASSERT_EQ(back.measurement.outputs[0].tiers.size(), 1U);
  EXPECT_EQ(back.measurement.outputs[0].tiers[0].gain, -2e-5);
  EXPECT_EQ(back.measurement.outputs[0].tiers[0].level, Level::kT1);
  EXPECT_EQ(back.inferred->arithmetic.tile_n, 128);
  EXPECT_EQ(back.warnings, record.warnings);
}

TEST(Record, DocumentsFromBeforeTheTiersAreRead) {
  nlohmann::json document = through_text(to_json(std::vector{example_record(CaseVerdict::kFinding)}, {}));
  for (nlohmann::json& output : document["records"][0]["measurement"]["outputs"]) output.erase("tiers"), output.erase("median_tau_ulp");
  for (const char* member : {"tanh", "p_offset", "promote_n", "lazy_threshold", "split_at"}) document["records"][0]["declared"].erase(member);
  const Record back = records_from_json(document, "f").at(0);
  EXPECT_EQ(back.declared, example_record(CaseVerdict::kFinding).declared);
  EXPECT_TRUE(back.measurement.outputs[0].tiers.empty());
}

TEST(Record, KeepsNumbersThatJsonCannotWrite) {
  const Record record = example_record(CaseVerdict::kClean);
  const nlohmann::json document = through_text(to_json(std::vector{record}, {}));
  EXPECT_EQ(document["records"][0]["measurement"]["outputs"][1]["worst"]["value"], "nan");
  const OutputMeasure lse = records_from_json(document, "f").at(0).measurement.outputs.at(1);
  EXPECT_EQ(lse.max_error, std::numeric_limits<double>::infinity());
  EXPECT_EQ(lse.worst.mid, -std::numeric_limits<double>::infinity());
  EXPECT_NE(lse.worst.value, lse.worst.value);
  EXPECT_EQ(lse.worst.code, 0xffc00000U);
}

TEST(Record, DoesNotWriteOneEntryPerRow) {
  Record record = example_record(CaseVerdict::kClean);
  record.measurement.outputs[0].rows.resize(1000);
  EXPECT_EQ(to_json(record), to_json(example_record(CaseVerdict::kClean)));
}

TEST(Record, WritesArithmeticByNameAndReadsEveryValueBack) {
  EXPECT_EQ(to_json(Arithmetic())["qk"], "unknown");
  EXPECT_EQ(to_json(example_record(CaseVerdict::kClean).declared)["qk"], "block_hopper");
  const std::string file = "f";
  for (int i = 0; i < 5; ++i) {
    Arithmetic a;
    a.qk = static_cast<Accumulate>(i % 4);
    a.pv = static_cast<Accumulate>((i + 3) % 4);
    a.score_store = static_cast<ScoreStore>(i % 4);
    a.scale_form = static_cast<ScaleForm>(i % 3);
    a.exponential = static_cast<Exponential>(i % 3);
    a.row_sum_of = static_cast<RowSumOf>((i + 1) % 3);
    a.row_sum_tree = static_cast<RowSumTree>((i + 2) % 3);
    a.normalize = static_cast<Normalize>(i % 4);
    a.subnormals = static_cast<Subnormals>((i + 1) % 3);
    a.max_policy = static_cast<MaxPolicy>(i);
    a.tile_order = static_cast<TileOrder>(i % 3);
    a.p_known = i % 2 == 1;
    a.p_format = a.p_known ? Format::kFp16 : Format::kFp32;
    a.tanh = static_cast<Tanh>((i + 1) % 3);
    a.p_offset = i;
    a.promote_n = 32 * i;
    a.lazy_threshold = 2 * i;
    a.tile_n = 16 * i;
    a.splits = i;
    a.split_at = i == 2 ? 70 : 0;
    const nlohmann::json written = to_json(a);
    EXPECT_EQ(arithmetic_from_json(JsonField(written, "", file)), a);
  }
  EXPECT_EQ(unknown_fields(Arithmetic()), 15);
  EXPECT_EQ(unknown_fields(example_record(CaseVerdict::kClean).declared), 10);
}

TEST(Record, TotalsInTheDocumentAreThoseOfTheRecords) {
  std::vector<Record> records = one_of_each();
  for (int i = 0; i < 3; ++i) records.push_back(example_record(CaseVerdict::kClean, "split_kv_fp16"));
  const nlohmann::json document = to_json(records, {});
  const nlohmann::json expected = {{"cases", 12},  {"clean", 4},        {"findings", 1},  {"unclassified", 1},
                                   {"vacuous", 1}, {"out_of_range", 1}, {"uncertain", 1}, {"skipped", 1},
                                   {"crashed", 1}, {"hung", 1},         {"warned", 0}};
  EXPECT_EQ(document["summary"], expected);
  std::int64_t by_kind = 0;
  for (const auto& [name, count] : document["summary"].items())
    if (name != "cases") by_kind += count.get<std::int64_t>();
  EXPECT_EQ(by_kind, static_cast<std::int64_t>(document["records"].size()));
  EXPECT_EQ(document["version"], kDocumentVersion);
}

TEST(Record, CoverageCountsDistinctLinesPerCell) {
  std::vector<Record> records = {example_record(CaseVerdict::kClean),
                                 example_record(CaseVerdict::kSkipped, "split_kv_fp16"),
                                 example_record(CaseVerdict::kClean)};
  records[2].case_line += " set=k[0,0,0,0]:nan";
  records[2].cells["mask"] = "none";
  const nlohmann::json coverage = to_json(records, {})["coverage"];
  EXPECT_EQ(coverage["distinct_cases"], 2);
  EXPECT_EQ(coverage["cells"]["recipe"]["normal"], (nlohmann::json{{"cases", 2}, {"records", 3}, {"clean", 2}}));
  EXPECT_EQ(coverage["cells"]["mask"]["causal"], (nlohmann::json{{"cases", 1}, {"records", 2}, {"clean", 1}}));
}

TEST(Record, ExitCodeIsOneForFailuresFiveForCrashesSixForNothingTested) {
  const auto code_of = [](std::vector<CaseVerdict> kinds) {
    std::vector<Record> records;
    for (const CaseVerdict kind : kinds) records.push_back(example_record(kind));
    return exit_code(summarize(records));
  };
  using enum CaseVerdict;
  EXPECT_EQ(code_of({}), 6);
  EXPECT_EQ(code_of({kClean}), 0);
  EXPECT_EQ(code_of({kFinding}), 1);
  EXPECT_EQ(code_of({kUnclassified}), 1);
  EXPECT_EQ(code_of({kCrashed}), 5);
  EXPECT_EQ(code_of({kHung}), 5);
  for (const CaseVerdict kind : {kOutOfRange, kVacuous, kUncertain, kSkipped}) {
    EXPECT_EQ(code_of({kind}), 6) << verdict_name(kind);
    EXPECT_EQ(code_of({kind, kClean}), 0) << verdict_name(kind);
    EXPECT_EQ(code_of({kind, kCrashed}), 5) << verdict_name(kind);
  }
  EXPECT_EQ(code_of({kClean, kFinding, kCrashed}), 1);
  EXPECT_EQ(code_of({kClean, kHung}), 5);
  EXPECT_EQ(code_of({kClean, kUnclassified, kHung, kSkipped}), 1);
}

TEST(Record, DocumentsOfTheFirstVersionCanBeRead) {
  nlohmann::json document = to_json(std::vector{example_record(CaseVerdict::kFinding)}, {});
  document["version"] = 1;
  document["records"][0]["verdict"].erase("estimate");
  document["records"][0]["verdict"].erase("rivals");
  const std::vector<Record> back = records_from_json(document, "old.json");
  EXPECT_FALSE(back[0].verdict.estimate);
  EXPECT_TRUE(back[0].verdict.rivals.empty());
  EXPECT_EQ(back[0].verdict.mode, "zero_rows");
}

TEST(Record, ReadingErrorsNameFileAndField) {
  const nlohmann::json good = to_json(std::vector{example_record(CaseVerdict::kFinding)}, {});
  EXPECT_EQ(error_of(good), "no error");
  const auto broken = [&](const std::function<void(nlohmann::json&)>& edit) {
    nlohmann::json document = good;
    edit(document);
    return error_of(document);
  };
  EXPECT_EQ(broken([](auto& d) { d["version"] = 99; }), "result.json: version: expected 1 to 2, got 99");
  EXPECT_EQ(broken([](auto& d) { d.erase("records"); }), "result.json: records: missing");
  EXPECT_EQ(broken([](auto& d) { d = nlohmann::json::array(); }),
            "result.json: document: expected an object, got array");
  EXPECT_EQ(broken([](auto& d) { d["records"][0]["kernel"] = 3; }),
            "result.json: records[0].kernel: expected a string, got 3");
  EXPECT_EQ(broken([](auto& d) { d["records"][0]["verdict"]["kind"] = "fine"; }),
            "result.json: records[0].verdict.kind: expected a case verdict, got \"fine\"");
  EXPECT_EQ(broken([](auto& d) { d["records"][0]["declared"]["split_at"] = 64; }),
            "result.json: records[0].declared.split_at: expected 0, or with 2 splits the position where the first ends, got 64");
  EXPECT_EQ(broken([](auto& d) { d["records"][0]["declared"]["normalize"] = "guess"; }),
            "result.json: records[0].declared.normalize: expected one of reciprocal, divide, every_step, unknown, got \"guess\"");
  EXPECT_EQ(
      broken([](auto& d) { d["records"][0]["measurement"]["outputs"][0]["worst"]["code"] = "0xzz"; }),
      "result.json: records[0].measurement.outputs[0].worst.code: expected 0x and at most 16 hex digits, got \"0xzz\"");
  EXPECT_EQ(broken([](auto& d) { d["records"][0]["measurement"]["outputs"][0]["worst"]["row"] = 1LL << 40; }),
            "result.json: records[0].measurement.outputs[0].worst.row: expected a 32-bit integer, got 1099511627776");
  EXPECT_EQ(broken([](auto& d) { d["records"][0]["measurement"]["rows"] = 18446744073709551615ULL; }),
            "result.json: records[0].measurement.rows: expected a 64-bit integer, got 18446744073709551615");
  EXPECT_EQ(
      broken([](auto& d) { d["records"][0]["oracle_seconds"] = "fast"; }),
      "result.json: records[0].oracle_seconds: expected a number or one of \"inf\", \"-inf\", \"nan\", got \"fast\"");
}

TEST(Record, TextOfAKernelThatIsNotUtf8StillGivesAValidDocument) {
  Record record = example_record(CaseVerdict::kCrashed);
  record.verdict.reason = "signal \xff\xfe";
  const Record back = records_from_json(through_text(to_json(std::vector{record}, {})), "f").at(0);
  EXPECT_EQ(back.verdict.reason, "signal \xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace assay

// Records to render: one of every verdict, with text that each format must escape.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "reports/record.h"

namespace assay {

inline constexpr CaseVerdict kAllVerdicts[] = {
    CaseVerdict::kClean,      CaseVerdict::kFinding, CaseVerdict::kUnclassified,
    CaseVerdict::kOutOfRange, CaseVerdict::kVacuous, CaseVerdict::kUncertain,
    CaseVerdict::kSkipped,    CaseVerdict::kCrashed, CaseVerdict::kHung};

inline Record example_record(CaseVerdict kind, const std::string& kernel = "fa2_bf16",
                             const std::string& suite = "edge") {
  Record record;
  record.suite = suite;
  record.kernel = kernel;
  record.case_line = "attention hq=2 sq=3 skv=5 d=16 dtype=bf16 mask=causal q=normal@7 k=normal@8 v=normal@9";
  record.variant = "tile 64x64";
  record.device = "a device";
  record.declared.qk = Accumulate::kBlockHopper;
  record.declared.scale_form = ScaleForm::kOnScore;
  record.declared.p_known = true;
  record.declared.p_format = Format::kBf16;
  record.declared.max_policy = MaxPolicy::kGlobal;
  record.declared.tile_n = 64;
  record.verdict.kind = kind;
  if (kind == CaseVerdict::kFinding) {
    record.verdict.level = "fail_t0";
    record.verdict.mode = "zero_rows";
    record.verdict.evidence = "3 of 6 rows are exactly 0 & the truth is not";
    record.verdict.estimate = Estimate{"threshold", -1.0 / 3.0, 0.125, 0.25};
    record.verdict.rivals = {"other_zero_rows"};
  } else if (kind == CaseVerdict::kUnclassified) {
    record.verdict.level = "fail_t0";
  } else if (kind != CaseVerdict::kClean) {
    record.verdict.reason = "head dim 16 < 32 is \"too small\"";
  }
  const bool judged =
      kind == CaseVerdict::kClean || kind == CaseVerdict::kFinding || kind == CaseVerdict::kUnclassified;
  if (judged) {
    OutputMeasure o;
    o.role = "o";
    o.judged = 96;
    o.rejected = kind == CaseVerdict::kClean ? 0 : 48;
    o.bit_equal = 40;
    o.max_error = 0.1;
    o.max_ulp_error = 1.0 / 3.0;
    o.median_tau = 5e-324;
    o.worst = {17,
               16,
               1,
               0x3f80,
               1.0,
               0.875,
               1e-17,
               0.004,
               0.125,
               kind == CaseVerdict::kClean ? 0.5 : 31.25,
               kind != CaseVerdict::kClean};
    OutputMeasure lse = o;
    lse.role = "lse";
    lse.max_error = std::numeric_limits<double>::infinity();
    lse.worst = {3,
                 3,
                 0,
                 0xffc00000,
                 std::numeric_limits<double>::quiet_NaN(),
                 -std::numeric_limits<double>::infinity(),
                 0,
                 std::numeric_limits<double>::infinity(),
                 std::numeric_limits<double>::quiet_NaN(),
                 0.25,
                 false};
    record.measurement.outputs = {o, lse};
    record.measurement.rows = 6;
    record.measurement.rows_empty = 1;
    record.known_wrong = {
        {"zero", true, true}, {"last key lost", true, kind == CaseVerdict::kClean}, {"shuffled", false, false}};
    record.assumptions = {"ex2.approx is within 2 ulp"};
  }
  record.kernel_seconds = 0.001;
  record.oracle_seconds = 0.1;
  record.cells = {{"recipe", "normal"}, {"mask", "causal"}};
  return record;
}

inline std::vector<Record> one_of_each() {
  std::vector<Record> records;
  for (const CaseVerdict kind : kAllVerdicts) records.push_back(example_record(kind));
  return records;
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace assay

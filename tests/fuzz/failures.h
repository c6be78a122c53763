// Failing records made by hand, for tests of what is done with findings.
#pragma once

#include <string>

#include "reports/record.h"

namespace assay {

/// A finding of `mode` on that case, at one row that sees keys 0 to last_key, `used` bounds off.
inline Record failing(const std::string& case_line, const std::string& mode, std::int32_t last_key, double used,
                      const std::string& kernel = "fa2_bf16") {
  Record record;
  record.case_line = case_line;
  record.kernel = kernel;
  record.declared.tile_n = 64;
  record.declared.splits = 1;
  record.verdict = {.kind = CaseVerdict::kFinding, .level = "fail_t0", .mode = mode, .evidence = "seen", .reason = {}};
  record.failed_rows.push_back({.keys = last_key + 1, .first_key = 0, .last_key = last_key});
  OutputMeasure o;
  o.role = "o";
  o.judged = o.rejected = 1;
  o.worst = {.element = 0,
             .at = 0,
             .row = 0,
             .code = 0x3f80,
             .value = 1,
             .mid = 0.5,
             .radius = 0,
             .tau = 0.5 / used,
             .error = 0.5,
             .used = used,
             .rejected = true};
  record.measurement.outputs.push_back(o);
  record.measurement.rows = 1;
  return record;
}

}  // namespace assay

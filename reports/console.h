// The report for a terminal: table, findings with a line to reproduce each, everything that was not judged with its
// reason.
#pragma once

#include <string>
#include <vector>

#include "reports/record.h"

namespace assay {

/// Plain text, no colour, ends with a newline. The verdict is the first line. Of each group of failures the first
/// `examples` records are shown (the whole list is in the JSON); counts are always complete.
std::string console_report(const std::vector<Record>& records, int examples = 2);

}  // namespace assay

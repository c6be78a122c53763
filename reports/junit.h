// The report as JUnit XML, for CI systems.
#pragma once

#include <string>
#include <vector>

#include "reports/record.h"

namespace assay {

/// One <testsuite> per kernel and suite, one <testcase> per record. Findings and unclassified failures are <failure>,
/// crashes and hangs <error>; vacuous, out of range, uncertain and skipped are <skipped> with verdict and reason.
/// Kernel, case and part of the tolerance used stand in the name, since some readers ignore every other attribute.
std::string junit_report(const std::vector<Record>& records, const nlohmann::json& environment);

/// Text for XML content and attributes: markup escaped, control characters and bytes that are not UTF-8 become U+FFFD.
std::string xml_text(const std::string& text);

}  // namespace assay

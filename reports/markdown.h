// The report for a pull request or a CI summary, in Markdown.
#pragma once

#include <string>
#include <vector>

#include "reports/record.h"

namespace assay {

/// GitHub-flavoured Markdown; the verdict is the first line, then worst cases with a line to reproduce each, the table,
/// everything not judged with its reason, detection, assumptions, environment.
std::string markdown_report(const std::vector<Record>& records, const nlohmann::json& environment);

/// Text for a table cell: pipes, line breaks and HTML brackets escaped.
std::string markdown_cell(const std::string& text);

/// Lines of a table: one with the cells escaped; one with the line below it that makes it the header.
void append_row(std::string& out, const std::vector<std::string>& cells);
void append_header(std::string& out, const std::vector<std::string>& cells);

}  // namespace assay

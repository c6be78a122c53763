// The signature of one failing record, from its verdict, its failed rows and its worst element.
#include "fuzz/signature.h"

#include <algorithm>
#include <cmath>

#include "oracle/op.h"
#include "reports/view.h"

namespace assay {
namespace {

constexpr double kSlight = 16;  // bounds

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// What is wrong with the worst element of a failure that no mode explains.
std::string wrong_class(const Record& record) {
  for (const OutputMeasure& output : record.measurement.outputs)
    if (output.canary > 0) return "unwritten";
  const OutputMeasure* output = worst_output(record);
  if (output == nullptr) return "magnitude";
  const ElementReport e = worst_element(*output);
  if (std::isnan(e.value)) return "nan";
  if (std::isinf(e.value)) return "inf";
  if (e.value == 0) return "zero";
  return e.value * e.mid < 0 ? "sign" : "magnitude";
}

/// What a kernel did that none may do whatever it computes.
std::string broken_promise(const std::string& evidence) {
  if (contains(evidence, "wrote outside")) return "wrote_outside";
  if (contains(evidence, "changed")) return "changed_input";
  return "not_repeatable";
}

std::string mode_of(const Record& record) {
  const Verdict& v = record.verdict;
  if (v.kind == CaseVerdict::kCrashed) return "crash";
  if (v.kind == CaseVerdict::kHung) return "hang";
  if (!v.mode.empty()) return v.mode;
  return v.level == "invariant" ? broken_promise(v.evidence) : "unclassified_" + wrong_class(record);
}

std::string band_of(const Record& record) {
  const OutputMeasure* output = worst_output(record);
  if (record.failed_rows.empty() || output == nullptr) return "none";
  const ElementReport e = worst_element(*output);
  if (!std::isfinite(e.value) || !std::isfinite(e.used)) return "nonfinite";
  return e.used < kSlight ? "slight" : "gross";
}

/// Where a row's keys end in the tiles: simpler places are smaller.
enum class Place : std::uint8_t { kPart, kFull, kTail, kTiles };
constexpr std::array<std::string_view, 4> kPlaces{"part", "full", "tail", "tiles"};

Place place_of(const RowFacts& row, std::int64_t tile) {
  const std::int64_t first = row.first_key / tile, end = row.last_key + 1;
  const bool one = row.last_key / tile == first, whole = end % tile == 0;
  return one ? (whole ? Place::kFull : Place::kPart) : (whole ? Place::kTiles : Place::kTail);
}

/// Slots of a page, or 0 if nothing of the case lies on pages.
std::int64_t page_slots(const std::vector<InputSpec>& specs) {
  for (const InputSpec& spec : specs)
    if (const std::size_t axis = spec.axes.find('o'); !spec.pages.empty() && axis != std::string::npos)
      return spec.layout.shape[axis];
  return 0;
}

std::string locus_of(const Case& c, const Record& record) {
  std::vector<RowFacts> rows = record.failed_rows;
  if (rows.empty()) return "call";
  std::erase_if(rows, [](const RowFacts& row) { return row.keys == 0; });
  if (rows.empty()) return "empty";
  const std::int64_t tile = record.declared.tile_n;
  const auto order = [&](const RowFacts& row) {
    return std::pair(tile > 0 ? static_cast<int>(place_of(row, tile)) : 0, row.keys);
  };
  const RowFacts row = *std::min_element(rows.begin(), rows.end(),
                                         [&](const RowFacts& a, const RowFacts& b) { return order(a) < order(b); });
  std::string locus = tile > 0        ? std::string(kPlaces[static_cast<std::size_t>(place_of(row, tile))])
                      : row.keys == 1 ? "key"
                                      : "keys";
  const Op& op = op_named(c.op);
  if (record.declared.splits > 1) locus += "+splits";
  if (const std::int64_t page = page_slots(op.inputs(c.params)); page > 0 && row.last_key >= page) locus += "+pages";
  const auto cells = op.cells(c.params);
  if (const auto mask = cells.find("mask"); mask != cells.end() && mask->second != "none") locus += "+masked";
  return locus;
}

}  // namespace

std::string Signature::slug() const { return op + "-" + mode + "-" + locus + "-" + band; }

bool is_failure(const Record& record) {
  switch (record.verdict.kind) {
    case CaseVerdict::kFinding:
    case CaseVerdict::kUnclassified:
    case CaseVerdict::kCrashed:
    case CaseVerdict::kHung: return true;
    default: return false;
  }
}

Signature signature_of(const Case& c, const Record& record) {
  return {.op = c.op, .mode = mode_of(record), .locus = locus_of(c, record), .band = band_of(record)};
}

}  // namespace assay

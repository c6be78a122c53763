// `assay tolerance` for a terminal: the bound by term, the detection floors, and another tolerance beside them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/tolerance.h"

namespace assay {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "-";
  return value == 0 || (std::abs(value) >= 0.01 && std::abs(value) < 1e4) ? fmt::format("{:.3g}", value)
                                                                          : fmt::format("{:.2e}", value);
}

std::string percent(double share) {
  if (std::isnan(share)) return "-";
  return share != 0 && share < 0.0005 ? "< 0.1 %" : fmt::format("{:.1f} %", 100 * share);
}

std::string place(const OutputReport& output, std::int64_t at) {
  if (at < 0) return "";
  const std::vector<std::int64_t> index = index_of(output.layout, output.element[static_cast<std::size_t>(at)]);
  return fmt::format("[{}]", fmt::join(index, ","));
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

void append_spread(std::string& out, const OutputReport& output, std::string_view name, const Spread& s,
                   const std::string& share) {
  append_line(out, fmt::format("    {:<13}{:>9}  {:>9}   {:<9} {:<17}  {:<9} {}", name, number(s.median), share,
                               number(s.min), place(output, s.at_min), number(s.max), place(output, s.at_max)));
}

void append_output(std::string& out, const OutputReport& output) {
  out += fmt::format("\n{}: {}, {} of {} judged elements are bounded numbers, median |{}| {}\n", output.layout.role,
                     info(output.layout.format).name, output.levels.front().tau.count, output.element.size(),
                     output.layout.role, number(output.magnitude.median));
  if (output.levels.front().tau.count == 0) return;
  append_line(out,
              fmt::format("    {:<13}{:>9}  {:>9}   {:<27}  {}", "", "median", "of tau", "smallest at", "largest at"));
  const auto append_term = [&](const TermReport& term) {
    if (term.size.max > 0) append_spread(out, output, term.name, term.size, percent(term.share));
  };
  for (std::size_t i = 0; i + 1 < output.terms.size(); ++i) append_term(output.terms[i]);
  for (const LevelReport& level : output.levels) append_spread(out, output, "tau, " + level.name, level.tau, "");
  if (!output.terms.empty()) append_term(output.terms.back());
  for (const LevelReport& level : output.levels) {
    out += fmt::format("  {} in ulps of {}: {} to {}, median {}", level.name, info(output.layout.format).name,
                       number(level.ulps.min), number(level.ulps.max), number(level.ulps.median));
    out += level.unbounded > 0 ? fmt::format("; says nothing about {} elements\n", level.unbounded) : "\n";
  }
  out += fmt::format("  the oracle's own radius: at most {}, {} of tau\n", number(output.radius.max),
                     number(output.radius_share));
}

std::string size_text(const Floor& floor) {
  switch (floor.state) {
    case Floor::State::kNotApplicable: return "-";
    case Floor::State::kNotVisible: return "not visible";
    case Floor::State::kVisible: break;
  }
  return number(floor.size);
}

/// Where the fault shows first, and from which share of the row's weight on.
void append_site(std::string& out, const OutputReport& output, std::string_view level, const Floor& floor) {
  std::string line = fmt::format("    {} first in {}{}", level, output.layout.role, place(output, floor.at));
  if (!floor.site.what.empty()) line += ": " + floor.site.what;
  if (!std::isnan(floor.site.weight))
    line += fmt::format(", weight {}; seen from weight {} on", number(floor.site.weight),
                        number(floor.site.weight * floor.size));
  append_line(out, line);
}

void append_floors(std::string& out, const ToleranceReport& report) {
  out += "\ndetection floors: the smallest fault that an otherwise perfect kernel cannot hide\n";
  const std::size_t strictest = report.levels.size() - (report.rule ? 2 : 1);  // the rule's level is the last
  std::size_t width = 4;
  for (const std::string& level : report.levels) width = std::max(width, level.size() + 2);
  std::string header = fmt::format("  {:<{}}", "", width + 2);
  for (const OutputReport& output : report.outputs) header += fmt::format("{:<13}", output.layout.role);
  append_line(out, header);
  for (const FaultFloors& fault : report.faults) {
    out += fmt::format("  {} (size: {})\n", fault.fault.name, fault.fault.unit);
    for (std::size_t level = 0; level < fault.floors.size(); ++level) {
      std::string line = fmt::format("    {:<{}}", report.levels[level], width);
      for (const Floor& floor : fault.floors[level]) line += fmt::format("{:<13}", size_text(floor));
      append_line(out, line);
    }
    for (std::size_t k = 0; k < report.outputs.size(); ++k)
      if (const Floor& floor = fault.floors[strictest][k]; floor.at >= 0)
        append_site(out, report.outputs[k], report.levels[strictest], floor);
  }
}

std::string times(double looseness) {
  return looseness >= 1 ? number(looseness) + " x looser" : number(1 / looseness) + " x tighter";
}

void append_rule(std::string& out, const ToleranceReport& report) {
  const RuleReport& rule = *report.rule;
  out += fmt::format("\natol {}, rtol {} beside the bound\n", rule.rule.atol, rule.rule.rtol);
  for (std::size_t k = 0; k < report.outputs.size(); ++k) {
    const OutputReport& output = report.outputs[k];
    const RuleOutput& r = rule.outputs[k];
    for (std::size_t level = 0; level < r.looseness.size(); ++level)
      if (const Spread& s = r.looseness[level]; s.count > 0)
        out += fmt::format("  {:<5} {} than tau at {} (median; {} to {})\n", output.layout.role, times(s.median),
                           output.levels[level].name, times(s.min), times(s.max));
    out += fmt::format("  {:<5} a correct kernel may fail it in {} of {} elements\n", output.layout.role,
                       r.legal_outside, r.numbers);
  }
  std::string header = fmt::format("  {:<25}", "wrong outputs");
  for (const OutputReport& output : report.outputs)
    header += fmt::format("{:<24}", output.layout.role + ": bound, tolerance");
  append_line(out, header);
  for (const WrongReport& wrong : rule.wrong) {
    std::string line = fmt::format("    {:<23}", wrong.name);
    for (std::size_t k = 0; k < report.outputs.size(); ++k) {
      const bool rejects = wrong.bound_rejects[k], passes = wrong.rule_passes[k];
      line += fmt::format("{:<9}{:<15}", rejects ? "rejects" : "passes",
                          !passes   ? "rejects"
                          : rejects ? "PASSES"
                                    : "passes");
    }
    append_line(out, line);
  }
}

}  // namespace

std::string tolerance_text(const ToleranceReport& report) {
  std::string out =
      fmt::format("case        {}\narithmetic  {}\n", report.case_line,
                  report.kernel.empty() ? "the whole family: nothing is declared" : "as declared by " + report.kernel);
  if (report.rows_out_of_range > 0)
    out += fmt::format("out of range in {} of {} rows, which nothing bounds: {}\n", report.rows_out_of_range,
                       report.rows, report.out_of_range);
  for (const OutputReport& output : report.outputs) append_output(out, output);
  append_floors(out, report);
  if (report.rule) append_rule(out, report);
  return out;
}

}  // namespace assay

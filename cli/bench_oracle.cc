// `assay bench oracle`: the speed of the attention oracle beside other ways to compute the same answer.
#include <cmath>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/oracle_bench.h"
#include "cli/verbs.h"
#include "fuzz/durable_file.h"
#include "oracle/error.h"
#include "reports/environment.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
using bench::GrowthRow;
using bench::OracleBench;
using bench::SpeedEntry;

struct Options {
  bench::OracleBenchOptions bench;
  std::string save;
  bool json = false;
};

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json document(const Options& options, const OracleBench& result) {
  Json entries = Json::array(), growth = Json::array();
  for (const SpeedEntry& e : result.entries)
    entries.push_back({{"name", e.name}, {"ours_ns_per_score", e.ours_ns_per_score}, {"other_ns_per_score", e.other_ns_per_score},
                       {"ratio", e.ratio}, {"largest_difference", finite(e.largest_difference)}, {"escalated_rows", e.escalated}});
  for (const GrowthRow& row : result.growth)
    growth.push_back({{"queries", row.queries}, {"keys", row.keys}, {"d", row.d}, {"ns_per_score", row.ns_per_score},
                      {"peak_bytes", finite(row.peak_bytes)}, {"operand_bytes", row.operand_bytes},
                      {"score_array_bytes", row.score_array_bytes}});
  const bench::Scaling& s = result.scaling;
  return {{"version", 1}, {"tool", "assay bench oracle"}, {"environment", environment()}, {"queries", options.bench.queries},
          {"keys", options.bench.keys}, {"dtype", "bf16"}, {"repetitions", options.bench.repetitions},
          {"computes", "o, lse, their radii and the bound T0 of a declared FlashAttention-2"}, {"entries", entries},
          {"two_threads", {{"ours_one_ns_per_score", s.ours_one}, {"ours_two_ns_per_score", s.ours_two},
                           {"product_one_ns_per_element", s.product_one}, {"product_two_ns_per_element", s.product_two},
                           {"ratio_of_scalings", s.ratio}}},
          {"growth", growth}};
}

std::string text_of(const Options& options, const OracleBench& result) {
  std::string out = fmt::format("{} queries, {} keys, bf16, one thread: ns per score, medians of {}\n", options.bench.queries,
                                options.bench.keys, options.bench.repetitions);
  out += fmt::format("  {:<52} {:>9} {:>9} {:>9}  {}\n", "", "ours", "other", "ratio", "escalated rows");
  for (const SpeedEntry& e : result.entries)
    out += fmt::format("  {:<52} {:>9.2f} {:>9.2f} {:>9.4f}  {:.1f} %\n", e.name, e.ours_ns_per_score, e.other_ns_per_score, e.ratio,
                       100 * e.escalated);
  const bench::Scaling& s = result.scaling;
  out += fmt::format("two threads: ours {:.2f} -> {:.2f} ({:.2f}x), a plain product {:.2f} -> {:.2f} ({:.2f}x), ratio {:.3f}\n", s.ours_one,
                     s.ours_two, s.ours_one / s.ours_two, s.product_one, s.product_two, s.product_one / s.product_two, s.ratio);
  out += fmt::format("  {:>8} {:>8} {:>4} {:>9} {:>12} {:>12} {:>14}\n", "queries", "keys", "d", "ns/score", "peak MiB", "operands", "score array");
  constexpr double kMiB = 1024 * 1024;
  for (const GrowthRow& row : result.growth)
    out += fmt::format("  {:>8} {:>8} {:>4} {:>9.2f} {:>12.1f} {:>12.1f} {:>14.1f}\n", row.queries, row.keys, row.d, row.ns_per_score,
                       row.peak_bytes / kMiB, row.operand_bytes / kMiB, row.score_array_bytes / kMiB);
  return out;
}

}  // namespace

void add_bench_oracle(Verb& app, int& exit_code) {
  Verb verb = bench_group(app).add("oracle", "speed of the attention oracle beside Eigen, MPFR and Arb");
  const auto o = std::make_shared<Options>();
  verb.option("--repetitions", o->bench.repetitions, "of each timing").range(1, 1000);
  verb.option("--queries", o->bench.queries, "rows of each case").range(2, 65536);
  verb.option("--keys", o->bench.keys, "keys of each case").range(1, 1 << 20);
  verb.option("--longest", o->bench.longest, "last key length of the growth table").range(1024, 1 << 20);
  verb.option("--save", o->save, "write the JSON document to a file");
  verb.flag("--json", o->json, "print the JSON document instead of text");
  verb.callback([o, &exit_code] {
    const OracleBench result = bench::bench_oracle(o->bench);
    const std::string text = document(*o, result).dump(1) + "\n";
    if (!o->save.empty()) write_durably(o->save, text);
    fmt::print("{}", o->json ? text : text_of(*o, result));
    exit_code = 0;
  });
}

}  // namespace assay

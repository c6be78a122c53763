// `assay bench fuzz`: verified cases per second beside the loop one would write in Python, and how soon planted faults are found.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cases/file_source.h"
#include "cli/fleet.h"
#include "cli/verbs.h"
#include "fuzz/durable_file.h"
#include "fuzz/engine_process.h"
#include "fuzz/mix.h"
#include "fuzz/time_to_find.h"
#include "oracle/error.h"
#include "oracle/op_parameters.h"
#include "oracle/ops/attention/attention.h"
#include "reports/environment.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

/// Coverage alone is tried on these: faults that every case shows, faults at lengths, at values, and in options.
const std::vector<std::string> kCoverageMutants{
    "fa2_bf16_false_max",         "fa2_bf16_nan_empty_extent", "fa2_bf16_key_of_128_dropped", "fa2_bf16_subnormal_flush",
    "fa4_bf16_alibi_sign",        "fa2_bf16_mask_top_left",    "split_bf16_merge_base_two",   "paged_vllm_bf16_last_page_repeats",
    "fa3_e4m3_unclamped_p",       "fa2_fp16_accumulator_range"};

struct Options {
  std::string part = "speed", python = "python3", engine, coverage_engine, save;
  std::vector<std::string> kernels;
  std::vector<std::string> engine_options;
  double seconds = 5, limit = 60;
  int rounds = 5;
  unsigned jobs = 1;
  std::int64_t seeds = 3;
  unsigned threads = 1;
  bool json = false, device = false, in_process = false;
};

Json of_throughput(const Throughput& t) {
  const auto per_second = [&](std::int64_t n) { return static_cast<double>(n) / t.seconds; };
  return {{"cases", t.cases},
          {"cases_per_second", per_second(t.cases)},
          {"scores_per_second", per_second(t.scores)},
          {"kernel_share", t.kernel_seconds / t.seconds},
          {"oracle_share", t.oracle_seconds / t.seconds},
          {"left_out", t.left_out}};
}

/// What the Python loop needs to know of a case.
Json for_python(const MixCase& item) {
  const AttentionParams p = attention_params(item.c.params);
  Json window = nullptr;
  if (p.window_left >= 0 || p.window_right >= 0) window = {p.window_left, p.window_right};
  return {{"b", p.batch},       {"hq", p.heads_q},          {"hkv", p.heads_kv},
          {"sq", p.len_q},      {"skv", p.len_kv},          {"d", p.dim_qk},
          {"causal", p.causal}, {"softcap", p.softcap},     {"window", window},
          {"mask", p.data_mask != DataMask::kNone}, {"page", p.kv_store != KvStore::kContiguous}};
}

class PythonLoop {
 public:
  PythonLoop(const std::string& python, const std::vector<MixCase>& mix) : python_(python) {
    for (const MixCase& item : mix) cases_.push_back(for_python(item));
  }
  /// Cases per second.
  double run(double seconds) const {
    const std::string file = (std::filesystem::temp_directory_path() / fmt::format("assay-mix-{}.json", getpid())).string();
    write_durably(file, Json({{"seconds", seconds}, {"cases", cases_}}).dump());
    const std::string printed = output_of({"/usr/bin/env", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", python_,
                                           find_data_file("bench/fuzz_loop.py"), file},
                                          std::chrono::seconds(60) + std::chrono::milliseconds(static_cast<int>(seconds * 4000)));
    std::filesystem::remove(file);
    const Json result = Json::parse(printed);
    return result.at("cases").get<double>() / result.at("seconds").get<double>();
  }

 private:
  std::string python_;
  Json cases_ = Json::array();
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Ours and Python's in turn, so that both see the same machine.
Json speed_of(const std::string& name, const std::vector<MixCase>& mix, const Options& options) {
  const PythonLoop python(options.python, mix);
  const OpenRunner open = [&]() -> std::unique_ptr<Runner> {
    if (options.in_process) return in_process_runner();
    return open_fleet(std::chrono::seconds(60));
  };
  std::vector<double> ratios, ours, theirs;
  Json last;
  for (int round = 0; round < options.rounds; ++round) {
    const Throughput t =
        verify_mix(mix, open, options.threads, Level::kT1, options.seconds, static_cast<std::uint64_t>(round) << 32);
    if (t.cases == 0) throw EnvironmentError("bench/fuzz_mix.txt: no kernel of the mix is here");
    last = of_throughput(t);
    ours.push_back(static_cast<double>(t.cases) / t.seconds);
    theirs.push_back(python.run(options.seconds));
    ratios.push_back(ours.back() / theirs.back());
  }
  last["name"] = name;
  last["cases_per_second"] = median(ours);
  last["python_cases_per_second"] = median(theirs);
  last["ratio"] = median(ratios);
  return last;
}

/// The mix on other kernels: all of those that are not tensor cores' emulations give way to the plain one of their format.
std::vector<MixCase> on_plain_kernels(std::vector<MixCase> mix) {
  for (MixCase& item : mix) {
    const std::string format(info(op_named(item.c.op).input_format(item.c.params)).name);
    item.kernel = "naive_" + format;
  }
  return mix;
}

std::vector<MixCase> on_device_kernels(std::vector<MixCase> mix) {
  for (MixCase& item : mix)
    if (const std::size_t at = item.kernel.rfind('_'); at != std::string::npos) item.kernel.insert(at, "_cuda");
  return mix;
}

Json speed(const Options& options) {
  std::vector<MixCase> mix = read_mix("bench/fuzz_mix.txt");
  if (options.device) {
    mix = on_device_kernels(std::move(mix));
    const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(60));
    const std::vector<KernelIdentity> here = fleet->kernels();
    std::erase_if(mix, [&](const MixCase& item) {
      return std::none_of(here.begin(), here.end(), [&](const KernelIdentity& k) { return k.name == item.kernel; });
    });
  }
  Json all = Json::array();
  all.push_back(speed_of("mix", mix, options));
  all.push_back(speed_of("small half", small_half(mix), options));
  if (!options.device) all.push_back(speed_of("small half, plain fp32 kernels", on_plain_kernels(small_half(mix)), options));
  return all;
}

std::string beside_program(const std::string& name) {
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  if (!std::filesystem::exists(path))
    throw EnvironmentError(path.string() + ": there is no such program (built where libFuzzer's runtime is: ./dev fuzz)");
  return path.string();
}

Json of_search(const TimeToFind& t) {
  Json searches = Json::array();
  for (const Search& s : t.searches)
    searches.push_back({{"found", s.found}, {"seconds", s.seconds}, {"executions", s.executions}, {"verdict", s.verdict}});
  return {{"mutant", t.mutant.name}, {"mode", t.mutant.expects}, {"median_seconds", t.median()}, {"searches", searches}};
}

Json summary_of(const std::vector<TimeToFind>& all, double limit) {
  const auto below = [&](double seconds) {
    return std::count_if(all.begin(), all.end(), [&](const TimeToFind& t) { return t.median() < seconds; });
  };
  Json left = Json::array();
  for (const TimeToFind& t : all)
    if (t.median() >= limit) left.push_back(t.mutant.name);
  return {{"mutants", all.size()}, {"median_below_10_s", below(10)}, {"median_below_limit", below(limit)}, {"not_found", left}};
}

Json find_with(const std::string& name, const std::vector<KernelIdentity>& mutants, FindOptions options) {
  const std::vector<TimeToFind> found = time_to_find(mutants, options);
  Json entries = Json::array();
  for (const TimeToFind& t : found) entries.push_back(of_search(t));
  return {{"name", name}, {"limit_seconds", options.limit}, {"summary", summary_of(found, options.limit)}, {"mutants", entries}};
}

Json find(const Options& options) {
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::seconds(60));
  const std::vector<std::string> names = options.kernels.empty() ? std::vector<std::string>{"mutants"} : options.kernels;
  FindOptions how{.engine = options.engine.empty() ? beside_program("assay_mutants_fuzz") : options.engine,
                  .arguments = options.engine_options};
  how.limit = options.limit, how.jobs = options.jobs;
  how.seeds.resize(static_cast<std::size_t>(options.seeds));
  std::iota(how.seeds.begin(), how.seeds.end(), 1);
  std::vector<KernelIdentity> mutants = choose_kernels(*fleet, names);
  std::erase_if(mutants, [&](const KernelIdentity& k) { return k.device != options.device; });
  Json all = Json::array();
  all.push_back(find_with("features and recipes", mutants, how));
  if (options.coverage_engine.empty()) return all;
  const std::vector<KernelIdentity> ten = choose_kernels(*fleet, kCoverageMutants);
  all.push_back(find_with("ten mutants: features and recipes", ten, how));
  how.engine = options.coverage_engine;
  how.arguments = {"--no-signal", "--no-recipes"};
  all.push_back(find_with("ten mutants: code coverage and bytes", ten, how));
  how.arguments = {"--no-recipes"};
  all.push_back(find_with("ten mutants: features and bytes", ten, how));
  how.arguments = {"--no-signal"};
  all.push_back(find_with("ten mutants: code coverage and recipes", ten, how));
  return all;
}

std::string text_of(const Json& document) {
  std::string text;
  for (const Json& s : document.value("speed", Json::array()))
    text += fmt::format("{:<34} {:>9.0f} cases/s  {:>11.0f} scores/s  Python {:>7.0f} cases/s  ratio {:.2f}  (kernel {:.0f} %, oracle {:.0f} %)\n",
                        s["name"].get<std::string>(), s["cases_per_second"].get<double>(), s["scores_per_second"].get<double>(),
                        s["python_cases_per_second"].get<double>(), s["ratio"].get<double>(), 100 * s["kernel_share"].get<double>(),
                        100 * s["oracle_share"].get<double>());
  for (const Json& f : document.value("find", Json::array()))
    text += fmt::format("{}: {} of {} mutants below 10 s, {} below {} s; not found: {}\n", f["name"].get<std::string>(),
                        f["summary"]["median_below_10_s"].get<int>(), f["summary"]["mutants"].get<int>(),
                        f["summary"]["median_below_limit"].get<int>(), f["limit_seconds"].get<double>(),
                        f["summary"]["not_found"].dump());
  return text;
}

int bench_fuzz(const Options& options) {
  Json document = {{"version", 1}, {"tool", "assay bench fuzz"}, {"environment", environment()}};
  if (options.part != "find") document["speed"] = speed(options);
  if (options.part != "speed") document["find"] = find(options);
  if (!options.save.empty()) write_durably(options.save, document.dump(1) + "\n");
  fmt::print("{}", options.json ? document.dump(1) + "\n" : text_of(document));
  return 0;
}

}  // namespace

void add_bench_fuzz(Verb& app, int& exit_code) {
  Verb verb = bench_group(app).add("fuzz", "verified cases per second beside a Python loop; how soon the fuzz program finds planted faults");
  const auto o = std::make_shared<Options>();
  verb.option("--part", o->part, "speed (default), find or all").one_of({"speed", "find", "all"});
  verb.option("--kernel", o->kernels, "find: mutants to search for (repeatable; default all)").one_each();
  verb.option("--seconds", o->seconds, "speed: length of one measurement (default 5)").positive();
  verb.option("--rounds", o->rounds, "speed: medians over so many rounds (default 5)").positive();
  verb.option("--threads", o->threads, "speed: threads that verify cases side by side (default 1)").range(1, 1024);
  verb.flag("--in-process", o->in_process,
            "speed: run kernels in this process, as the fuzz program does, and not in workers");
  verb.option("--limit", o->limit, "find: seconds of a core after which a search is given up (default 60)").positive();
  verb.option("--seeds", o->seeds, "find: searches for each mutant (default 3)").positive();
  verb.option("--jobs", o->jobs, "find: searches at a time (default 1)").range(1, 1024);
  verb.option("--engine", o->engine, "find: the fuzz program (default assay_mutants_fuzz beside this program)");
  verb.option("--engine-option", o->engine_options, "find: one more option for it (repeatable)").one_each();
  verb.option("--coverage-engine", o->coverage_engine, "find: one that clang has instrumented, for ten mutants by code coverage");
  verb.option("--python", o->python, "a Python with NumPy (default python3)");
  verb.flag("--device", o->device, "kernels on a GPU instead of those on the host");
  verb.option("--save", o->save, "write the document to a file");
  verb.flag("--json", o->json, "print the document instead of text");
  verb.callback([o, &exit_code] { exit_code = bench_fuzz(*o); });
}

}  // namespace assay

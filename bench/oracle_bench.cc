// Times the evaluation of whole cases against other forms of attention on the same operands.
#include "bench/oracle_bench.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "bench/eigen_forms.h"
#include "bench/mpfr_attention.h"
#include "bench/peak_memory.h"
#include "cases/materialize.h"
#include "oracle/aligned.h"
#include "oracle/error.h"
#include "oracle/ops/attention/row_truth.h"
#include "oracle/panel_gemm.h"
#include "oracle/threads.h"

namespace assay::bench {
namespace {

constexpr int kBits = 128;

/// Processor seconds of this thread: other programs on the machine do not count.
double processor_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double elapsed_time() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Medians of functions that take turns, so that a slow spell of the machine meets them all.
std::vector<double> medians(int repetitions, double (*clock)(), const std::vector<std::function<void()>>& functions) {
  std::vector<std::vector<double>> times(functions.size());
  for (int n = 0; n < repetitions; ++n)
    for (std::size_t f = 0; f < functions.size(); ++f) {
      const double start = clock();
      functions[f]();
      times[f].push_back(clock() - start);
    }
  std::vector<double> all;
  for (std::vector<double>& t : times) all.push_back(median(std::move(t)));
  return all;
}

/// What FlashAttention-2 declares on Hopper.
Arithmetic declared_arithmetic() {
  Arithmetic a;
  a.qk = a.pv = Accumulate::kBlockHopper;
  a.score_store = ScoreStore::kFp32;
  a.scale_form = ScaleForm::kFolded;
  a.exponential = Exponential::kEx2Approx;
  a.p_format = Format::kBf16;
  a.p_known = true;
  a.tanh = Tanh::kTwoUlp;
  a.row_sum_of = RowSumOf::kUnroundedP;
  a.row_sum_tree = RowSumTree::kQuad;
  a.normalize = Normalize::kReciprocal;
  a.subnormals = Subnormals::kKept;
  a.max_policy = MaxPolicy::kEveryTile;
  a.tile_order = TileOrder::kForward;
  a.tile_n = 64;
  a.splits = 1;
  return a;
}

/// One case, its operands as fp64 matrices, and our answer.
class Setup {
 public:
  Setup(std::int64_t queries, std::int64_t keys, std::int64_t d, const std::string& rest)
      : problem_(materialize(parse_case(fmt::format("attention sq={} skv={} d={} {}", queries, keys, d, rest)))),
        scores_(static_cast<double>(queries) * static_cast<double>(keys)) {}

  const Problem& problem() const { return problem_; }
  double scores() const { return scores_; }
  /// Nanoseconds per score.
  double per_score(double seconds) const { return seconds * 1e9 / scores_; }
  Evaluation evaluate(const Arithmetic& arithmetic) const {
    return op_named("attention").evaluate(problem_, arithmetic, Level::kT0);
  }

  DenseOperands operands() {
    const AttentionParams p = attention_params(problem_.params);
    if (q_.empty()) {
      for (const auto& [role, to] : {std::pair{"q", &q_}, std::pair{"k", &k_}, std::pair{"v", &v_}})
        for (const Tensor& tensor : problem_.inputs)
          if (tensor.layout.role == role)
            for (std::int64_t i = 0; i < tensor.layout.storage; ++i) to->push_back(tensor.view().value(i));
    }
    return {q_.data(), k_.data(), v_.data(), static_cast<std::size_t>(p.len_q), static_cast<std::size_t>(p.len_kv),
            static_cast<std::size_t>(p.dim_qk), static_cast<double>(p.scale)};
  }

 private:
  Problem problem_;
  double scores_;
  std::vector<double> q_, k_, v_;
};

double escalated_share(const Truth& truth) {
  double count = 0;
  for (const RowFacts& row : truth.rows) count += row.escalated ? 1 : 0;
  return count / static_cast<double>(truth.rows.size());
}

/// Between the first rows of our answer and another's.
double largest_difference(const Truth& truth, const std::vector<double>& o, const std::vector<double>& lse) {
  double largest = 0;
  for (std::size_t i = 0; i < o.size(); ++i) largest = std::max(largest, std::abs(o[i] - truth.outputs[0].mid[i]));
  for (std::size_t i = 0; i < lse.size(); ++i) largest = std::max(largest, std::abs(lse[i] - truth.outputs[1].mid[i]));
  return largest;
}

SpeedEntry entry(std::string name, double ours, double other, double difference, double escalated) {
  return {std::move(name), ours, other, ours / other, difference, escalated};
}

void against_eigen(const OracleBenchOptions& options, std::int64_t d, std::vector<SpeedEntry>& entries) {
  Setup setup(options.queries, options.keys, d, "");
  const DenseOperands in = setup.operands();
  const Arithmetic declared = declared_arithmetic();
  std::vector<double> o_matrix(in.rows * d), o_strips(in.rows * d), lse_matrix(in.rows), lse_strips(in.rows);
  Evaluation ours, undeclared;
  const std::vector<double> t = medians(options.repetitions, processor_time,
                                        {[&] { ours = setup.evaluate(declared); },
                                         [&] { eigen_matrix_attention(in, o_matrix.data(), lse_matrix.data()); },
                                         [&] { eigen_strip_attention(in, o_strips.data(), lse_strips.data()); },
                                         [&] { undeclared = setup.evaluate({}); }});
  const double share = escalated_share(ours.truth), strips = setup.per_score(t[2]);
  const double matrix_off = largest_difference(ours.truth, o_matrix, lse_matrix),
               strips_off = largest_difference(ours.truth, o_strips, lse_strips);
  entries.push_back(entry(fmt::format("Eigen, array of all scores, d={}", d), setup.per_score(t[0]), setup.per_score(t[1]), matrix_off, share));
  entries.push_back(entry(fmt::format("Eigen, strips of rows, d={}", d), setup.per_score(t[0]), strips, strips_off, share));
  entries.push_back(entry(fmt::format("Eigen, strips of rows, nothing declared, d={}", d), setup.per_score(t[3]), strips, strips_off,
                          escalated_share(undeclared.truth)));
}

void against_certified(const OracleBenchOptions& options, std::int64_t d, double ours, std::vector<SpeedEntry>& entries) {
  Setup setup(options.queries, options.keys, d, "");
  const Evaluation evaluation = setup.evaluate(declared_arithmetic());
  const DenseOperands in = setup.operands();
  MpfrAttention mpfr(in, kBits);
  const AttentionProblem problem(setup.problem());
  constexpr int kRows = 3;
  std::vector<double> o_mpfr(in.d), o_arb, lse_mpfr(1), lse_arb(1);
  const std::vector<double> t = medians(kRows, processor_time, {[&] { mpfr.row(0, o_mpfr.data(), lse_mpfr.data()); },
                                                                [&] {
                                                                  const RowTruth row = reference_row(problem, problem.rows()[0], kBits);
                                                                  o_arb = row.o_mid;
                                                                  lse_arb[0] = row.lse_mid;
                                                                }});
  const double per_key = 1e9 / static_cast<double>(options.keys);
  entries.push_back(entry(fmt::format("MPFR at {} bits, d={}", kBits, d), ours, t[0] * per_key,
                          largest_difference(evaluation.truth, o_mpfr, lse_mpfr), 0));
  entries.push_back(entry(fmt::format("Arb at {} bits, d={}", kBits, d), ours, t[1] * per_key,
                          largest_difference(evaluation.truth, o_arb, lse_arb), 0));
}

/// Cases that are hard on the fast path, each beside the ordinary one.
void special_cases(const OracleBenchOptions& options, std::int64_t d, std::vector<SpeedEntry>& entries) {
  const std::vector<std::pair<std::string, std::string>> specials = {
      {"mixed exponents", "q=mixed_exponents@1 k=mixed_exponents@2 v=mixed_exponents@3"},
      {"outlier channel", "q=outlier_channel@1 k=outlier_channel@2 v=outlier_channel@3"},
      {"subnormal numbers", "q=subnormal(0.5)@1 k=subnormal(0.5)@2 v=subnormal(0.5)@3"},
      {"causal and bool mask", "mask=causal+bool"},
  };
  const Arithmetic declared = declared_arithmetic();
  std::vector<Setup> setups;
  setups.emplace_back(options.queries, options.keys, d, "");
  for (const auto& [name, rest] : specials) setups.emplace_back(options.queries, options.keys, d, rest);
  std::vector<Evaluation> evaluations(setups.size());
  std::vector<std::function<void()>> functions;
  for (std::size_t i = 0; i < setups.size(); ++i)
    functions.push_back([&, i] { evaluations[i] = setups[i].evaluate(declared); });
  const std::vector<double> t = medians(options.repetitions, processor_time, functions);
  for (std::size_t i = 1; i < setups.size(); ++i)
    entries.push_back(entry(fmt::format("{} beside the ordinary case, d={}", specials[i - 1].first, d), setups[i].per_score(t[i]),
                            setups[i].per_score(t[0]), std::numeric_limits<double>::quiet_NaN(),
                            escalated_share(evaluations[i].truth)));
}

/// Runs halves of a product's rows on two threads.
void product_on_two(const DenseOperands& in, double* c) {
  const std::size_t half = in.rows / 2;
  DenseOperands first = in, second = in;
  first.rows = half;
  second.rows = in.rows - half;
  second.q += half * in.d;
  std::thread other([&] { eigen_product(second, c + half * in.keys); });
  eigen_product(first, c);
  other.join();
}

Scaling scaling(const OracleBenchOptions& options) {
  constexpr std::int64_t kDim = 128, kTimesQueries = 4;
  Setup setup(options.queries * kTimesQueries, options.keys, kDim, "");
  const DenseOperands in = setup.operands();
  const Arithmetic declared = declared_arithmetic();
  std::vector<double> c(in.rows * in.keys);
  const unsigned before = oracle_threads();
  const auto with = [&](unsigned threads) {
    set_oracle_threads(threads);
    setup.evaluate(declared);
    set_oracle_threads(before);
  };
  const std::vector<double> t = medians(options.repetitions, elapsed_time,
                                        {[&] { with(1); }, [&] { with(2); }, [&] { eigen_product(in, c.data()); },
                                         [&] { product_on_two(in, c.data()); }});
  return {setup.per_score(t[0]), setup.per_score(t[1]), setup.per_score(t[2]), setup.per_score(t[3]), t[0] / t[1] / (t[2] / t[3])};
}

GrowthRow growth(std::int64_t queries, std::int64_t keys, std::int64_t d) {
  Setup setup(queries, keys, d, "");
  const Arithmetic declared = declared_arithmetic();
  GrowthRow row{.queries = queries, .keys = keys, .d = d, .ns_per_score = 0, .peak_bytes = 0, .operand_bytes = 0, .score_array_bytes = 0};
  for (const Tensor& tensor : setup.problem().inputs) row.operand_bytes += static_cast<double>(tensor.bytes.size());
  row.score_array_bytes = 8 * setup.scores();
  drop_large_arrays();
  const PeakMemory peak;
  setup.evaluate(declared);
  row.peak_bytes = peak.growth();
  constexpr int kTimes = 3;
  row.ns_per_score = setup.per_score(medians(kTimes, processor_time, {[&] { setup.evaluate(declared); }})[0]);
  return row;
}

}  // namespace

OracleBench bench_oracle(const OracleBenchOptions& options) {
  if (avx2_panel_gemm() == nullptr)
    throw EnvironmentError("assay bench oracle: needs a processor with AVX2 and FMA, which the forms it compares with are compiled for");
  OracleBench bench;
  for (const std::int64_t d : {std::int64_t{128}, std::int64_t{64}}) {
    const std::size_t first = bench.entries.size();
    against_eigen(options, d, bench.entries);
    against_certified(options, d, bench.entries[first].ours_ns_per_score, bench.entries);
    special_cases(options, d, bench.entries);
  }
  bench.scaling = scaling(options);
  for (std::int64_t keys = 1024; keys <= options.longest; keys *= 2) bench.growth.push_back(growth(options.queries, keys, 128));
  for (const std::int64_t queries : {options.queries / 2, options.queries * 2}) bench.growth.push_back(growth(queries, options.keys, 128));
  bench.growth.push_back(growth(options.queries, options.keys, 64));
  return bench;
}

}  // namespace assay::bench

// `assay bench radius`: the fp64 tier's proven radius beside its true error and beside the bound T0.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cases/materialize.h"
#include "cli/verbs.h"
#include "fuzz/suites.h"
#include "kernels/kernel.h"
#include "oracle/error.h"
#include "oracle/op.h"
#include "reports/environment.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBits = 256;
constexpr double kHalfUlp = 0x1p-53;  // of a midpoint: smaller errors cannot be told from its rounding

struct Options {
  std::vector<std::string> suites{"edge"};
  std::vector<std::string> kernels;
  std::size_t cases = 200;
  bool json = false;
};

/// Over the elements of one output role whose truth is a number other than 0.
struct Role {
  std::string name;
  std::vector<double> of_tau, of_error;  ///< radius / tau, radius / max(true error, half an ulp of the midpoint)
  std::int64_t outside = 0;              ///< the exact answer is not within the radius
  std::int64_t undecided = 0;            ///< fp64 gave no radius and ball arithmetic decided: no radius to compare
};

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return std::nan("");
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

void compare(const Evaluation& fast, const Truth& exact, std::vector<Role>& roles) {
  for (std::size_t k = 0; k < exact.outputs.size(); ++k) {
    const OutputTruth &f = fast.truth.outputs[k], &e = exact.outputs[k];
    auto role = std::find_if(roles.begin(), roles.end(), [&](const Role& r) { return r.name == f.layout.role; });
    if (role == roles.end())
      role = roles.insert(roles.end(), Role{.name = f.layout.role, .of_tau = {}, .of_error = {}});
    for (std::size_t i = 0; i < f.mid.size(); ++i) {
      if ((f.classes[i] & kNumber) == 0 || e.mid[i] == 0) continue;
      if (fast.truth.rows[static_cast<std::size_t>(f.row[i])].escalated) {
        ++role->undecided;
        continue;
      }
      const double error = std::abs(f.mid[i] - e.mid[i]), least = kHalfUlp * std::abs(e.mid[i]);
      role->outside += !(error <= f.radius[i] + e.radius[i]);
      role->of_tau.push_back(f.radius[i] / fast.bound.outputs[k].tau[i]);
      role->of_error.push_back(f.radius[i] / std::max(error, least));
    }
  }
}

bool chosen(const Kernel& kernel, const Options& options, const Case& c) {
  if (kernel.mutant || kernel.op != c.op) return false;
  return options.kernels.empty() ||
         std::find(options.kernels.begin(), options.kernels.end(), kernel.name) != options.kernels.end();
}

/// Declared by the first kernel chosen that takes the case.
const Kernel* kernel_for(const Case& c, const Problem& problem, const Options& options) {
  for (const Kernel* kernel : all_kernels())
    if (chosen(*kernel, options, c) && !kernel->unsupported(problem.params)) return kernel;
  return nullptr;
}

int bench_radius(const Options& options) {
  std::vector<Role> roles;
  std::int64_t cases = 0;
  for (const std::string& suite : options.suites) {
    const std::vector<Case> all = suite_cases(suite);
    const std::size_t step = std::max<std::size_t>(1, all.size() / options.cases);
    for (std::size_t n = 0; n < all.size(); n += step) {
      const Problem problem = materialize(all[n]);
      const Kernel* kernel = kernel_for(all[n], problem, options);
      if (kernel == nullptr) continue;
      const Op& op = op_named(all[n].op);
      compare(op.evaluate(problem, kernel->declared(problem.params), Level::kT0), op.reference(problem, kBits), roles);
      ++cases;
    }
  }
  if (cases == 0) throw InputError("--kernel: none of the kernels takes a case of the suites");
  Json out = Json::array();
  std::int64_t outside = 0;
  for (Role& role : roles) {
    outside += role.outside;
    out.push_back({{"role", role.name},
                   {"elements", role.of_tau.size()},
                   {"outside", role.outside},
                   {"escalated", role.undecided},
                   {"median_of_tau", quantile(role.of_tau, 0.5)},
                   {"largest_of_tau", quantile(role.of_tau, 1)},
                   {"median_of_error", quantile(role.of_error, 0.5)},
                   {"p99_of_error", quantile(role.of_error, 0.99)}});
  }
  if (options.json) {
    const Json document{{"version", 1},   {"tool", "assay bench radius"}, {"suites", options.suites},
                        {"cases", cases}, {"environment", environment()}, {"outputs", out}};
    fmt::print("{}\n", document.dump(1));
  } else {
    fmt::print("{} cases, radius of the fp64 tier against {}-bit balls\n", cases, kBits);
    for (const Json& role : out)
      fmt::print(
          "  {:<4} {} elements, {} outside, {} escalated; radius / tau: median {:.2g}, largest {:.2g}; radius / true "
          "error: median {:.3g}, 99 % {:.3g}\n",
          role["role"].get<std::string>(), role["elements"].get<std::int64_t>(), role["outside"].get<std::int64_t>(),
          role["escalated"].get<std::int64_t>(), role["median_of_tau"].get<double>(),
          role["largest_of_tau"].get<double>(), role["median_of_error"].get<double>(),
          role["p99_of_error"].get<double>());
  }
  return outside > 0 ? 1 : 0;
}

}  // namespace

void add_bench_radius(Verb& app, int& exit_code) {
  Verb verb = bench_group(app).add("radius", "the fp64 tier's radius beside its true error and beside T0");
  const auto o = std::make_shared<Options>();
  verb.option("--suite", o->suites, "suite (repeatable; default edge)").one_each();
  verb.option("--kernel", o->kernels,
                   "whose declaration T0 takes (repeatable; default: the first that takes the case)")
      .one_each();
  verb.option("--cases", o->cases, "about how many cases of each suite (default 200)").positive();
  verb.flag("--json", o->json, "print the JSON document instead of text");
  verb.callback([o, &exit_code] { exit_code = bench_radius(*o); });
}

}  // namespace assay

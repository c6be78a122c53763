// `assay fingerprint KERNEL`: what a kernel does, by small probes, beside what it declares.
#include "fuzz/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/fleet.h"
#include "cli/verbs.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string kernel;
  std::vector<std::string> plugins;
  bool json = false;
};

Json document(const std::string& kernel, const std::vector<Trait>& traits) {
  Json list = Json::array();
  for (const Trait& t : traits)
    list.push_back({{"trait", t.name},
                    {"measured", t.measured},
                    {"expected", t.expected.empty() ? Json() : Json(t.expected)},
                    {"agrees", t.agrees}});
  return {{"version", 1}, {"tool", "assay fingerprint"}, {"kernel", kernel}, {"traits", list}};
}

int print_fingerprint(const Options& options) {
  const std::unique_ptr<Fleet> fleet = open_fleet(std::chrono::minutes(10), options.plugins);
  const KernelIdentity kernel = kernel_named(*fleet, options.kernel);
  const std::vector<Trait> traits = fingerprint(*fleet, kernel);
  if (options.json) {
    fmt::print("{}\n", document(kernel.name, traits).dump(1));
  } else {
    fmt::print("{}\n", kernel.name);
    for (const Trait& t : traits)
      fmt::print("  {:<28} {}{}{}\n", t.name, t.measured,
                 t.expected.empty() ? "" : "   declared or asked: " + t.expected, t.agrees ? "" : "   DIFFERS");
  }
  return std::all_of(traits.begin(), traits.end(), [](const Trait& t) { return t.agrees; }) ? 0 : 1;
}

}  // namespace

void add_fingerprint(Verb& app, int& exit_code) {
  Verb verb = app.add("fingerprint", "how a kernel computes and which conventions it follows, beside what it declares");
  const auto o = std::make_shared<Options>();
  verb.option("kernel", o->kernel, "attention kernel").required();
  add_plugin_option(verb, o->plugins);
  verb.flag("--json", o->json, "print JSON instead of text");
  verb.callback([o, &exit_code] { exit_code = print_fingerprint(*o); });
}

}  // namespace assay

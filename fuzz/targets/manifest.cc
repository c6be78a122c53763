// Fuzz target: any text is either an InputError naming the manifest or a list of kernels that can be asked.
#include "plugin/manifest.h"

#include <cstdio>
#include <cstdlib>

#include "fuzz/targets/target.h"
#include "oracle/error.h"
#include "oracle/op.h"

namespace assay {
namespace {

class Manifest final : public Target {
 public:
  int run(std::span<const std::uint8_t> input) override {
    const std::string text(input.begin(), input.end());
    std::vector<PluginKernel> kernels;
    try {
      kernels = read_manifest(text, "input");
    } catch (const InputError& error) {
      if (std::string_view(error.what()).starts_with("input: manifest")) return 0;
      std::fprintf(stderr, "an error that does not name the file: %s\n", error.what());
      std::abort();
    }
    for (const PluginKernel& kernel : kernels) {
      const Params params = op_named(kernel.identity.op).canonical({});
      if (!kernel.refuses(params)) kernel.complete(params);
    }
    return 0;
  }
};

const RegisterTarget kRegister({"manifest", "any text as a plug-in's manifest",
                                [](const std::string&, const TargetOptions&) -> std::unique_ptr<Target> {
                                  return std::make_unique<Manifest>();
                                }});

}  // namespace
}  // namespace assay

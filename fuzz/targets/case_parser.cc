// Fuzz target: any text is either an InputError or a case that prints and parses back to itself.
#include <cstdio>
#include <cstdlib>

#include "cases/case.h"
#include "fuzz/targets/target.h"
#include "oracle/error.h"

namespace assay {
namespace {

class CaseParser final : public Target {
 public:
  int run(std::span<const std::uint8_t> input) override {
    const std::string_view line(reinterpret_cast<const char*>(input.data()), input.size());
    Case c;
    try {
      c = parse_case(line);
    } catch (const InputError&) {
      return 0;
    }
    const std::string printed = print_case(c);
    const Case again = parse_case(printed);
    if (again == c && print_case(again) == printed) return 0;
    std::fprintf(stderr, "parse and print are not inverse: %s\n", printed.c_str());
    std::abort();
  }
};

const RegisterTarget kRegister({"case_parser", "any text as a case line",
                                [](const std::string&, const TargetOptions&) -> std::unique_ptr<Target> {
                                  return std::make_unique<CaseParser>();
                                }});

}  // namespace
}  // namespace assay

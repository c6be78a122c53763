// Fuzz target: any text is either an InputError or a case that prints and parses back to itself.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cases/case.h"
#include "oracle/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  assay::Case c;
  try {
    c = assay::parse_case(line);
  } catch (const assay::InputError&) {
    return 0;
  }
  const std::string printed = assay::print_case(c);
  const assay::Case again = assay::parse_case(printed);
  if (again == c && assay::print_case(again) == printed) return 0;
  std::fprintf(stderr, "parse and print are not inverse: %s\n", printed.c_str());
  std::abort();
}

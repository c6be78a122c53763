// Drawn and mutated cases are legal, within limits, many, and the same for the same chance.
#include "fuzz/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "fuzz/case_mutator.h"
#include "fuzz/draw.h"
#include "fuzz/input_case.h"
#include "oracle/op.h"

namespace assay {
namespace {

constexpr MutationLimits kLimits{.elements = 20000, .overrides = 8, .dictionary = true};

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::int64_t elements_of(const Case& c) {
  std::int64_t elements = 0;
  for (const InputSpec& spec : op_named(c.op).inputs(c.params)) elements += spec.layout.storage;
  for (const TensorLayout& output : op_named(c.op).outputs(c.params)) elements += output.storage;
  return elements;
}

std::vector<std::string> drawn(const Op& op, std::uint64_t seed, int count) {
  Draw draw(seed);
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i)
    if (const std::optional<Case> c = fresh_case(op.name, [&](std::size_t n) { return draw(n); }, kLimits)) {
      EXPECT_LE(elements_of(*c), kLimits.elements);
      lines.push_back(print_case(*c));
    }
  return lines;
}

TEST(FreshCases, AreLegalManyAndRepeatableForEveryOp) {
  for (const Op* op : all_ops()) {
    const std::vector<std::string> lines = drawn(*op, 1, 200);
    EXPECT_GE(lines.size(), 100U) << op->name;
    EXPECT_GE(std::set(lines.begin(), lines.end()).size(), lines.size() * 9 / 10) << op->name;
    EXPECT_EQ(lines, drawn(*op, 1, 200)) << op->name;
    EXPECT_NE(lines, drawn(*op, 2, 200)) << op->name;
    for (const std::string& line : lines) EXPECT_EQ(print_case(parse_case(line)), line);
  }
}

TEST(Mutations, ReachTheValueDictionary) {
  Draw draw(3);
  const Case start = parse_case("attention sq=3 skv=20 d=16");
  std::set<std::string> values;
  for (int i = 0; i < 1500; ++i)
    if (const std::optional<Case> c = mutated(start, start, [&](std::size_t n) { return draw(n); }, kLimits))
      for (const Override& override : c->overrides) values.insert(override.value);
  for (const char* code : {"0x7f80", "0x7f7f", "0x8000", "0x1"}) EXPECT_TRUE(values.contains(code)) << code;
  EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](const std::string& v) { return v == "0x7fc0" || v == "0x7fff"; }));
}

TEST(Inputs, AreLinesOfTheOpOrChoices) {
  EXPECT_EQ(print_case(*input_case("attention", bytes_of("attention skv=3 sq=2\n"), kLimits)), "attention sq=2 skv=3 q=normal@1 k=normal@2 v=normal@3");
  EXPECT_TRUE(input_case("attention", {}, kLimits)) << "no byte: every choice is the first";
  EXPECT_FALSE(input_case("attention", bytes_of("attention sq=0x"), kLimits));
  EXPECT_FALSE(input_case("attention", bytes_of("attention sq=100000"), kLimits)) << "too large";
  EXPECT_FALSE(input_case("attention", bytes_of("attention skv=3 q=file(a,b,0000000000000000)"), kLimits));
  std::set<std::string> chosen;
  for (int i = 0; i < 200; ++i)
    if (const std::optional<Case> c = input_case("softmax", bytes_of(std::string(20, static_cast<char>(i))), kLimits))
      chosen.insert(print_case(*c));
  EXPECT_GT(chosen.size(), 30U);
}

TEST(CaseMutator, KeepsToTheFormatsThatSomeKernelTakesWhereTheyAreLegal) {
  CaseMutator mutator("attention", kLimits, {"e4m3"});
  std::string line = "attention sq=2 skv=9 d=16";
  int wanted = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    line = mutator.mutate(bytes_of(line), seed);
    wanted += info(op_named("attention").input_format(parse_case(line).params)).name == "e4m3";
  }
  EXPECT_GE(wanted, 190);
  EXPECT_FALSE(mutator.mutate(bytes_of("no case at all"), 1).empty());
}

}  // namespace
}  // namespace assay

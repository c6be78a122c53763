// Runs a fuzz target without a fuzzer: replays files and folders, then a number of mutated inputs, so that targets stay
// alive in ordinary test builds.
// Usage: assay_fuzz_replay TARGET [its options] [-runs=N] [-signal=N] [FILE|FOLDER]...
// -signal=N: an error if all inputs together set fewer than N of the bytes that libFuzzer reads as features.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/draw.h"
#include "fuzz/signal.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t longest, unsigned seed);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kLongest = 4096;
assay::Draw draw(1);

Input read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void run(const Input& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

/// The files under a path, in a fixed order.
std::vector<Input> inputs_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {read(path)};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Input> inputs;
  for (const std::filesystem::path& file : files) inputs.push_back(read(file));
  return inputs;
}

Input mutated(const std::vector<Input>& seeds) {
  Input input = seeds.empty() ? Input{} : seeds[draw(seeds.size())];
  input.resize(std::min(input.size(), kLongest));
  const std::size_t size = input.size();
  input.resize(kLongest);
  input.resize(LLVMFuzzerCustomMutator(input.data(), size, kLongest, static_cast<unsigned>(draw(1U << 31))));
  return input;
}

std::optional<std::int64_t> number_behind(std::string_view argument, std::string_view name) {
  if (!argument.starts_with(name)) return std::nullopt;
  argument.remove_prefix(name.size());
  std::int64_t value = -1;
  const auto [end, status] = std::from_chars(argument.data(), argument.data() + argument.size(), value);
  return status == std::errc{} && end == argument.data() + argument.size() ? value : -1;
}

}  // namespace

/// Stands in for libFuzzer's: a few bytes changed, inserted or cut.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t longest) {
  Input input(data, data + size);
  for (std::size_t edits = 1 + draw(6); edits > 0; --edits) {
    const std::size_t at = draw(input.size() + 1), kind = draw(4);
    const auto byte = static_cast<std::uint8_t>(draw(2) == 0 ? draw(256) : 32 + draw(95));
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    if (at == input.size() || kind == 0)
      input.insert(place, byte);
    else if (kind == 1)
      input.erase(place, place + static_cast<std::ptrdiff_t>(1 + draw(input.size() - at)));
    else
      *place = byte;
  }
  input.resize(std::min(input.size(), longest));
  std::copy(input.begin(), input.end(), data);
  return input.size();
}

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  std::int64_t runs = 2000, least = 0;
  std::vector<Input> seeds;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--")) continue;  // the target's
    if (argument.starts_with("-")) {
      const auto its_runs = number_behind(argument, "-runs="), its_signal = number_behind(argument, "-signal=");
      if (its_runs.value_or(-1) < 0 && its_signal.value_or(-1) < 0) {
        std::fprintf(stderr, "%s: expected -runs=N or -signal=N\n", argument.c_str());
        return 2;
      }
      runs = its_runs.value_or(runs), least = its_signal.value_or(least);
      continue;
    }
    if (!std::filesystem::exists(argument)) {
      std::fprintf(stderr, "%s: no such file or folder\n", argument.c_str());
      return 2;
    }
    for (Input& input : inputs_of(argument)) seeds.push_back(std::move(input));
  }
  for (const Input& seed : seeds) run(seed);
  for (std::int64_t i = 0; i < runs; ++i) run(mutated(seeds));
  const auto features = static_cast<std::int64_t>(assay::signal_count());
  std::printf("%zu stored and %lld mutated inputs, %lld features\n", seeds.size(), static_cast<long long>(runs),
              static_cast<long long>(features));
  if (features >= least) return 0;
  std::fprintf(stderr, "only %lld features where %lld are expected: the counters are dead\n",
               static_cast<long long>(features), static_cast<long long>(least));
  return 1;
}

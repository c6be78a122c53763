// Runs a fuzz target without a fuzzer: replays files and folders, then a fixed number of pseudo-random inputs, so that
// targets stay alive in ordinary test builds.  Usage: <target>_replay [-runs=N] FILE|FOLDER...
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cases/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace {

using Input = std::vector<std::uint8_t>;

Input read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void run(const Input& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

/// Input number `run`: a seed with a few bytes changed, inserted or cut, or (without seeds) random bytes.
Input random_input(const std::vector<Input>& seeds, std::int64_t run) {
  const assay::Stream stream{assay::absorb(0, static_cast<std::uint64_t>(run))};
  std::int64_t used = 0;
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(assay::below(stream.bits(used++), static_cast<std::int64_t>(n)));
  };
  Input input = seeds.empty() ? Input(below(256)) : seeds[below(seeds.size())];
  const std::size_t edits = seeds.empty() ? input.size() : 1 + below(6);
  for (std::size_t edit = 0; edit < edits; ++edit) {
    const std::size_t at = below(input.size() + 1);
    const auto byte = static_cast<std::uint8_t>(below(2) == 0 ? below(256) : 32 + below(95));
    const std::size_t kind = below(4);
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    if (at == input.size() || kind == 0)
      input.insert(place, byte);
    else if (kind == 1)
      input.erase(place, place + static_cast<std::ptrdiff_t>(1 + below(input.size() - at)));
    else
      *place = byte;
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  std::int64_t runs = 2000;
  std::vector<Input> seeds;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("-runs=")) {
      const auto [end, status] = std::from_chars(argument.data() + 6, argument.data() + argument.size(), runs);
      if (status != std::errc{} || end != argument.data() + argument.size()) {
        std::fprintf(stderr, "%s: not a number of runs\n", argument.c_str());
        return 2;
      }
      continue;
    }
    if (!std::filesystem::exists(argument)) {
      std::fprintf(stderr, "%s: no such file or folder\n", argument.c_str());
      return 2;
    }
    if (!std::filesystem::is_directory(argument)) {
      seeds.push_back(read(argument));
      continue;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argument))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& file : files) seeds.push_back(read(file));
  }
  for (const Input& seed : seeds) run(seed);
  for (std::int64_t i = 0; i < runs; ++i) run(random_input(seeds, i));
  std::printf("%zu stored and %lld pseudo-random inputs\n", seeds.size(), static_cast<long long>(runs));
  return 0;
}

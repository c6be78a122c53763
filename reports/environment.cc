// Environment of a run: read from the clock, the kernel, the compiler's own macros, nvidia-smi and the libraries.
#include "reports/environment.h"

#include <flint/flint.h>
#include <fmt/format.h>
#include <gmp.h>
#include <mpfr.h>
#include <sys/utsname.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>
#include <nlohmann/json.hpp>

// Written by cmake/commit.cmake at every build; absent where the build has no such step.
#if __has_include("assay_commit.h")
#include "assay_commit.h"
#else
#define ASSAY_COMMIT "unknown"
#define ASSAY_DIRTY "unknown"
#endif

namespace assay {

namespace {

/// Lines of a command's standard output; empty if it cannot run or fails.
std::vector<std::string> output_lines(const char* command) {
  std::FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 256> buffer = {};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
  if (pclose(pipe) != 0) return {};
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

nlohmann::json gpus() {
  const auto lines =
      output_lines("nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader 2>/dev/null");
  if (lines.empty()) return "none";
  return lines;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

/// The build system's own words if it passes them, and what the compiler's macros say about this translation unit.
std::string flags() {
  std::vector<std::string> facts;
#if defined(ASSAY_BUILD_FLAGS)
  facts.emplace_back(ASSAY_BUILD_FLAGS);
#endif
#if defined(__OPTIMIZE__)
  facts.emplace_back("optimised");
#else
  facts.emplace_back("not optimised");
#endif
#if defined(__SANITIZE_ADDRESS__)
  facts.emplace_back("ASan");
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  facts.emplace_back("ASan");
#endif
#endif
#if defined(__FAST_MATH__)
  facts.emplace_back("fast-math");
#endif
#if defined(__AVX2__)
  facts.emplace_back("AVX2");
#endif
#if defined(__FMA__)
  facts.emplace_back("FMA");
#endif
  return fmt::format("{}", fmt::join(facts, ", "));
}

std::string operating_system() {
  utsname names = {};
  if (uname(&names) != 0) return "unknown";
  return fmt::format("{} {} {}", names.sysname, names.release, names.machine);
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  if (gmtime_r(&now, &parts) == nullptr) return "unknown";
  std::array<char, 32> text = {};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

std::string cpu_model(const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("model name", 0) != 0 && line.rfind("Model", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

nlohmann::json environment(const std::string& date) {
  std::ifstream file("/proc/cpuinfo");
  std::ostringstream cpuinfo;
  cpuinfo << file.rdbuf();
  return {
      {"date", date},
      {"host",
       {{"cpu", cpu_model(cpuinfo.str())}, {"cores", std::thread::hardware_concurrency()}, {"os", operating_system()}}},
      {"build", {{"compiler", compiler()}, {"flags", flags()}, {"commit", ASSAY_COMMIT}, {"dirty", ASSAY_DIRTY}}},
      {"gpu", gpus()},
      {"libraries", {{"mpfr", mpfr_get_version()}, {"flint", FLINT_VERSION}, {"gmp", gmp_version}}}};
}

}  // namespace assay

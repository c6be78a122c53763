// Guards around storages in device memory, and what is said of a broken one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay {

inline constexpr std::int64_t kDeviceGuard = 256;  ///< bytes; also the alignment of cudaMalloc

/// The canary of kernels/guard.h.
inline const std::vector<std::byte>& device_guard() {
  static const std::vector<std::byte> pattern = [] {
    std::vector<std::byte> guard(static_cast<std::size_t>(kDeviceGuard));
    for (std::size_t k = 0; k < guard.size(); ++k) guard[k] = static_cast<std::byte>(k % 2 == 0 ? 0xfa : 0xff);
    return guard;
  }();
  return pattern;
}

/// Position of the first byte in which two ranges of one length differ, or nothing.
inline std::optional<std::int64_t> first_difference(std::span<const std::byte> a, std::span<const std::byte> b) {
  const auto [at, ignored] = std::mismatch(a.begin(), a.end(), b.begin());
  return at == a.end() ? std::nullopt : std::optional(at - a.begin());
}

/// "wrote outside output o on the device: byte 5 behind its 4096 bytes", or nothing. The bytes nearest to the storage
/// come first.
inline std::optional<std::string> guard_finding(const std::string& name, std::int64_t bytes,
                                                std::span<const std::byte> before, std::span<const std::byte> behind) {
  const std::string found = "wrote outside " + name + " on the device: byte ",
                    size = " its " + std::to_string(bytes) + " bytes";
  if (const auto at = first_difference(behind, device_guard())) return found + std::to_string(*at) + " behind" + size;
  if (const auto at = first_difference(before, device_guard()))
    return found + std::to_string(kDeviceGuard - *at) + " before" + size;
  return std::nullopt;
}

}  // namespace assay

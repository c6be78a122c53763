// Params: an op's parameters as key=value text, the form in which they stand in a case line and travel to a worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

/// Ordered key/value pairs. Canonical form (made by Op::canonical): keys in the op's declared order, defaults left out.
struct Params {
  std::vector<std::pair<std::string, std::string>> items;
  bool operator==(const Params&) const = default;

  const std::string* find(std::string_view key) const {
    for (const auto& [name, value] : items)
      if (name == key) return &value;
    return nullptr;
  }
  void set(std::string_view key, std::string value) {
    for (auto& [name, old] : items)
      if (name == key) { old = std::move(value); return; }
    items.emplace_back(key, std::move(value));
  }
  void erase(std::string_view key) {
    std::erase_if(items, [&](const auto& item) { return item.first == key; });
  }
};

/// One parameter of an op, for `assay list ops` and for error messages.
struct ParamInfo {
  std::string_view key;
  std::string_view default_value;  ///< empty: required
  std::string_view summary;
};

}  // namespace assay

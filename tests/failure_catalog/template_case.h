// Case lines from templates: fresh shapes, parameters and seeds from a fixed generator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// `{a..b}` becomes an integer from a to b, `{x|y|z}` one of the words, `{s}` a fresh seed; `{=n}` repeats what the
/// n-th brace before this one became (1: the last).
class TemplateCases {
 public:
  explicit TemplateCases(std::uint64_t seed) : state_(seed) {}

  std::string line(std::string_view text) {
    std::string out;
    std::vector<std::string> chosen;
    while (!text.empty()) {
      const std::size_t open = text.find('{');
      out += text.substr(0, open);
      if (open == std::string_view::npos) break;
      const std::size_t close = text.find('}', open);
      chosen.push_back(choose(text.substr(open + 1, close - open - 1), chosen));
      out += chosen.back();
      text = text.substr(close + 1);
    }
    return out;
  }

 private:
  std::uint64_t below(std::uint64_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33U) % n;
  }
  std::string choose(std::string_view text, const std::vector<std::string>& chosen) {
    if (text == "s") return std::to_string(1 + below(1000000));
    if (text.starts_with('=')) return chosen[chosen.size() - std::stoul(std::string(text.substr(1)))];
    if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
      const std::int64_t low = std::stoll(std::string(text.substr(0, dots)));
      const std::int64_t high = std::stoll(std::string(text.substr(dots + 2)));
      return std::to_string(low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1))));
    }
    std::vector<std::string> words{""};
    for (const char c : text) {
      if (c == '|')
        words.emplace_back();
      else
        words.back() += c;
    }
    return words[below(words.size())];
  }

  std::uint64_t state_;
};

}  // namespace assay

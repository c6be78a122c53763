// Verb: a subcommand and its options. The parser library is seen by verb.cc alone: its headers cost every file that includes them more
// than all the rest of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace assay {

/// What one option must fulfil; otherwise the program ends with the library's message and exit code 2.
class Setting {
 public:
  explicit Setting(CLI::Option* option) : option_(option) {}
  Setting& required();
  Setting& range(long low, long high);  ///< both ends belong to it
  Setting& positive();
  Setting& non_negative();
  Setting& one_of(const std::vector<std::string>& words);
  Setting& one_each();  ///< of a list: one value each time the option is given, instead of all words that follow

 private:
  CLI::Option* option_;
};

class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  /// A verb under this one.
  Verb add(const std::string& name, const std::string& help);
  /// The verb of that name under this one, added if there is none; it must be followed by one of its own.
  Verb group(const std::string& name, const std::string& help);
  /// `name`: "--name", or "name" for a word by its place. T: std::string, std::vector<std::string>, int, unsigned, std::int64_t,
  /// std::uint64_t, double, std::optional<double>.
  template <class T>
  Setting option(const std::string& name, T& value, const std::string& help);
  /// Words in any case, each for a value.
  template <class T>
  void choice(const std::string& name, T& value, const std::vector<std::pair<std::string, T>>& words, const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  void callback(std::function<void()> run);

 private:
  CLI::App* app_;
};

}  // namespace assay

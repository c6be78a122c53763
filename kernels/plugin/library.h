// PluginLibrary: a user's shared object, loaded into this process: its table checked, its manifest's text.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "include/assay_plugin.h"

namespace assay {

/// Says which call into the plug-in comes next ("load", "describe", "prepare", ...), for whoever outlives this process.
using PhaseNote = std::function<void(std::string_view phase)>;

/// Only ever made in a worker: a shared object runs code of its own from the moment it is loaded.
class PluginLibrary {
 public:
  /// Loads `file` and checks its table. Throws InputError naming the file and what is wrong with it.
  PluginLibrary(std::string file, const PhaseNote& note);
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  /// The table, with null for members that the plug-in does not have.
  const assay_plugin& table() const { return table_; }
  /// What `describe` returns: UTF-8, whatever it says. Throws InputError naming the file.
  std::string manifest(const PhaseNote& note) const;

 private:
  [[noreturn]] void bad(const std::string& why) const;

  std::string file_;
  void* handle_ = nullptr;
  assay_plugin table_{};
};

/// "code 7: out of workspace".
std::string error_text(int code, const assay_message& message);
/// The message's text up to its zero, which may be missing.
std::string message_text(const assay_message& message);

}  // namespace assay

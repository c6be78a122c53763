// Loading a shared object and reading its table.
#include "kernels/plugin/library.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>

#include "oracle/error.h"

namespace assay {
namespace {

constexpr std::uint32_t kSmallestTable = offsetof(assay_plugin, prepare);
constexpr std::size_t kLongestManifest = 256 * 1024;

}  // namespace

std::string message_text(const assay_message& message) {
  return {message.text, strnlen(message.text, sizeof message.text)};
}

std::string error_text(int code, const assay_message& message) {
  const std::string text = message_text(message);
  return "code " + std::to_string(code) + (text.empty() ? "" : ": " + text);
}

void PluginLibrary::bad(const std::string& why) const { throw InputError(file_ + ": " + why); }

PluginLibrary::PluginLibrary(std::string file, const PhaseNote& note) : file_(std::move(file)) {
  note("load");
  handle_ = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* why = dlerror();
    bad("cannot be loaded as a shared object: " + std::string(why != nullptr ? why : "no reason given"));
  }
  void* symbol = dlsym(handle_, "assay_get_plugin");
  if (symbol == nullptr) bad("has no symbol assay_get_plugin");
  const auto* table = reinterpret_cast<const assay_plugin* (*)()>(symbol)();
  if (table == nullptr) bad("assay_get_plugin returns no table");
  if (table->abi_version != ASSAY_PLUGIN_ABI)
    bad("abi_version is " + std::to_string(table->abi_version) + "; this assay speaks " +
        std::to_string(ASSAY_PLUGIN_ABI));
  if (table->struct_size < kSmallestTable)
    bad("struct_size is " + std::to_string(table->struct_size) + "; a table has at least " +
        std::to_string(kSmallestTable) + " bytes");
  std::memcpy(&table_, table, table->struct_size < sizeof table_ ? table->struct_size : sizeof table_);
  if (table_.describe == nullptr) bad("describe is NULL");
  if (table_.run == nullptr) bad("run is NULL");
}

PluginLibrary::~PluginLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

std::string PluginLibrary::manifest(const PhaseNote& note) const {
  const char* text = nullptr;
  assay_message message{};
  note("describe");
  if (const int code = table_.describe(&text, &message); code != ASSAY_OK)
    bad("describe fails with " + error_text(code, message));
  if (text == nullptr) bad("describe returns no manifest");
  const std::size_t length = strnlen(text, kLongestManifest + 1);
  if (length > kLongestManifest)
    bad("describe returns a manifest of more than " + std::to_string(kLongestManifest) + " bytes");
  std::string manifest(text, length);
  try {
    nlohmann::json(manifest).dump();
  } catch (const nlohmann::json::exception&) {
    bad("describe returns a manifest that is not UTF-8");
  }
  return manifest;
}

}  // namespace assay

// Quarantine on disk: one input, one JSON record and one text per entry, the record before the input moves.
#include "fuzz/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fuzz/durable_file.h"
#include "fuzz/sha1.h"
#include "reports/environment.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string utf8(const nlohmann::json& document) {
  return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string text_of(const QuarantineEntry& entry, const EngineDeath& death) {
  std::string text = fmt::format("{}: {} in an engine of {}\nkernels: {}\nended: {}\n", entry.name, entry.kind,
                                 entry.op, fmt::join(entry.kernels, ", "), entry.how);
  if (entry.has_input) text += fmt::format("repeat: {} {}\n", death.command, entry.name);
  return text + "its last words:\n\n" + death.tail;
}

}  // namespace

std::vector<QuarantineEntry> Quarantine::entries() const {
  std::vector<QuarantineEntry> all;
  std::error_code none;
  for (const auto& file : fs::directory_iterator(folder_, none)) {
    const bool whole = !file.path().filename().string().starts_with(kUnfinished);
    if (!whole || file.path().extension() != ".json") continue;
    const std::string name = file.path().string();
    const nlohmann::json document = nlohmann::json::parse(read_whole(name));
    all.push_back(quarantine_entry_from_json(JsonField(document, "", name)));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

void Quarantine::add(QuarantineEntry entry, const EngineDeath& death) const {
  fs::create_directories(folder_);
  std::size_t alike = 0;
  for (QuarantineEntry& known : entries()) {
    const bool same = known.name == entry.name;
    const bool set = known.kind == entry.kind && known.op == entry.op && known.kernels == entry.kernels;
    if (!same && !(set && ++alike == kPerSet)) continue;
    ++known.times;
    write_durably((folder_ / (known.name + ".json")).string(), utf8(to_json(known)));
    entry.times = 0;
    break;
  }
  if (entry.times == 0) return;
  write_durably((folder_ / (entry.name + ".txt")).string(), text_of(entry, death));
  write_durably((folder_ / (entry.name + ".json")).string(), utf8(to_json(entry)));
}

std::size_t Quarantine::take(const fs::path& prefix, const EngineDeath& first, const Repeat& repeat) const {
  std::size_t taken = 0;
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& file : fs::directory_iterator(prefix.parent_path(), none))
    if (file.path().filename().string().starts_with(prefix.filename().string())) files.push_back(file.path());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string().substr(prefix.filename().string().size());
    const std::size_t dash = name.rfind('-');
    const std::string kind = name.substr(0, dash);
    const bool torn = dash == std::string::npos || sha1(read_whole(file.string())) != name.substr(dash + 1);
    if (torn || kind == "slow-unit") {
      fs::remove(file);
      continue;
    }
    ++taken;
    const bool known = fs::exists(folder_ / (name + ".json"));
    const EngineDeath death = kind == "crash" && !known ? repeat(file, first) : first;
    add({.name = name,
         .kind = kind == "timeout" ? "hung" : "crashed",
         .op = death.op,
         .kernels = death.kernels,
         .how = kind == "oom" ? "out of memory, " + death.how : death.how,
         .first_seen = utc_now()},
        death);
    // A record without its input is one more of a full set: the input goes.
    if (fs::exists(folder_ / (name + ".json")))
      fs::rename(file, folder_ / name);
    else
      fs::remove(file);
  }
  return taken;
}

void Quarantine::take_without_input(const EngineDeath& death) const {
  std::string key = death.op + "\n" + death.how;
  for (const std::string& kernel : death.kernels) key += "\n" + kernel;
  add({.name = "no-input-" + sha1(key),
       .kind = "crashed",
       .op = death.op,
       .kernels = death.kernels,
       .how = death.how,
       .first_seen = utc_now(),
       .has_input = false},
      death);
}

}  // namespace assay

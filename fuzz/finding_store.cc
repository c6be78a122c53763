// Reads, merges and writes the store's entries under its lock.
#include "fuzz/finding_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fuzz/case_size.h"
#include "fuzz/durable_file.h"
#include "oracle/error.h"
#include "oracle/json_field.h"
#include "reports/environment.h"
#include "reports/view.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr auto kFlushEvery = std::chrono::seconds(1);
constexpr std::int64_t kShrunkAgain = 4;  // and at every power of two above
constexpr std::array<const char*, 2> kEnds{"smallest", "worst"};

std::string folder_of(const std::string& kernel, const Signature& signature) {
  std::string name = kernel + "--" + signature.slug();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("_-+.").find(c) == std::string_view::npos)
      c = '_';
  return name;
}

bool unfinished(const std::filesystem::path& path) { return path.filename().string().starts_with(kUnfinished); }

Json end_of(const Record& record) {
  return {{"case", record.case_line},
          {"repro", repro_command(record)},
          {"used", number_to_json(worst_used(record))},
          {"record", to_json(record)}};
}

Json read_entry(const std::string& file) {
  try {
    return Json::parse(read_whole(file));
  } catch (const Json::parse_error& error) {
    throw InputError(file + ": " + error.what());
  }
}

StoredFinding finding_from(const Json& entry, const std::string& folder, const std::string& file) {
  const JsonField top(entry, "", file);
  if (top["version"].integer() != kVersion) top["version"].fail(std::to_string(kVersion));
  const JsonField signature = top["signature"];
  StoredFinding finding{.folder = folder,
                        .kernel = top["kernel"].text(),
                        .signature = {signature["op"].text(), signature["mode"].text(), signature["locus"].text(),
                                      signature["band"].text()},
                        .count = top["count"].integer(),
                        .seen_as = {},
                        .smallest_line = top["smallest"]["case"].text(),
                        .worst_line = top["worst"]["case"].text(),
                        .worst_used = top["worst"]["used"].number()};
  for (const JsonField& slug : top["seen_as"].elements()) finding.seen_as.push_back(slug.text());
  for (const char* end : kEnds) top[end]["repro"].text();
  return finding;
}

/// The files that say what finding.json says, by name.
std::vector<std::pair<const char*, std::string>> views_of(const Json& entry) {
  const auto text = [&](const char* end, const char* member) { return entry[end][member].get<std::string>() + "\n"; };
  return {{"smallest.case", text("smallest", "case")},
          {"worst.case", text("worst", "case")},
          {"repro.txt", text("smallest", "repro") + text("worst", "repro")}};
}

void write_views(const std::string& folder, const Json& entry) {
  for (const auto& [name, text] : views_of(entry)) {
    const std::string file = folder + "/" + name;
    std::error_code none;
    if (!std::filesystem::exists(file, none) || read_whole(file) != text) write_durably(file, text);
  }
}

/// finding.json first: what dies behind it is mended from it.
void write_entry(const std::string& folder, const Json& entry) {
  write_durably(folder + "/finding.json", json_text(entry));
  write_views(folder, entry);
}

void write_new_entry(const std::string& dir, const std::string& folder, const Json& entry) {
  const std::string beside = dir + "/" + std::string(kUnfinished) + folder, place = dir + "/" + folder;
  std::error_code error;
  std::filesystem::remove_all(beside, error);
  if (!std::filesystem::create_directory(beside, error))
    throw EnvironmentError(place + ": cannot be made: " + error.message());
  try {
    write_entry(beside, entry);
  } catch (const EnvironmentError& failure) {
    std::filesystem::remove_all(beside, error);
    throw EnvironmentError(place + ": the finding is not kept: " + failure.what());
  }
  std::filesystem::rename(beside, place, error);
  if (error) throw EnvironmentError(place + ": cannot be renamed to: " + error.message());
  sync_folder(dir);
}

void add_seen_as(Json& entry, const std::string& slug) {
  Json& list = entry["seen_as"];
  if (std::find(list.begin(), list.end(), slug) == list.end()) list.push_back(slug);
}

std::string key_of(const std::string& kernel, const std::string& slug) { return kernel + " " + slug; }

}  // namespace

std::string_view stored_name(Stored stored) {
  switch (stored) {
    case Stored::kNew: return "new";
    case Stored::kSmaller: return "smaller";
    case Stored::kWorse: return "worse";
    case Stored::kKnown: break;
  }
  return "known";
}

FindingStore::FindingStore(std::string dir) : dir_(std::move(dir)), flushed_(Clock::now()) {
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  if (!std::filesystem::is_directory(dir_)) throw EnvironmentError(dir_ + ": cannot be made: " + error.message());
  const FileLock lock(dir_ + "/.lock");
  std::vector<std::filesystem::path> leftovers;
  for (const auto& item : std::filesystem::recursive_directory_iterator(dir_))
    if (unfinished(item.path())) leftovers.push_back(item.path());
  for (const std::filesystem::path& leftover : leftovers) std::filesystem::remove_all(leftover, error);
  for (const StoredFinding& finding : findings())
    write_views(dir_ + "/" + finding.folder, read_entry(path(finding.folder, "finding.json")));
}

FindingStore::~FindingStore() {
  try {
    flush();
  } catch (const std::exception&) {
  }
}

std::string FindingStore::path(const std::string& folder, const char* file) const {
  return dir_ + "/" + folder + "/" + file;
}

std::vector<StoredFinding> FindingStore::findings() const {
  std::vector<std::string> folders;
  for (const auto& item : std::filesystem::directory_iterator(dir_))
    if (!unfinished(item.path()) && std::filesystem::exists(item.path() / "finding.json"))
      folders.push_back(item.path().filename().string());
  std::sort(folders.begin(), folders.end());
  std::vector<StoredFinding> all;
  for (const std::string& folder : folders) {
    const std::string file = path(folder, "finding.json");
    all.push_back(finding_from(read_entry(file), folder, file));
  }
  return all;
}

FindingStore::Seen* FindingStore::known(const std::string& kernel, const std::string& slug) {
  const std::string key = key_of(kernel, slug);
  if (const auto at = seen_.find(key); at != seen_.end()) return &at->second;
  for (const StoredFinding& finding : findings()) {
    if (finding.kernel != kernel ||
        std::find(finding.seen_as.begin(), finding.seen_as.end(), slug) == finding.seen_as.end())
      continue;
    Seen seen{.folder = finding.folder,
              .worst_used = finding.worst_used,
              .own = finding.signature.slug() == slug,
              .worse = {}};
    if (seen.own) seen.elements = case_elements(parse_case(finding.smallest_line));
    return &seen_.emplace(key, std::move(seen)).first->second;
  }
  return nullptr;
}

FindingStore::Added FindingStore::enter(const Record& smallest, const Record& raw, const std::string& seen_as) {
  if (environment_.empty()) environment_ = environment().dump();
  const Signature signature = signature_of(parse_case(smallest.case_line), smallest);
  Added added{.stored = Stored::kKnown, .folder = folder_of(smallest.kernel, signature)};
  const Record& worst = worst_used(raw) > worst_used(smallest) ? raw : smallest;
  const std::string now = utc_now();
  const FileLock lock(dir_ + "/.lock");
  const std::string folder = dir_ + "/" + added.folder;
  if (!std::filesystem::exists(folder + "/finding.json")) {
    added.stored = Stored::kNew;
    Json entry = {
        {"version", kVersion},
        {"kernel", smallest.kernel},
        {"signature",
         {{"op", signature.op}, {"mode", signature.mode}, {"locus", signature.locus}, {"band", signature.band}}},
        {"count", 1},
        {"first", now},
        {"last", now},
        {"seen_as", {signature.slug()}},
        {"environment", Json::parse(environment_)},
        {"smallest", end_of(smallest)},
        {"worst", end_of(worst)}};
    add_seen_as(entry, seen_as);
    write_new_entry(dir_, added.folder, entry);
    return added;
  }
  const std::string file = folder + "/finding.json";
  Json entry = read_entry(file);
  const StoredFinding old = finding_from(entry, added.folder, file);
  entry["count"] = old.count + 1;
  entry["last"] = now;
  add_seen_as(entry, seen_as);
  if (worst_used(worst) > old.worst_used) {
    entry["worst"] = end_of(worst);
    added.stored = Stored::kWorse;
  }
  if (is_smaller(parse_case(smallest.case_line), case_size(parse_case(old.smallest_line)))) {
    entry["smallest"] = end_of(smallest);
    added.stored = Stored::kSmaller;
  }
  write_entry(folder, entry);
  return added;
}

FindingStore::Added FindingStore::add(const Record& record, const Shrink& shrink) {
  if (Clock::now() - flushed_ > kFlushEvery) flush();
  const Case c = parse_case(record.case_line);
  const Signature signature = signature_of(c, record);
  const std::string slug = signature.slug();
  Seen* seen = known(record.kernel, slug);
  const auto due = [](std::int64_t count) {
    return count >= kShrunkAgain && std::has_single_bit(static_cast<std::uint64_t>(count));
  };
  const bool shrink_now = shrink && (seen == nullptr || due(seen->count + 1));
  if (seen == nullptr || shrink_now || (seen->own && case_elements(c) < seen->elements)) {
    const Added added = enter(shrink_now ? shrink(record) : record, record, slug);
    if (seen == nullptr) seen = known(record.kernel, slug);
    if (seen != nullptr) {
      ++seen->count;
      if (seen->folder == added.folder) {
        seen->worst_used = std::max(seen->worst_used, worst_used(record));
        if (seen->own && added.stored == Stored::kSmaller) seen->elements = std::min(seen->elements, case_elements(c));
      }
    }
    return added;
  }
  ++seen->count, ++seen->unwritten;
  if (!(worst_used(record) > seen->worst_used)) return {Stored::kKnown, seen->folder};
  seen->worst_used = worst_used(record);
  seen->worse = record;
  return {Stored::kWorse, seen->folder};
}

void FindingStore::flush() {
  flushed_ = Clock::now();
  for (auto& [key, seen] : seen_) {
    if (seen.unwritten == 0) continue;
    const FileLock lock(dir_ + "/.lock");
    const std::string file = path(seen.folder, "finding.json");
    Json entry = read_entry(file);
    const StoredFinding old = finding_from(entry, seen.folder, file);
    entry["count"] = old.count + seen.unwritten;
    entry["last"] = utc_now();
    if (seen.worse && worst_used(*seen.worse) > old.worst_used) entry["worst"] = end_of(*seen.worse);
    write_entry(dir_ + "/" + seen.folder, entry);
    seen.unwritten = 0;
    seen.worse.reset();
  }
}

}  // namespace assay

// Torn files, and the merge.
#include "fuzz/shared_corpus.h"

#include <algorithm>
#include <set>
#include <thread>

#include "fuzz/durable_file.h"
#include "fuzz/sha1.h"
#include "oracle/error.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.is_regular_file(none)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_torn(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.size() != 40 || name.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  try {
    return sha1(read_whole(file.string())) != name;
  } catch (const EnvironmentError&) {  // gone: another process merges
    return false;
  }
}

}  // namespace

std::int64_t remove_torn(const fs::path& corpus, bool others) {
  std::vector<fs::path> torn = files_in(corpus);
  std::erase_if(torn, [](const fs::path& file) { return !is_torn(file); });
  if (others && !torn.empty()) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::erase_if(torn, [](const fs::path& file) { return !is_torn(file); });
  }
  std::int64_t removed = 0;
  for (const fs::path& file : torn) removed += fs::remove(file);
  return removed;
}

std::int64_t corpus_size(const fs::path& corpus) { return static_cast<std::int64_t>(files_in(corpus).size()); }

bool merge_corpus(const fs::path& corpus, const fs::path& work, const std::function<bool(const fs::path& out)>& merge) {
  fs::remove_all(work);
  const std::vector<fs::path> before = files_in(corpus);
  if (before.empty()) return false;
  const fs::path out = work / "out";
  fs::create_directories(out);
  const bool whole = merge(out) && remove_torn(out, false) == 0;
  std::set<std::string> chosen;
  for (const fs::path& file : files_in(out)) chosen.insert(file.filename().string());
  const bool merged = whole && !chosen.empty();
  if (merged) {
    for (const std::string& name : chosen) fs::rename(out / name, corpus / name);
    for (const fs::path& file : before)
      if (!chosen.contains(file.filename().string())) fs::remove(file);
  }
  fs::remove_all(work);
  return merged;
}

}  // namespace assay

// Files that survive kill -9 and a full disk: written beside their place, synced, then renamed over it.
#pragma once

#include <string>
#include <string_view>

namespace assay {

/// Begins the name of whatever is not finished; a leftover of a killed process that readers must ignore.
inline constexpr std::string_view kUnfinished = ".unfinished-";

/// Replaces `path` by `text`, or leaves it as it was and throws EnvironmentError naming the file and the reason.
void write_durably(const std::string& path, const std::string& text);

/// Syncs a folder, so that renames in it last. Throws EnvironmentError.
void sync_folder(const std::string& folder);

/// The whole file. Throws EnvironmentError naming it.
std::string read_whole(const std::string& path);

/// Holds an exclusive lock on a file, made if it is missing, until destroyed: between processes and inside one.
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace assay

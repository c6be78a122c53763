// TryLock: one process at a time; the kernel lets go of it when its holder ends, however it ends.
#pragma once

#include <filesystem>
#include <string>

namespace assay {

class TryLock {
 public:
  /// Tries once. The file stays, and holds the number of the process that has the lock.
  explicit TryLock(const std::filesystem::path& file);
  ~TryLock();
  TryLock(const TryLock&) = delete;
  TryLock& operator=(const TryLock&) = delete;

  bool held() const { return held_; }
  /// Who has it, where this one has not: what the file says.
  const std::string& holder() const { return holder_; }

 private:
  int file_ = -1;
  bool held_ = false;
  std::string holder_;
};

}  // namespace assay

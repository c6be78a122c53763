// TryLock over flock.
#include "fuzz/try_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "oracle/error.h"

namespace assay {

TryLock::TryLock(const std::filesystem::path& file) {
  file_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) throw EnvironmentError(file.string() + ": cannot be opened: " + std::strerror(errno));
  held_ = flock(file_, LOCK_EX | LOCK_NB) == 0;
  if (held_) {
    const std::string pid = std::to_string(getpid());
    // The number is for people: a full disk must not keep a campaign from saying so itself.
    if (ftruncate(file_, 0) == 0 && pwrite(file_, pid.data(), pid.size(), 0) < 0) holder_ = pid;
    return;
  }
  std::array<char, 32> text{};
  const ssize_t length = pread(file_, text.data(), text.size(), 0);
  holder_.assign(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

TryLock::~TryLock() { close(file_); }

}  // namespace assay

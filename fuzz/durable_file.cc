// Durable files over open, write, fsync, rename and flock, with every result looked at.
#include "fuzz/durable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "oracle/error.h"

namespace assay {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw EnvironmentError(path + ": " + what + ": " + std::strerror(error));
}

/// A file descriptor that is closed whatever happens.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

/// 0, or the errno of the step that failed.
int write_new_file(const std::string& path, const std::string& text) {
  Descriptor file{open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (file.fd < 0) return errno;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(file.fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    done += static_cast<std::size_t>(n);
  }
  if (fsync(file.fd) != 0 && errno != EINVAL) return errno;  // EINVAL: a device
  const int closed = close(file.fd);
  file.fd = -1;
  return closed == 0 ? 0 : errno;
}

}  // namespace

void write_durably(const std::string& path, const std::string& text) {
  const std::filesystem::path place(path);
  const std::filesystem::path folder = place.has_parent_path() ? place.parent_path() : ".";
  const std::string temporary =
      (folder / (std::string(kUnfinished) + std::to_string(getpid()) + "-" + place.filename().string())).string();
  int error = write_new_file(temporary, text);
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(temporary.c_str());
    fail(path, "cannot be written", error);
  }
  sync_folder(folder.string());
}

void sync_folder(const std::string& folder) {
  const Descriptor dir{open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (dir.fd < 0 || (fsync(dir.fd) != 0 && errno != EINVAL)) fail(folder, "cannot be synced", errno);
}

std::string read_whole(const std::string& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) fail(path, "cannot be read", errno);
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = read(file.fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot be read", errno);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

FileLock::FileLock(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (fd_ < 0) fail(path, "cannot be opened", errno);
  while (flock(fd_, LOCK_EX) != 0)
    if (errno != EINTR) {
      const int error = errno;
      close(fd_);
      fail(path, "cannot be locked", error);
    }
}

FileLock::~FileLock() { close(fd_); }

}  // namespace assay

// A sealed memory file, and where the zones of a problem lie in it.
#include "kernels/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "kernels/guard.h"
#include "oracle/error.h"

namespace assay {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw EnvironmentError("shared memory: " + what + ": " + std::strerror(errno));
}

}  // namespace

SharedMemory::SharedMemory() {
  const int fd = memfd_create("assay", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) fail("cannot create");
  fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 10);  // clear of the numbers that a child's descriptors are moved to
  close(fd);
  if (fd_ < 0) fail("cannot create");
  if (fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    const int error = errno;
    close(fd_);
    errno = error;
    fail("cannot seal");
  }
}

SharedMemory::~SharedMemory() {
  unmap();
  close(fd_);
}

void SharedMemory::unmap() {
  if (start_ != nullptr) munmap(start_, mapped_);
  start_ = nullptr;
}

std::span<std::byte> SharedMemory::resize(std::int64_t bytes) {
  if (start_ == nullptr || static_cast<std::size_t>(bytes) > mapped_) {
    unmap();
    // Allocates the pages now: an error here instead of a SIGBUS later.
    for (int error = EINTR; error != 0;) {
      error = posix_fallocate(fd_, 0, bytes);
      errno = error;
      if (error != 0 && error != EINTR) fail("cannot allocate " + std::to_string(bytes) + " bytes");
    }
    void* start = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (start == MAP_FAILED) fail("cannot map " + std::to_string(bytes) + " bytes");
    start_ = static_cast<std::byte*>(start);
    mapped_ = static_cast<std::size_t>(bytes);
  }
  return {start_, static_cast<std::size_t>(bytes)};
}

ZonePlan::ZonePlan(const std::vector<Tensor>& input_tensors, const std::vector<TensorLayout>& output_layouts) {
  const auto place = [this](const TensorLayout& layout) {
    const std::int64_t at = bytes;
    bytes += zone_bytes(layout);
    return at;
  };
  for (const Tensor& input : input_tensors) inputs.push_back(place(input.layout));
  for (const TensorLayout& output : output_layouts) outputs.push_back(place(output));
  if (bytes == 0) bytes = 4096;
}

}  // namespace assay

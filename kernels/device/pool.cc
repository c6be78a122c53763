// One list of free blocks for each thread and kind of memory.
#include "kernels/device/pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "kernels/device/check.cuh"

namespace assay {
namespace {

constexpr std::int64_t kSmallest = std::int64_t{1} << 20;
constexpr std::int64_t kLargestKept = std::int64_t{64} << 20;

void release(PooledMemory::Kind kind, std::byte* data) {
  // Errors are left to the calls that still expect something of the device.
  if (kind == PooledMemory::Kind::kDevice)
    cudaFree(data);
  else
    cudaFreeHost(data);
}

struct Block {
  std::byte* data;
  std::int64_t bytes;
};

class FreeBlocks {
 public:
  explicit FreeBlocks(PooledMemory::Kind kind) : kind_(kind) {}
  ~FreeBlocks() { clear(); }
  FreeBlocks(const FreeBlocks&) = delete;
  FreeBlocks& operator=(const FreeBlocks&) = delete;

  /// A free block of at least that size, or none.
  Block take(std::int64_t bytes) {
    const auto at = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.bytes >= bytes; });
    if (at == blocks_.end()) return {nullptr, 0};
    const Block block = *at;
    blocks_.erase(at);
    return block;
  }
  void give(Block block) { blocks_.push_back(block); }
  void clear() {
    for (const Block& block : blocks_) release(kind_, block.data);
    blocks_.clear();
  }

 private:
  PooledMemory::Kind kind_;
  std::vector<Block> blocks_;
};

FreeBlocks& free_blocks(PooledMemory::Kind kind) {
  thread_local FreeBlocks device(PooledMemory::Kind::kDevice), pinned(PooledMemory::Kind::kPinned);
  return kind == PooledMemory::Kind::kDevice ? device : pinned;
}

cudaError_t allocate(PooledMemory::Kind kind, void** data, std::size_t bytes) {
  return kind == PooledMemory::Kind::kDevice ? cudaMalloc(data, bytes) : cudaMallocHost(data, bytes);
}

}  // namespace

PooledMemory::PooledMemory(Kind kind, std::int64_t bytes, const std::string& what) : kind_(kind) {
  FreeBlocks& free = free_blocks(kind);
  const Block block = free.take(bytes);
  data_ = block.data, bytes_ = block.bytes;
  if (data_ != nullptr) return;
  free.clear();  // those are too small for what is asked now
  bytes_ = bytes > kLargestKept
               ? bytes
               : std::max(kSmallest, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes))));
  void* data = nullptr;
  check_cuda(allocate(kind, &data, static_cast<std::size_t>(bytes_)), std::to_string(bytes) + " bytes for " + what);
  data_ = static_cast<std::byte*>(data);
}

PooledMemory::~PooledMemory() {
  if (data_ == nullptr) return;
  if (bytes_ > kLargestKept)
    release(kind_, data_);
  else
    free_blocks(kind_).give({data_, bytes_});
}

PooledMemory::PooledMemory(PooledMemory&& other) noexcept
    : kind_(other.kind_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

}  // namespace assay

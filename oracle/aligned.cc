// Large arrays that were given back, kept for the next evaluation: fresh pages cost as much as half a product.
#include "oracle/aligned.h"

#include <bit>
#include <mutex>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace assay {
namespace {

constexpr std::size_t kLine = 64, kHugePage = std::size_t{1} << 21;
constexpr std::size_t kLeastKept = std::size_t{1} << 18;  // bytes; smaller ones the C library keeps well enough
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_KEEPS_NOTHING 1  // clang's word for __SANITIZE_ADDRESS__
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(ASSAY_KEEPS_NOTHING)
constexpr std::size_t kMostKept = 0;  // a kept array would hide uses after it was freed
#else
constexpr std::size_t kMostKept = std::size_t{1} << 26;  // bytes, all together
#endif

/// What `bytes` is rounded up to, so that arrays of about one size can take each other's place: eight sizes per power
/// of two.
std::size_t size_class(std::size_t bytes) {
  if (bytes < kLeastKept) return bytes;
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

std::align_val_t alignment(std::size_t bytes) { return std::align_val_t{bytes >= kHugePage ? kHugePage : kLine}; }

struct Block {
  void* at;
  std::size_t bytes;
};

/// Freed blocks, the oldest first.
struct Kept {
  std::mutex mutex;
  std::vector<Block> blocks;
  std::size_t bytes = 0;

  Block remove(std::size_t i) {
    const Block block = blocks[i];
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
    bytes -= block.bytes;
    return block;
  }
};

Kept& kept() {
  static Kept* const kKept = new Kept;  // outlives every array
  return *kKept;
}

void drop_beyond(std::size_t most) {
  Kept& k = kept();
  while (k.bytes > most) {
    const Block oldest = k.remove(0);
    ::operator delete(oldest.at, alignment(oldest.bytes));
  }
}

}  // namespace

void* take_large_array(std::size_t bytes) {
  const std::size_t size = size_class(bytes);
  if (size >= kLeastKept) {
    Kept& k = kept();
    const std::lock_guard lock(k.mutex);
    for (std::size_t i = k.blocks.size(); i-- > 0;)
      if (k.blocks[i].bytes == size) return k.remove(i).at;
  }
  void* at = ::operator new(size, alignment(size));
#if defined(__linux__)
  // Advice only: a failure costs page faults.
  if (size >= kHugePage) madvise(at, size, MADV_HUGEPAGE);
#endif
  return at;
}

void give_large_array(void* at, std::size_t bytes) {
  const std::size_t size = size_class(bytes);
  if (size < kLeastKept || size > kMostKept) return ::operator delete(at, alignment(size));
  Kept& k = kept();
  const std::lock_guard lock(k.mutex);
  k.blocks.push_back({at, size});
  k.bytes += size;
  drop_beyond(kMostKept);
}

void drop_large_arrays() {
  const std::lock_guard lock(kept().mutex);
  drop_beyond(0);
}

}  // namespace assay

// A vector for large arrays: aligned to cache lines, in huge pages, and not cleared before it is written.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace assay {

/// `resize` leaves new elements uninitialised; `assign` and `resize(n, value)` write them.
template <class T>
struct LargeArrayAllocator {
  using value_type = T;
  static constexpr std::size_t kLine = 64, kHugePage = std::size_t{1} << 21;
  LargeArrayAllocator() = default;
  template <class U>
  explicit LargeArrayAllocator(const LargeArrayAllocator<U>&) {}
  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    void* p = ::operator new(bytes, alignment(n));
#if defined(__linux__)
    // Advice only: a failure costs page faults.
    if (bytes >= kHugePage) madvise(p, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t n) { ::operator delete(p, alignment(n)); }
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  bool operator==(const LargeArrayAllocator&) const = default;

 private:
  static std::align_val_t alignment(std::size_t n) { return std::align_val_t{n * sizeof(T) >= kHugePage ? kHugePage : kLine}; }
};

template <class T>
using AlignedVector = std::vector<T, LargeArrayAllocator<T>>;

}  // namespace assay

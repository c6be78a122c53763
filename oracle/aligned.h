// A vector for large arrays: aligned to cache lines, in huge pages, not cleared before it is written, and kept for
// reuse once freed.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace assay {

/// Memory that holds anything; up to 64 MiB of what is given back stays for the next who takes as much. Throws
/// std::bad_alloc.
void* take_large_array(std::size_t bytes);
void give_large_array(void* at, std::size_t bytes);
/// Frees what is kept.
void drop_large_arrays();

/// `resize` leaves new elements uninitialised; `assign` and `resize(n, value)` write them.
template <class T>
struct LargeArrayAllocator {
  using value_type = T;
  LargeArrayAllocator() = default;
  template <class U>
  explicit LargeArrayAllocator(const LargeArrayAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(take_large_array(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) { give_large_array(p, n * sizeof(T)); }
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  bool operator==(const LargeArrayAllocator&) const = default;
};

template <class T>
using AlignedVector = std::vector<T, LargeArrayAllocator<T>>;

/// Makes x at least n long without keeping what it holds.
template <class T>
void make_room(AlignedVector<T>& x, std::size_t n) {
  if (x.size() >= n) return;
  x.clear();
  x.resize(n);
}

}  // namespace assay

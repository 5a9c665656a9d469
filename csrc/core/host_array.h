// Memory for the length of a call, from the allocator that keeps it for the next one.
#pragma once
#include <cstdint>

#include "core/host_allocator.h"

namespace facula {

// n elements that are not initialised.
template <class T>
class HostArray {
 public:
  explicit HostArray(int64_t n)
      : bytes_(size_t(n) * sizeof(T)), data_(static_cast<T*>(host_allocate(bytes_))) {}
  ~HostArray() { host_free(data_, bytes_); }
  HostArray(const HostArray&) = delete;
  HostArray& operator=(const HostArray&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  size_t bytes_;
  T* data_;
};

// The same, but in the object itself up to kBytes: threads that ask the allocator for each of many
// small pieces of work wait for each other.
template <class T, int64_t kBytes>
class LocalArray {
 public:
  explicit LocalArray(int64_t n)
      : more_(n * int64_t(sizeof(T)) > kBytes ? n : 0),
        data_(n * int64_t(sizeof(T)) > kBytes ? more_.data() : reinterpret_cast<T*>(own_)) {}
  LocalArray(const LocalArray&) = delete;
  LocalArray& operator=(const LocalArray&) = delete;
  T* data() const { return data_; }

 private:
  alignas(kHostAlignment) unsigned char own_[size_t(kBytes)];
  HostArray<T> more_;
  T* data_;
};

}  // namespace facula

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

}  // namespace facula

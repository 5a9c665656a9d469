// Exceptions of the CUDA layer.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>

namespace facula::cuda {

// A failed call of the driver, NVRTC or cuBLAS. `code` is the library's own error number, or 0
// where no library call was involved.
class CudaError : public std::runtime_error {
 public:
  explicit CudaError(const std::string& what, int code = 0)
      : std::runtime_error(what), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// A shared library that could not be found; the text names it and the pip line that brings it.
class MissingLibrary : public CudaError {
 public:
  using CudaError::CudaError;
};

// No GPU, no driver, or a device number out of range.
class NoDevice : public CudaError {
 public:
  using CudaError::CudaError;
};

// Device memory ran out after the cache was emptied. The allocator stays usable.
class OutOfMemory : public CudaError {
 public:
  OutOfMemory(const std::string& what, size_t requested)
      : CudaError(what, 2), requested_(requested) {}
  size_t requested() const { return requested_; }

 private:
  size_t requested_;
};

}  // namespace facula::cuda

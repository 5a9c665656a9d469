// Shapes as kernels want them: dimensions sorted and merged, and divisions made cheap.
#pragma once
#include <cstdint>

namespace facula::cuda {

constexpr int kLaunchOperands = 8;  // the result and seven inputs
constexpr int kLaunchDims = 64;     // of what a caller may hand over
constexpr int kKernelDims = 16;     // of what a kernel takes after merging

// Byte strides of several operands over one shape, outermost dimension first.
struct Layout {
  int ndim = 0;
  int operands = 0;
  int64_t sizes[kLaunchDims];
  int64_t strides[kLaunchOperands][kLaunchDims];

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }

  // Drops dimensions of size 1.
  void squeeze();
  // Orders dimensions so that strides fall: the first operand's where it has any, then others'.
  void sort();
  // Merges neighbours that all operands walk through in one step.
  void merge();

  // The largest distance in bytes of any element from an operand's first one.
  int64_t reach() const;
};

// q = (high 32 bits of n * magic + n) >> shift for n < 2^31; Divider<uint32> on the device.
struct Divider32 {
  uint32_t divisor, magic, shift;
};
Divider32 divider(uint32_t divisor);

// Writes a kernel's argument struct field by field, with the alignment that C++ gives them.
class ArgumentWriter {
 public:
  template <class Value>
  void put(Value value) {
    size_ = (size_ + alignof(Value) - 1) / alignof(Value) * alignof(Value);
    *reinterpret_cast<Value*>(buffer_ + size_) = value;
    size_ += int(sizeof(Value));
  }
  // Goes on at a multiple of `bytes`, as before a struct with that alignment.
  void align(int bytes) { size_ = (size_ + bytes - 1) / bytes * bytes; }
  void put_slot(const unsigned char* slot);  // 16 bytes, aligned to 16
  void* data() { return buffer_; }

 private:
  int size_ = 0;
  alignas(16) unsigned char buffer_[4096];  // the limit of a kernel's parameters
};

}  // namespace facula::cuda

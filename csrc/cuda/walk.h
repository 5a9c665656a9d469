// Strided operands of a kernel that visits the elements of one shape in row-major order
// (_kernels/walk.cuh).
#pragma once
#include "core/tensor.h"
#include "cuda/jit.h"
#include "cuda/layout.h"

namespace facula::cuda {

class Walk {
 public:
  explicit Walk(IntSpan shape);

  // Adds an operand that broadcasts to the shape; along `still`, if given, it stands still.
  void add(const Tensor& t, int64_t still = -1);
  // The same, with strides in bytes for every dimension of the shape.
  void add(const int64_t* strides);
  // After the last operand: merges what can be merged. Throws CudaError beyond kKernelDims. In
  // memory order, dimensions are sorted first, and i counts the first operand's elements as they
  // lie.
  void finish(bool memory_order = false);

  int64_t count() const { return count_; }
  // What the kernel is specialised by, as macros and as bits of its key (6 of them).
  void define(KernelText& text) const;
  uint64_t bits() const { return uint64_t(ndim_) | uint64_t(wide_) << 5; }
  void write(ArgumentWriter& out) const;

 private:
  Layout layout_;
  int64_t count_;
  int ndim_ = 1;
  bool wide_ = false;
};

}  // namespace facula::cuda

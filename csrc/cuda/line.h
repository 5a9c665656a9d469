// How kernels that work on lines of a dense (outer, n, inner) tensor are specialised and launched
// (_kernels/line.cuh).
#pragma once
#include <initializer_list>

#include "core/tensor.h"
#include "cuda/jit.h"
#include "cuda/layout.h"

namespace facula::cuda {

// The most elements that one access of up to 16 bytes may take: `most`, halved until all tensors
// are aligned to it and it divides n.
int vector_width(int64_t n, std::initializer_list<const Tensor*> tensors, int most = 16);

class LinePlan {
 public:
  // `held`: operands whose lines threads hold in registers where they fit. `tensors` are all that
  // are read or written along the lines; undefined ones do not count.
  LinePlan(int64_t outer, int64_t n, int64_t inner, int held,
           std::initializer_list<const Tensor*> tensors);

  int vector() const { return vector_; }  // elements loaded at once
  LaunchShape launch() const;
  // 16 bits of a kernel's key.
  uint64_t bits() const;
  void define(KernelText& text, DType compute) const;
  void write(ArgumentWriter& out) const;

 private:
  int64_t lines_, n_, inner_;
  int lanes_ = 1, beside_ = 1, vector_ = 1, items_ = 0;
};

}  // namespace facula::cuda

#include "cuda/walk.h"

#include <algorithm>
#include <climits>

#include "cuda/error.h"

namespace facula::cuda {

Walk::Walk(IntSpan shape) {
  layout_.ndim = int(shape.size());
  std::copy(shape.begin(), shape.end(), layout_.sizes);
  count_ = layout_.count();
}

void Walk::add(const Tensor& t, int64_t still) {
  int64_t* strides = layout_.strides[layout_.operands++];
  const int64_t lead = layout_.ndim - t.dim();
  for (int64_t d = 0; d < layout_.ndim; ++d) {
    const int64_t k = d - lead;
    const bool repeats = k < 0 || d == still || (t.sizes()[k] == 1 && layout_.sizes[d] != 1);
    strides[d] = repeats ? 0 : t.strides()[k] * int64_t(t.item_size());
  }
}

void Walk::add(const int64_t* strides) {
  std::copy_n(strides, layout_.ndim, layout_.strides[layout_.operands++]);
}

void Walk::finish(bool memory_order) {
  layout_.squeeze();
  if (memory_order) layout_.sort();
  layout_.merge();
  if (layout_.ndim > kKernelDims)
    throw CudaError("more than " + std::to_string(kKernelDims) +
                    " dimensions that cannot be merged; make the tensors contiguous first");
  ndim_ = layout_.ndim <= 1 ? 1 : layout_.ndim <= 3 ? 3 : layout_.ndim <= 6 ? 6 : kKernelDims;
  wide_ = count_ > INT_MAX || layout_.reach() > INT_MAX;
}

void Walk::define(KernelText& text) const {
  text.define("FACULA_NDIM", std::to_string(ndim_));
  text.define("FACULA_INDEX", wide_ ? "uint64" : "uint32");
}

void Walk::write(ArgumentWriter& out) const {
  auto inner = [&](int d) { return layout_.ndim - 1 - d; };
  for (int d = 0; d < ndim_; ++d) {
    const int64_t size = d < layout_.ndim ? std::max<int64_t>(layout_.sizes[inner(d)], 1) : 1;
    if (wide_) out.put<uint64_t>(uint64_t(size));
    else out.put<Divider32>(divider(uint32_t(size)));
  }
  for (int k = 0; k < layout_.operands; ++k)
    for (int d = 0; d < ndim_; ++d) {
      const int64_t stride = d < layout_.ndim ? layout_.strides[k][inner(d)] : 0;
      if (wide_) out.put<int64_t>(stride);
      else out.put<int32_t>(int32_t(stride));
    }
}

}  // namespace facula::cuda

// Copies of what views show.
#include "op/kernels/view_copies.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"

namespace facula::kernels {

namespace {

Tensor copied(const Tensor& view) {
  return op::clone(view, MemoryFormat::Contiguous);
}

std::vector<Tensor> copied(std::vector<Tensor> views) {
  for (Tensor& view : views) view = copied(view);
  return views;
}

}  // namespace

Tensor alias_copy(const Tensor& self) {
  return copied(self);
}

Tensor detach_copy(const Tensor& self) {
  return copied(op::detach(self));
}

Tensor as_strided_copy(const Tensor& self, IntSpan size, IntSpan stride,
                       std::optional<int64_t> storage_offset) {
  return copied(op::as_strided(self, size, stride, storage_offset));
}

Tensor view_copy(const Tensor& self, IntSpan size) {
  return copied(op::reshape(self, size));  // memory that allows no view is copied all the same
}

Tensor view_copy_dtype(const Tensor& self, DType dtype) {
  return copied(op::view_dtype(self, dtype));
}

Tensor expand_copy(const Tensor& self, IntSpan size, bool implicit) {
  return copied(op::expand(self, size, implicit));
}

Tensor transpose_copy(const Tensor& self, int64_t dim0, int64_t dim1) {
  return copied(op::transpose(self, dim0, dim1));
}

Tensor t_copy(const Tensor& self) {
  return copied(op::t(self));
}

Tensor permute_copy(const Tensor& self, IntSpan dims) {
  return copied(op::permute(self, dims));
}

Tensor squeeze_copy(const Tensor& self) {
  return copied(op::squeeze(self));
}

Tensor squeeze_copy_dim(const Tensor& self, IntSpan dim) {
  return copied(op::squeeze_dim(self, dim));
}

Tensor unsqueeze_copy(const Tensor& self, int64_t dim) {
  return copied(op::unsqueeze(self, dim));
}

Tensor select_copy(const Tensor& self, int64_t dim, int64_t index) {
  return copied(op::select(self, dim, index));
}

Tensor slice_copy(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  return copied(op::slice(self, dim, start, end, step));
}

Tensor diagonal_copy(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(op::diagonal(self, offset, dim1, dim2));
}

Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return copied(op::unfold(self, dimension, size, step));
}

Tensor view_as_real_copy(const Tensor& self) {
  return copied(op::view_as_real(self));
}

Tensor view_as_complex_copy(const Tensor& self) {
  return copied(op::view_as_complex(self));
}

std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim) {
  return copied(op::unbind(self, dim));
}

std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  return copied(op::_split(self, split_size, dim));
}

std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  return copied(op::split_with_sizes(self, split_sizes, dim));
}

}  // namespace facula::kernels

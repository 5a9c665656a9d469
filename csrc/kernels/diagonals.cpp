// Copies with one view replaced, and matrices made from diagonals.
#include <algorithm>

#include "kernels/destination.h"
#include "op/kernels/indexing.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

// A copy of `self`, gaps included, in which `view_of` picks the part that becomes `src`.
template <class F>
static Tensor with_part(const Tensor& self, const Tensor& src, F&& view_of) {
  GradGuard off(false);
  bool overlaps = has_internal_overlap(self.sizes(), self.strides());
  Tensor out = empty_tensor(self.sizes(), overlaps ? preserved_strides(self) : Dims(self.strides()),
                            self.dtype(), self.device());
  Tensor part = view_of(out);
  if (!same(part.sizes(), src.sizes()))
    runtime_error("expected src to have a size equal to the slice of self. src size = ",
                  src.sizes(), ", slice size = ", part.sizes());
  op::copy_(out, self);
  op::copy_(part, src);
  return out;
}

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  return with_part(self, src, [&](const Tensor& t) { return op::select(t, dim, index); });
}

Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  return with_part(self, src, [&](const Tensor& t) { return op::slice(t, dim, start, end, step); });
}

Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  return with_part(self, src, [&](const Tensor& t) { return op::diagonal(t, offset, dim1, dim2); });
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t rank = self.dim() + 1;
  if (self.dim() == 0) dim_error(dim1, 0);
  const int64_t first = wrap_dim(dim1, rank), second = wrap_dim(dim2, rank);
  if (first == second) runtime_error("diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Dims shape;
  const int64_t side = self.size(-1) + (offset < 0 ? -offset : offset);
  for (int64_t d = 0, from = 0; d < rank; ++d)
    shape.push_back(d == first || d == second ? side : self.sizes()[from++]);
  GradGuard off(false);
  Tensor out = op::new_zeros(self, shape);
  op::copy_(op::diagonal(out, offset, first, second), self);
  return out;
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  if (self.dim() == 1) return op::diag_embed(self, diagonal, 0, 1);
  if (self.dim() == 2)
    return op::clone(op::diagonal(self, diagonal, 0, 1), MemoryFormat::Contiguous);
  runtime_error("Supports 1D or 2D tensors. Got ", self.dim(), "D");
}

Tensor diagflat(const Tensor& self, int64_t offset) {
  return op::diag_embed(op::reshape(self, Dims{-1}), offset, 0, 1);
}

void fill_diagonal_(const Tensor& self, const Scalar& value, bool wrap, Rets&) {
  const int64_t rank = self.dim();
  if (rank < 2) runtime_error("dimensions must larger than 1, got shape ", self.sizes());
  if (rank > 2 && !std::all_of(self.sizes().begin(), self.sizes().end(),
                               [&](int64_t n) { return n == self.sizes()[0]; }))
    runtime_error("all dimensions of input must be of equal length, got shape ", self.sizes());
  const int64_t rows = self.sizes()[0], columns = self.sizes()[1];
  int64_t step = 0;
  for (int64_t s : self.strides()) step += s;
  // Below a square of a tall matrix lies one empty row, then the diagonal starts again.
  for (int64_t top = 0; top < rows; top += columns + 1) {
    const int64_t length = std::min(rows - top, columns);
    op::fill_(alias_tensor(self, Dims{length}, Dims{step}, self.offset() + top * self.strides()[0]),
              value);
    if (!wrap || rank != 2) break;
  }
}

Tensor _fill_diagonal(const Tensor& self, const Scalar& value, bool wrap) {
  return op::fill_diagonal_(op::clone(self), value, wrap);
}

Tensor trace(const Tensor& self) {
  if (self.dtype() == DType::Bool)
    fail(ErrorKind::NotImplemented, "not implemented for 'Bool'; convert to an integer dtype");
  if (self.dim() != 2) runtime_error("expected a matrix, but got tensor with dim ", self.dim());
  GradGuard off(false);
  return op::sum(op::diagonal(self));
}

Tensor _trace_grad(const Tensor& grad, IntSpan sizes) {
  Tensor zeros = op::new_zeros(grad, sizes);
  return op::diagonal_scatter(zeros, op::expand(grad, Dims{std::min(sizes[0], sizes[1])}));
}

}  // namespace facula::kernels

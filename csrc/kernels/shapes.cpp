// Turned, cut and restrided tensors.
#include <algorithm>

#include "kernels/make_view.h"
#include "op/elementwise.h"
#include "op/kernels/shapes.h"
#include "op/kernels/views.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/shapes.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

Tensor rot90(const Tensor& self, int64_t k, IntSpan dims) {
  if (dims.size() != 2)
    runtime_error("expected total rotation dims == 2, but got dims = ", dims.size());
  if (self.dim() < 2) runtime_error("expected total dims >= 2, but got total dims = ", self.dim());
  const int64_t turned[] = {wrap_dim(dims[0], self.dim()), wrap_dim(dims[1], self.dim())};
  if (turned[0] == turned[1])
    runtime_error("expected rotation dims to be different, but got dim0 = ", dims[0],
                  " and dim1 = ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1: return op::transpose(op::flip(self, Dims{turned[1]}), turned[0], turned[1]);
    case 2: return op::flip(self, Dims{turned[0], turned[1]});
    case 3: return op::transpose(op::flip(self, Dims{turned[0]}), turned[0], turned[1]);
    default: return op::clone(self, MemoryFormat::Contiguous);
  }
}

Tensor fliplr(const Tensor& self) {
  if (self.dim() < 2) runtime_error("Input must be >= 2-d, but has ", self.dim(), " dimension(s)");
  return op::flip(self, Dims{1});
}
Tensor flipud(const Tensor& self) {
  if (self.dim() < 1) runtime_error("Input must be >= 1-d, but has no dimensions");
  return op::flip(self, Dims{0});
}

Tensor narrow_tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  if (start.dim() != 0 || !is_integral(start.dtype()))
    runtime_error("start must be an 0-dim integral Tensor, but got ", start.dtype(), " of shape ",
                  start.sizes());
  if (start.is_wrapped())
    runtime_error(
        "start must be known as a number, which a tensor inside of a function transform is not");
  if (start.is_meta()) runtime_error("start must have a value, which a meta tensor has not");
  Tensor host = start.is_cpu() ? start : op::_to_copy(start, DType::None, Device{});
  return op::narrow(self, dim, item_of(host).to_int(), length);
}

Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  if (self.dim() > 0 && dim >= self.dim())  // no IndexError, unlike narrow
    runtime_error("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got dim ",
                  dim, " for a tensor of ", self.dim(), " dimensions");
  return op::clone(op::narrow(self, dim, start, length), MemoryFormat::Contiguous);
}

Tensor adjoint(const Tensor& self) {
  if (self.dim() == 0) return op::conj(self);
  if (self.dim() < 2)
    runtime_error("is only supported on matrices or batches of matrices. Got ", self.dim(),
                  "-D tensor.");
  return op::conj(op::transpose(self, -2, -1));
}

// ---- pieces that are no views

static std::vector<Tensor> without_base(std::vector<Tensor> views) {
  for (Tensor& v : views) v = alias_tensor(v);
  return views;
}

std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return without_base(_split(self, split_size, dim));
}
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  return without_base(split_with_sizes(self, split_sizes, dim));
}
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  if (self.dim() == 0) runtime_error("chunk expects at least a 1-dimensional tensor");
  if (chunks <= 0) runtime_error("chunk expects `chunks` to be greater than 0, got: ", chunks);
  const int64_t size = (self.size(dim) + chunks - 1) / chunks;
  if (size == 0) return op::unsafe_split_with_sizes(self, Dims(size_t(chunks), 0), dim);
  return op::unsafe_split(self, size, dim);
}

// ---- other strides

namespace {

struct Geometry {
  IntSpan sizes, strides;
  int64_t offset;

  int64_t end() const {  // behind the last element in memory
    int64_t last = offset;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) return 0;
      last += (sizes[i] - 1) * strides[i];
    }
    return last + 1;
  }
  Tensor of(const Tensor& flat) const { return op::as_strided(flat, sizes, strides, offset); }
};

Tensor flat_zeros(const Tensor& like, const Geometry& a, const Geometry& b) {
  return op::zeros(Dims{std::max(a.end(), b.end())}, like.dtype(), std::nullopt, like.device());
}

}  // namespace

Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntSpan size, IntSpan stride,
                          std::optional<int64_t> storage_offset) {
  // The memory is copied with what lies between the elements: strides and offset count in it.
  Tensor out;
  if (has_internal_overlap(self.sizes(), self.strides())) {
    out = op::clone(self);
  } else {
    const int64_t all = int64_t(self->storage->nbytes / self.item_size());
    Tensor memory = op::clone(alias_tensor(self, Dims{all}, Dims{1}, 0));
    out = alias_tensor(memory, self.sizes(), self.strides(), self.offset());
  }
  Tensor shown = as_strided(out, size, stride, storage_offset);
  if (!same(shown.sizes(), src.sizes()))
    runtime_error("expected src to have a size equal to the slice of self. src size = ",
                  src.sizes(), ", slice size = ", shown.sizes());
  op::copy_(shown, src);
  return out;
}

Tensor _as_strided_scatter_self_grad(const Tensor& grad, IntSpan base_size, IntSpan base_stride,
                                     int64_t base_offset, IntSpan size, IntSpan stride,
                                     std::optional<int64_t> storage_offset) {
  const Geometry base{base_size, base_stride, base_offset};
  const Geometry slice{size, stride, storage_offset.value_or(base.offset)};
  Tensor written = flat_zeros(grad, base, slice);
  op::fill_(slice.of(written), 1);
  return op::where(op::ne(base.of(written), 0), 0, grad);
}

Tensor _as_strided_scatter_src_grad(const Tensor& grad, IntSpan base_size, IntSpan base_stride,
                                    int64_t base_offset, IntSpan size, IntSpan stride,
                                    std::optional<int64_t> storage_offset) {
  const Geometry base{base_size, base_stride, base_offset};
  const Geometry slice{size, stride, storage_offset.value_or(base.offset)};
  Tensor memory = flat_zeros(grad, base, slice);
  op::copy_(base.of(memory), grad);
  return slice.of(memory);
}

void as_strided_(const Tensor& self, IntSpan size, IntSpan stride,
                 std::optional<int64_t> storage_offset, Rets& rets) {
  adopt_geometry(self, op::as_strided(self, size, stride, storage_offset), rets);
}

Tensor empty_permuted(IntSpan size, IntSpan physical_layout, DType dtype, Value, Device device,
                      std::optional<bool> pin_memory, bool requires_grad) {
  const int64_t n = int64_t(size.size());
  if (int64_t(physical_layout.size()) != n)
    runtime_error(
        "Number of dimensions in size does not match the length of the physical_layout; "
        "i.e. len(size) = ",
        n, " is not equal to len(physical_layout) = ", physical_layout.size());
  check_rank(n);
  Dims strides{IntSpan(size)};
  uint64_t seen = 0;
  int64_t step = 1;
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t d = physical_layout[size_t(i)];
    if (d < 0 || d >= n)
      runtime_error("Dimension out of range (expected to be between 0 and ", n - 1, ", but got ", d,
                    " at index ", i, ")");
    if (seen >> d & 1) runtime_error("Duplicate dim ", d, " in physical_layout not allowed");
    seen |= uint64_t(1) << d;
    strides[size_t(d)] = step;
    step *= std::max<int64_t>(size[size_t(d)], 1);
  }
  return op::empty_strided_public(size, strides, dtype, std::nullopt, device, pin_memory,
                                  requires_grad);
}

}  // namespace facula::kernels

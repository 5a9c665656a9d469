// Whole slices along one dimension (index_select, index_add, index_copy, index_fill), and positions
// in the flattened tensor (take, put).
#include <cstring>
#include <vector>

#include "core/thread_pool.h"
#include "cpu/iterate.h"
#include "cpu/stream.h"
#include "kernels/destination.h"
#include "kernels/index_work.h"
#include "op/hooks/indexing.h"
#include "op/kernels/indexing.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/tensor_operators.h"

namespace facula {

PointWork slice_work(const Tensor& tensor, int64_t dim, const Tensor& index, const Tensor& values) {
  PointWork w;
  w.item = int64_t(tensor.item_size());
  w.points = index.data_as<int64_t>();
  w.count = index.numel();
  w.places = tensor.sizes()[dim];
  w.scale = tensor.strides()[dim] * w.item;
  w.wrap = tensor.sizes()[dim] * w.scale;
  w.step = values.strides()[dim] * w.item;
  Dims rest(tensor.sizes()), tensor_strides(tensor.strides()), value_strides(values.strides());
  for (Dims* d : {&rest, &tensor_strides, &value_strides}) d->erase(size_t(dim));
  w.rest.begin(rest);
  w.rest.add(tensor.data(), rest, tensor_strides, w.item);
  w.rest.add(values.data(), rest, value_strides, w.item);
  w.rest.finish();
  return w;
}

namespace kernels {
namespace {

void check_same_device(const Tensor& a, const Tensor& b) {
  if (a.device() != b.device()) device_error(a.device(), b.device());
}

Tensor index_vector(const Tensor& index) {
  return at_least_1d(index.is_meta() ? index : dense_int64(index));
}

void require_int(const Tensor& index) {
  if (index.dtype() != DType::Int64 && index.dtype() != DType::Int32)
    runtime_error("Expected dtype int32/int64 for index but got: ",
                  legacy_dtype_name(index.dtype()));
}

void require_vector(const Tensor& index) {
  if (index.dim() > 1)
    index_error("Index is supposed to be a vector, but got dim: ", index.dim(),
                " with type: ", legacy_dtype_name(index.dtype()), " and size: ", index.sizes());
}

void require_same_dtype(const Tensor& self, const Tensor& source) {
  if (self.dtype() != source.dtype())
    runtime_error("self (", legacy_dtype_name(self.dtype()), ") and source (",
                  legacy_dtype_name(source.dtype()),
                  ") must have the same scalar type, expected the same dtype. Convert one of them "
                  "with .to(...)");
}

// Common to index_add and index_copy; PyTorch's exception types for these differ.
void require_matching_slices(const Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& source, ErrorKind kind) {
  if (source.dim() != self.dim())
    fail(kind,
         "source tensor shape must match self tensor shape, excluding the specified "
         "dimension; their dimensionality must match. Got self.shape = ",
         self.sizes(), " source.shape = ", source.sizes());
  if (source.sizes()[dim] != index.numel())
    fail(kind, "Number of indices (", index.numel(), ") should be equal to source.size(dim): (",
         source.sizes()[dim], "), for dim: ", dim);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim && source.sizes()[d] != self.sizes()[d])
      runtime_error(
          "source tensor shape must match self tensor shape, excluding the specified "
          "dimension. Got self.shape = ",
          self.sizes(), " source.shape = ", source.sizes());
}

}  // namespace

void index_select(const Tensor& self, int64_t dim, const Tensor& index, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  require_int(index);
  require_vector(index);
  check_same_device(self, index);
  if (self.dim() == 0 && index.numel() != 1)
    runtime_error("Index to scalar can have only 1 value, got ", index.numel(), " value(s)");
  Dims shape(self.sizes());
  if (self.dim()) shape[size_t(dim)] = index.numel();
  Tensor positions;
  if (!self.is_meta()) {
    positions = index_vector(index);
    if (self.is_cpu()) check_index(positions, self.dim() ? self.sizes()[dim] : 1, dim, false);
  }
  if (rets.destination != Destination::New &&
      has_internal_overlap(rets.t[0].sizes(), rets.t[0].strides()))
    overlap_error();
  Tensor& out = exact_result(rets, 0, shape, self.dtype(), self.device());
  if (out.is_meta()) return;
  Tensor from = self;
  if (rets.destination != Destination::New) {
    from = apart_from(out, self);
    positions = apart_from(out, positions);
  }
  if (out.is_cuda())
    return device_indexing.read(
        slices_along("index_select", at_least_1d(from), dim, positions, false), at_least_1d(out));
  cpu_read_points(slice_work(at_least_1d(from), dim, positions, at_least_1d(out)));
}

Tensor _index_select_grad(const Tensor& grad, IntSpan sizes, int64_t dim, const Tensor& index) {
  Tensor zeros = op::new_zeros(grad, sizes);
  return op::index_add_(zeros, dim, index, grad);
}

void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
               const Scalar& alpha, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  require_int(index);
  require_vector(index);
  require_same_dtype(self, source);
  check_same_device(self, index);
  check_same_device(self, source);
  if (self.dim() == 0 ? source.numel() != 1 || source.dim() > 1 : source.dim() == 0)
    runtime_error(
        "source tensor shape must match self tensor shape, excluding the specified "
        "dimension. Got self.shape = ",
        self.sizes(), " source.shape = ", source.sizes());
  Tensor values = at_least_1d(source), positions = index_vector(index);
  require_matching_slices(at_least_1d(self), dim, positions, values, ErrorKind::Runtime);
  if (self.is_cpu()) check_index(positions, self.dim() ? self.sizes()[dim] : 1, dim, false);
  if (rets.destination != Destination::New) {
    if (has_internal_overlap(rets.t[0].sizes(), rets.t[0].strides())) overlap_error();
    values = apart_from(rets.t[0], values);
    positions = apart_from(rets.t[0], positions);
  }
  Tensor& out = start_from(self, rets, CopyLayout::Contiguous);
  if (out.is_meta()) return;
  if (out.is_cuda())
    return device_indexing.combine(
        slices_along("index_add", at_least_1d(out), dim, positions, false), values, Combine::Add,
        alpha);
  cpu_add_points(slice_work(at_least_1d(out), dim, positions, values), out.dtype(), alpha);
}

void index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  if (index.dtype() != DType::Int64)
    runtime_error("Expected a long tensor for index, but got ", legacy_dtype_name(index.dtype()),
                  " (expected int64)");
  if (index.dim() > 1) index_error("Index should have dimension 1 or 0 (got ", index.dim(), ")");
  require_same_dtype(self, source);
  check_same_device(self, index);
  check_same_device(self, source);
  Tensor values = source, positions = index_vector(index);
  if (source.dim() == 0) {
    if (index.numel() != 1)
      index_error("When source is scalar, index should have one element (got ", index.numel(), ")");
    if (self.dim() > 1)
      index_error(
          "When source and destination are not scalars, their dimensionality must match. "
          "Source dimensionality (0), destination dimensionality (",
          self.dim(), ")");
    values = at_least_1d(source);
  }
  require_matching_slices(at_least_1d(self), dim, positions, values, ErrorKind::Index);
  if (self.is_cpu()) check_index(positions, self.dim() ? self.sizes()[dim] : 1, dim, false);
  if (rets.destination != Destination::New) {
    if (has_internal_overlap(rets.t[0].sizes(), rets.t[0].strides())) overlap_error();
    values = apart_from(rets.t[0], values);
    positions = apart_from(rets.t[0], positions);
  }
  Tensor& out = start_from(self, rets, CopyLayout::Contiguous);
  if (out.is_meta()) return;
  if (out.is_cuda())
    return device_indexing.write(
        slices_along("index_copy", at_least_1d(out), dim, positions, false), values);
  cpu_write_points(slice_work(at_least_1d(out), dim, positions, values));
}

namespace {

// The slices of a contiguous tensor along a dimension: `outer` times `places` of `bytes` each.
struct Slices {
  Slices(const Tensor& t, int64_t dim) : places(t.sizes()[dim]), bytes(int64_t(t.item_size())) {
    for (int64_t d = 0; d < dim; ++d) outer *= t.sizes()[d];
    for (int64_t d = dim + 1; d < t.dim(); ++d) bytes *= t.sizes()[d];
  }
  int64_t outer = 1, places, bytes;
};

// Whether slices should be marked first and then written once each, instead of copied and filled in
// the order of the index: where that names many, and each is a line of the cache or more.
bool pays_to_mark(const Tensor& self, int64_t dim, const Tensor& positions) {
  if (!self.is_cpu() || self.dim() == 0 || !self.is_contiguous() || self.numel() == 0) return false;
  const Slices s(self, dim);
  return s.bytes >= 64 && self.numel() >= 4096 && positions.numel() >= s.places / 8;
}

void fill_marked(const Tensor& self, const Tensor& out, int64_t dim, const Tensor& positions,
                 const char* value) {
  const Slices s(self, dim);
  const int64_t item = int64_t(self.item_size());
  std::vector<char> marked(size_t(s.places));
  const int64_t* points = positions.data_as<int64_t>();
  for (int64_t i = 0; i < positions.numel(); ++i)
    marked[size_t(points[i] < 0 ? points[i] + s.places : points[i])] = 1;
  constexpr int64_t kPattern = 4096;
  alignas(64) char pattern[kPattern];
  std::memcpy(pattern, value, size_t(item));
  for (int64_t n = item; n < kPattern; n *= 2) std::memcpy(pattern + n, pattern, size_t(n));
  const char* from = self.data();
  char* to = out.data();
  parallel_for(
      0, s.outer * s.places, std::max<int64_t>(1, 4 * kGrain / s.bytes),
      [&](int64_t begin, int64_t end) {
        int64_t place = begin % s.places;
        for (int64_t i = begin; i < end; ++i, place = place + 1 < s.places ? place + 1 : 0) {
          const int64_t at = i * s.bytes;
          if (!marked[size_t(place)]) {
            if (from != to) copy_bytes(to + at, from + at, s.bytes);
            continue;
          }
          for (int64_t done = 0; done < s.bytes; done += kPattern)
            std::memcpy(to + at + done, pattern, size_t(std::min(kPattern, s.bytes - done)));
        }
      });
}

}  // namespace

void index_fill(const Tensor& self, int64_t dim, const Tensor& index, Value value, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  if (index.dtype() != DType::Int64)
    index_error("Expected dtype int64 for index, but got ", index.dtype());
  if (index.dim() > 1) runtime_error("Index has to be a vector/scalar, got shape ", index.sizes());
  check_same_device(self, index);
  if (value.is_tensor() && value.tensor().dim() != 0)
    runtime_error("only supports a 0-dimensional value tensor, but got tensor with ",
                  value.tensor().dim(), " dimension(s).");
  if (rets.destination == Destination::InPlace && warn &&
      has_internal_overlap(self.sizes(), self.strides()))
    warn(
        "Use of index_fill_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. tensor[indices] = "
        "scalar");
  if (!value.is_tensor()) value.scalar().check_fits(self.dtype());
  else if (value.tensor().is_complex() && !self.is_complex())
    runtime_error("a complex value cannot be written to a tensor of ", self.dtype());
  Tensor positions = index_vector(index);
  if (!self.is_meta()) {
    if (self.is_cpu()) check_index(positions, self.dim() ? self.sizes()[dim] : 1, dim, true);
    if (rets.destination == Destination::InPlace) positions = apart_from(self, positions);
  }
  const bool marks = !self.is_meta() && pays_to_mark(self, dim, positions);
  Tensor& out = marks && rets.destination == Destination::New
                    ? exact_result(rets, 0, self.sizes(), self.dtype(), self.device())
                    : start_from(self, rets, CopyLayout::Preserve);
  if (out.is_meta()) return;
  GradGuard off(false);
  Tensor number = value.is_tensor() ? op::_to_copy(value.tensor(), out.dtype(), out.device())
                  : out.is_cuda()
                      ? op::full(IntSpan(), value.scalar(), out.dtype(), std::nullopt, out.device())
                      : number_tensor(value.scalar(), out.dtype());
  if (marks)
    return fill_marked(rets.destination == Destination::New ? self : out, out, dim, positions,
                       number.data());
  Tensor target = at_least_1d(out);
  Dims still(size_t(target.dim()), 0);
  Tensor values = alias_tensor(number, target.sizes(), still, number.offset());
  if (out.is_cuda())
    return device_indexing.write(slices_along("index_fill", target, dim, positions, true), values);
  cpu_write_points(slice_work(target, dim, positions, values));
}

// ---- positions in the flattened tensor

namespace {

void check_positions(const Tensor& index, int64_t numel) {
  int64_t bad = find_bad_index(index.data_as<int64_t>(), index.numel(), numel, true);
  if (bad >= 0)
    index_error("out of range: tried to access index ", index.data_as<int64_t>()[bad],
                " on a tensor of ", numel, " elements.");
}

// Positions as byte offsets where the tensor's order is not that of its memory.
PointWork flat_work(const Tensor& tensor, const Tensor& index, const Tensor& values,
                    Tensor& offsets) {
  PointWork w;
  w.item = int64_t(tensor.item_size());
  w.count = index.numel();
  w.points = index.data_as<int64_t>();
  w.step = w.item;
  w.scale = w.item;
  w.wrap = tensor.numel() * w.item;
  if (!tensor.is_contiguous()) {
    offsets = empty_tensor(Dims{w.count}, DType::Int64, Device{});
    int64_t* to = offsets.data_as<int64_t>();
    parallel_for(0, w.count, kGrain / 8, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t rest = w.points[i] < 0 ? w.points[i] + tensor.numel() : w.points[i], at = 0;
        for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
          at += rest % tensor.sizes()[d] * tensor.strides()[d];
          rest /= tensor.sizes()[d];
        }
        to[i] = at * w.item;
      }
    });
    w.points = to;
    w.scale = 1;
    w.wrap = 0;
  }
  w.rest.begin({});
  w.rest.add(tensor.data(), {}, {}, w.item);
  w.rest.add(values.data(), {}, {}, w.item);
  w.rest.finish();
  return w;
}

// A contiguous tensor as a vector.
Tensor flat(const Tensor& t) {
  return alias_tensor(t, Dims{t.numel()}, Dims{1}, t.offset());
}

void require_long(const Tensor& index) {
  if (index.dtype() != DType::Int64)
    runtime_error("Expected a long tensor for index, but got ", legacy_dtype_name(index.dtype()));
}

}  // namespace

void take(const Tensor& self, const Tensor& index, Rets& rets) {
  require_long(index);
  check_same_device(self, index);
  if (self.numel() == 0 && index.numel() != 0) index_error("tried to take from an empty tensor");
  Tensor positions = index;
  if (!self.is_meta()) {
    positions = dense(index);
    if (self.is_cpu()) check_positions(positions, self.numel());
  }
  Tensor& out = exact_result(rets, 0, index.sizes(), self.dtype(), self.device());
  if (out.is_meta()) return;
  Tensor from = self, target = out;
  if (rets.destination != Destination::New) {
    from = apart_from(out, self);
    positions = apart_from(out, positions);
    if (!out.is_contiguous()) target = empty_tensor(out.sizes(), out.dtype(), out.device());
  }
  if (out.is_cuda()) {
    if (out.numel())
      device_indexing.read(slices_along("take", flat(dense(from)), 0, flat(positions), true),
                           flat(target));
  } else {
    Tensor offsets;
    cpu_read_points(flat_work(from, positions, target, offsets));
  }
  if (!target.is(out)) op::copy_(out, target);
}

Tensor _take_grad(const Tensor& grad, IntSpan sizes, const Tensor& index) {
  Tensor zeros = op::new_zeros(grad, sizes);
  return op::put_(zeros, index, grad, true);
}

void put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate,
         Rets& rets) {
  require_long(index);
  require_same_dtype(self, source);
  check_same_device(self, index);
  check_same_device(self, source);
  if (source.numel() != index.numel())
    index_error(
        "Expected source and index to have the same number of elements, but got "
        "source.numel() = ",
        source.numel(), ", index.numel() = ", index.numel());
  if (self.numel() == 0 && index.numel() != 0)
    index_error("tried to put elements into an empty tensor");
  Tensor positions = index, values = source;
  if (!self.is_meta()) {
    positions = dense(index);
    if (self.is_cpu()) check_positions(positions, self.numel());
    if (rets.destination == Destination::InPlace) {
      if (has_internal_overlap(self.sizes(), self.strides())) overlap_error();
      positions = apart_from(self, positions);
      values = apart_from(self, values);
    }
  }
  Tensor& out = start_from(self, rets, CopyLayout::Preserve);
  if (out.is_meta()) return;
  values = dense(values);
  if (out.is_cuda()) {
    if (values.numel() == 0) return;
    const Tensor target = dense(out);
    const PointSet points = slices_along("put", flat(target), 0, flat(positions), true);
    if (accumulate) device_indexing.combine(points, flat(values), Combine::Add, Scalar(1));
    else device_indexing.write(points, flat(values));
    if (!target.is(out)) op::copy_(out, target);
    return;
  }
  Tensor offsets;
  PointWork work = flat_work(out, positions, values, offsets);
  if (accumulate) cpu_add_points(work, out.dtype(), Scalar(1));
  else cpu_write_points(work);
}

}  // namespace kernels
}  // namespace facula

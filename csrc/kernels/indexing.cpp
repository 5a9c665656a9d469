// Brackets: tensor[i, :, j, mask], read and written. Slices and integers have become views before;
// what arrives here is one optional index tensor per dimension.
#include <algorithm>

#include "kernels/destination.h"
#include "kernels/index_work.h"
#include "op/hooks/indexing.h"
#include "op/kernels/indexing.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula {

void check_index(const Tensor& index, int64_t size, int64_t dim, bool negative_wraps) {
  int64_t bad = find_bad_index(index.data_as<int64_t>(), index.numel(), size, negative_wraps);
  if (bad < 0) return;
  int64_t value = index.data_as<int64_t>()[bad];
  if (negative_wraps) index_range_error(value, dim, size);
  index_error("index ", value, " is out of bounds for dimension ", dim, " with size ", size,
              "; valid are 0 to ", size - 1);
}

namespace kernels {
namespace {

// The index of one dimension after masks have become positions.
struct DimIndex {
  int64_t dim;
  Tensor given;      // its strides shape the result's layout
  Tensor positions;  // int64 on the tensor's device; on the host contiguous and checked
};

// How an index list selects from a tensor of given sizes.
struct Selection {
  Tensor self;
  Dims added;                   // dimensions of size 1 that self got for 0-dim masks
  std::vector<DimIndex> parts;  // by dimension
  Dims points;                  // the common shape of the index tensors
  Dims order;                   // the dimensions of self, those with an index adjacent
  int64_t before = 0;           // how many dimensions of `order` come before those with an index
  Dims shape;                   // of the result
};

[[noreturn]] void too_many_indices(int64_t given, int64_t dims) {
  index_error("too many indices for tensor of dimension ", dims, " (got ", given, ")");
}

Tensor with_new_dim(const Tensor& t, int64_t dim) {
  Dims sizes(t.sizes()), strides(t.strides());
  sizes.insert(size_t(dim), 1);
  strides.insert(size_t(dim), 1);
  return alias_tensor(t, sizes, strides, t.offset());
}

void add_mask(Selection& s, const Tensor& mask, int64_t at) {
  if (mask.is_meta())
    fail(ErrorKind::NotImplemented,
         "a mask on the meta device has no data, so the shape of the "
         "result is unknown");
  if (mask.dtype() == DType::UInt8 && warn)
    warn(
        "indexing with dtype facula.uint8 is now deprecated, please use a dtype facula.bool "
        "instead.");
  if (mask.dim() == 0) {
    s.self = with_new_dim(s.self, at);
    s.added.push_back(at);
  }
  const Tensor whole = at_least_1d(mask);
  if (at + whole.dim() > s.self.dim()) too_many_indices(at + whole.dim(), s.self.dim());
  for (int64_t d = 0; d < mask.dim(); ++d)
    if (mask.sizes()[d] != s.self.sizes()[at + d])
      index_error("The shape of the mask ", mask.sizes(), " at index ", d,
                  " does not match the shape of the indexed tensor ", s.self.sizes(), " at index ",
                  at + d);
  Tensor found = op::nonzero(whole);
  for (int64_t d = 0; d < whole.dim(); ++d)
    s.parts.push_back({at + d, op::select(found, 1, d), Tensor()});
}

bool can_broadcast(IntSpan a, IntSpan b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    int64_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

Selection select_points(const Tensor& self, TensorSpan indices) {
  if (indices.empty()) index_error("at least one index must be provided");
  Selection s;
  s.self = self;
  int64_t at = 0;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      ++at;
      continue;
    }
    if (index.is_meta() && !self.is_meta()) device_error(self.device(), index.device());
    DType d = index.dtype();
    if (d == DType::Bool || d == DType::UInt8) {
      add_mask(s, index, at);
      at += std::max<int64_t>(index.dim(), 1);
      continue;
    }
    if (!is_integral(d))
      index_error("tensors used as indices must be long, int, byte or bool tensors, got ", d,
                  " at position ", &index - indices.data());
    if (at >= s.self.dim()) too_many_indices(int64_t(indices.size()), self.dim());
    s.parts.push_back({at++, index, Tensor()});
  }
  if (at > s.self.dim()) too_many_indices(int64_t(indices.size()), self.dim());

  for (const DimIndex& p : s.parts) {
    IntSpan given = p.given.sizes();
    if (!can_broadcast(s.points, given)) {
      std::string shapes;
      for (const DimIndex& q : s.parts)
        shapes += (shapes.empty() ? "" : ", ") + text(q.given.sizes());
      index_error("shape mismatch: indexing tensors could not be broadcast together with shapes ",
                  shapes);
    }
    s.points = broadcast_shapes(s.points, given);
  }

  // Adjacent indices leave their dimensions in place; separated ones move theirs to the front.
  const int64_t count = int64_t(s.parts.size());
  const bool adjacent = count == 0 || s.parts.back().dim - s.parts.front().dim == count - 1;
  s.before = count && adjacent ? s.parts.front().dim : 0;
  for (int64_t d = 0; d < s.before; ++d) s.order.push_back(d);
  for (const DimIndex& p : s.parts) s.order.push_back(p.dim);
  size_t next = 0;
  for (int64_t d = 0; d < s.self.dim(); ++d) {
    if (next < s.parts.size() && s.parts[next].dim == d) ++next;
    else if (d >= s.before) s.order.push_back(d);
  }
  for (int64_t i = 0; i < s.before; ++i) s.shape.push_back(s.self.sizes()[s.order[size_t(i)]]);
  for (int64_t n : s.points) s.shape.push_back(n);
  for (size_t i = size_t(s.before + count); i < s.order.size(); ++i)
    s.shape.push_back(s.self.sizes()[s.order[i]]);

  if (self.is_meta()) return s;
  for (DimIndex& p : s.parts) {
    if (p.given.device() != self.device() && !p.given.is_cpu())
      device_error(self.device(), p.given.device());
    if (self.is_cuda()) {  // the kernels look at the values
      p.positions = p.given.device() == self.device() && p.given.dtype() == DType::Int64
                        ? p.given
                        : op::_to_copy(p.given, DType::Int64, self.device());
      continue;
    }
    p.positions = dense_int64(p.given);
    // An index that is broadcast with an empty one selects nothing and is not looked at.
    if (checked_numel(s.points)) check_index(p.positions, s.self.sizes()[p.dim], p.dim, true);
  }
  return s;
}

int64_t value_dim(const Selection& s, int64_t i) {  // of the i-th of `order` outside the points
  return i < s.before ? i : i - int64_t(s.parts.size()) + int64_t(s.points.size());
}

// The same for a device.
PointSet device_points(const Selection& s, const Tensor& tensor, const char* name) {
  PointSet points{name, tensor, s.shape, Dims(s.shape.size(), 0), {}, true};
  const auto count = int64_t(s.parts.size());
  for (int64_t i = 0; i < int64_t(s.order.size()); ++i)
    if (i < s.before || i >= s.before + count)
      points.strides[size_t(value_dim(s, i))] = tensor.strides()[s.order[size_t(i)]];
  for (const DimIndex& p : s.parts) {
    Dims strides(s.shape.size(), 0);
    const auto lead = int64_t(s.points.size()) - p.positions.dim();
    for (int64_t d = 0; d < p.positions.dim(); ++d)
      if (p.positions.sizes()[d] != 1)
        strides[size_t(s.before + lead + d)] = p.positions.strides()[d];
    points.along.push_back(
        {p.positions, strides, tensor.strides()[p.dim], tensor.sizes()[p.dim], p.dim});
  }
  return points;
}

// Whether the points of a tensor of the result's shape lie at equal steps in memory; if so, *step
// is that many bytes.
bool has_even_points(const Selection& s, const Tensor& values, int64_t* step) {
  Dims strides;
  IntSpan given = values.strides().subspan(size_t(s.before), s.points.size());
  if (!view_strides(s.points, given, Dims{checked_numel(s.points)}, strides)) return false;
  *step = strides[0] * int64_t(values.item_size());
  return true;
}

// `offsets` holds computed places when more than one index takes part.
PointWork point_work(const Selection& s, const Tensor& tensor, const Tensor& values, int64_t step,
                     Tensor& offsets) {
  const int64_t item = int64_t(tensor.item_size()), count = checked_numel(s.points);
  PointWork w;
  w.item = item;
  w.count = count;
  w.step = step;
  if (s.parts.size() == 1) {
    const DimIndex& p = s.parts[0];
    w.points = p.positions.data_as<int64_t>();
    w.places = tensor.sizes()[p.dim];
    w.scale = tensor.strides()[p.dim] * item;
    w.wrap = tensor.sizes()[p.dim] * w.scale;
  } else {
    offsets = empty_tensor(Dims{count}, DType::Int64, Device{});
    w.points = offsets.data_as<int64_t>();
    std::fill_n(offsets.data_as<int64_t>(), count, int64_t(0));
    for (const DimIndex& p : s.parts) {
      const int64_t scale = tensor.strides()[p.dim] * item, size = tensor.sizes()[p.dim];
      Iteration it;
      it.begin(s.points);
      it.add(offsets.data(), s.points, contiguous_strides(s.points), 8);
      it.add(p.positions.data(), p.positions.sizes(), p.positions.strides(), 8);
      it.finish();
      it.run_parallel([&](char* const* q, const int64_t* st, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          int64_t at = *reinterpret_cast<const int64_t*>(q[1] + i * st[1]);
          *reinterpret_cast<int64_t*>(q[0] + i * st[0]) += (at < 0 ? at + size : at) * scale;
        }
      });
    }
  }
  Dims rest, tensor_strides, value_strides;
  for (size_t i = 0; i < s.order.size(); ++i) {
    if (int64_t(i) >= s.before && i < size_t(s.before) + s.parts.size()) continue;
    rest.push_back(tensor.sizes()[s.order[i]]);
    tensor_strides.push_back(tensor.strides()[s.order[i]]);
    value_strides.push_back(values.strides()[value_dim(s, int64_t(i))]);
  }
  w.rest.begin(rest);
  w.rest.add(tensor.data(), rest, tensor_strides, item);
  w.rest.add(values.data(), rest, value_strides, item);
  w.rest.finish();
  return w;
}

// As PyTorch's iterator lays it out: by the strides of the tensor outside the indices and of the
// index tensors inside.
Tensor empty_result(const Selection& s) {
  const Tensor& self = s.self;
  bool in_order = self.is_contiguous();
  for (const DimIndex& p : s.parts) in_order = in_order && p.given.is_contiguous();
  if (in_order) return empty_tensor(s.shape, self.dtype(), self.device());
  Dims strides(s.shape.size(), 0);
  for (size_t i = 0; i < s.order.size(); ++i)
    if (int64_t(i) < s.before || i >= size_t(s.before) + s.parts.size())
      strides[size_t(value_dim(s, int64_t(i)))] = self.strides()[s.order[i]];
  std::vector<Tensor> inputs{alias_tensor(self, s.shape, strides, self.offset())};
  for (const DimIndex& p : s.parts) {
    const Tensor& t = p.given;
    Dims sizes(size_t(s.before), 1), spread;
    for (size_t i = t.sizes().size(); i < s.points.size(); ++i) sizes.push_back(1);
    for (int64_t n : t.sizes()) sizes.push_back(n);
    while (sizes.size() < s.shape.size()) sizes.push_back(1);
    view_strides(t.sizes(), t.strides(), sizes, spread);
    inputs.push_back(alias_tensor(t, sizes, spread, t.offset()));
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : inputs) pointers.push_back(&t);
  return empty_tensor(s.shape, result_strides(s.shape, pointers.data(), int(pointers.size())),
                      self.dtype(), self.device());
}

// The mask of an index list that holds nothing else, in a shape that broadcasts to `self`;
// undefined otherwise. Filling by a mask needs no list of positions.
Tensor only_mask(const Tensor& self, TensorSpan indices) {
  Dims sizes;
  const Tensor* mask = nullptr;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      sizes.push_back(1);
      continue;
    }
    if (mask || index.dtype() != DType::Bool || index.dim() == 0 || index.device() != self.device())
      return Tensor();
    mask = &index;
    for (int64_t n : index.sizes()) {
      if (int64_t(sizes.size()) >= self.dim() || self.sizes()[sizes.size()] != n) return Tensor();
      sizes.push_back(n);
    }
  }
  if (!mask || int64_t(sizes.size()) > self.dim()) return Tensor();
  while (int64_t(sizes.size()) < self.dim()) sizes.push_back(1);
  return op::reshape(*mask, sizes);
}

}  // namespace

Tensor index(const Tensor& self, TensorSpan indices) {
  GradGuard off(false);
  if (indices.size() == 1 && indices[0].defined() && indices[0].dtype() == DType::Bool &&
      self.dim() > 0 && !self.is_meta() && indices[0].device() == self.device() &&
      same(self.sizes(), indices[0].sizes()))
    return op::masked_select(self, indices[0]);
  Selection s = select_points(self, indices);
  Tensor out = empty_result(s);
  if (out.is_meta() || out.numel() == 0) return out;
  if (out.is_cuda()) {
    device_indexing.read(device_points(s, s.self, "index"), out);
    return out;
  }
  int64_t step = 0;
  Tensor target = out;
  if (!has_even_points(s, out, &step)) {
    target = empty_tensor(s.shape, out.dtype(), out.device());
    has_even_points(s, target, &step);
  }
  Tensor offsets;
  cpu_read_points(point_work(s, s.self, target, step, offsets));
  if (!target.is(out)) op::copy_(out, target);
  return out;
}

void index_put(const Tensor& self, TensorSpan indices, const Tensor& values, bool accumulate,
               Rets& rets) {
  GradGuard off(false);
  const bool one_number = !accumulate && values.numel() == 1 && self.is_cpu() && values.is_cpu() &&
                          !has_internal_overlap(self.sizes(), self.strides());
  // One number for all elements of a mask is converted, as masked_fill does.
  if (one_number && is_complex(values.dtype()) <= is_complex(self.dtype())) {
    if (Tensor mask = only_mask(self, indices)) {
      const Tensor number = op::reshape(values, IntSpan());
      Tensor& out = start_from(self, rets, CopyLayout::Preserve);
      op::masked_fill_(
          out, mask, number.dtype() == self.dtype() ? number : op::_to_copy(number, self.dtype()));
      return;
    }
  }
  if (values.dtype() != self.dtype())
    runtime_error("Index put requires the source and destination dtypes match, got ",
                  legacy_dtype_name(self.dtype()), " for the destination and ",
                  legacy_dtype_name(values.dtype()), " for the source.");
  if (!accumulate && values.numel() == 1 && values.dim() <= 1 && !self.is_meta() &&
      values.device() == self.device() && !has_internal_overlap(self.sizes(), self.strides())) {
    if (Tensor mask = only_mask(self, indices)) {
      Tensor& out = start_from(self, rets, CopyLayout::Preserve);
      op::masked_fill_(out, mask, op::reshape(values, IntSpan()));
      return;
    }
  }
  Selection s = select_points(self, indices);
  if (!is_expandable(values.sizes(), s.shape))
    runtime_error("shape mismatch: value tensor of shape ", values.sizes(),
                  " cannot be broadcast to indexing result of shape ", IntSpan(s.shape));
  Tensor source = values;
  if (source.device() != self.device()) {
    if (source.dim() != 0) device_error(self.device(), source.device());
    source = op::_to_copy(source, DType::None, self.device());
  }
  if (rets.destination == Destination::InPlace) {
    if (has_internal_overlap(self.sizes(), self.strides()) && warn)
      warn(
          "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before "
          "performing this operation.");
    source = apart_from(self, source);
    for (DimIndex& p : s.parts) p.positions = apart_from(self, p.positions);
  }
  Tensor& out = start_from(self, rets, CopyLayout::Preserve);
  if (out.is_meta() || checked_numel(s.shape) == 0) return;
  Tensor target = out;
  for (int64_t d : s.added) target = with_new_dim(target, d);
  int64_t step = 0;
  Tensor spread = op::expand(source, s.shape);
  if (out.is_cuda()) {
    const PointSet points = device_points(s, target, "index_put_");
    if (accumulate) device_indexing.combine(points, spread, Combine::Add, Scalar(1));
    else device_indexing.write(points, spread);
    return;
  }
  if (!has_even_points(s, spread, &step)) {
    spread = op::contiguous(spread);
    has_even_points(s, spread, &step);
  }
  Tensor offsets;
  PointWork work = point_work(s, target, spread, step, offsets);
  if (accumulate) cpu_add_points(work, out.dtype(), Scalar(1));
  else cpu_write_points(work);
}

Tensor _index_grad(const Tensor& grad, IntSpan sizes, TensorSpan indices) {
  Tensor zeros = op::new_zeros(grad, sizes);
  return op::index_put_(zeros, indices, grad, true);
}

}  // namespace kernels
}  // namespace facula

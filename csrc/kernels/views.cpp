// View operators: geometry only. Those that can be said through others are composites.
#include <algorithm>

#include "autograd/node.h"
#include "autograd/node_names.h"
#include "kernels/make_view.h"
#include "op/kernels/creation.h"
#include "op/kernels/views.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/reductions.h"
#include "op/ops/signal.h"
#include "op/ops/views.h"
#include "op/reduce.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula {

Tensor make_view(const Tensor& self, IntSpan sizes, IntSpan strides, int64_t offset) {
  Tensor v = alias_tensor(self, sizes, strides, offset);
  if (!(self->flags & kInference)) {
    v->base = self->base ? self->base : self.impl();
    v->base->refs.fetch_add(1, std::memory_order_relaxed);
    v->flags |= self->flags & (kNoGradView | kMultiOutputView);
    v->made_at = self->made_at;
  }
  return v;
}

void adopt_geometry(const Tensor& self, const Tensor& view, Rets& rets) {
  if (grad_enabled() && requires_grad(self)) check_inplace(defs::transpose_, self);
  const bool keeps_history = !view.is_wrapped() || view->wrapper->kind == LevelKind::Grad;
  NodeRef fn = keeps_history ? grad_fn_of(view) : NodeRef();
  if (fn) set_history(self, std::move(fn), view->autograd->output_nr);
  if (self.is_wrapped()) {  // inside of a transform it stands for the view of its value from now on
    if (view.is_wrapped()) retain_wrapper(view->wrapper);
    else self->keys &= uint8_t(~kKeyWrapped);
    release_wrapper(std::exchange(self->wrapper, view->wrapper));
  }
  self->offset = view.offset();
  self->set_geometry(view.sizes(), view.strides());
  rets.t[0] = self;
}

namespace kernels {

Tensor alias(const Tensor& self) {
  return make_view(self, self.sizes(), self.strides(), self.offset());
}

Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> offset) {
  if (size.size() != stride.size())
    runtime_error("mismatch in length of strides and shape: size ", size, " and stride ", stride);
  int64_t at = offset.value_or(self.offset());
  if (at < 0) runtime_error("Tensor: invalid storage offset ", at);
  int64_t last = at;
  bool empty = false;
  for (size_t i = 0; i < size.size(); ++i) {
    if (stride[i] < 0)
      runtime_error("as_strided: Negative strides are not supported at the moment, got strides: ",
                    stride);
    if (size[i] < 0)
      runtime_error("Trying to create tensor with negative dimension ", size[i], ": ", size);
    empty |= size[i] == 0;
    if (size[i] > 0) {
      int64_t reach;
      if (__builtin_mul_overflow(size[i] - 1, stride[i], &reach) ||
          __builtin_add_overflow(last, reach, &last))
        runtime_error("setStorage: sizes ", size, " and strides ", stride,
                      " overflow the address range");
    }
  }
  int64_t available = int64_t(self->storage->nbytes / self.item_size());
  if (!empty && last >= available)
    runtime_error("setStorage: sizes ", size, ", strides ", stride, ", storage offset ", at,
                  ", and itemsize ", self.item_size(), " requiring a storage size of ",
                  (last + 1) * int64_t(self.item_size()), " are out of bounds for storage of size ",
                  self->storage->nbytes);
  return make_view(self, size, stride, at);
}

Tensor _as_strided_grad(const Tensor& grad, IntSpan base_size, IntSpan base_stride,
                        int64_t base_offset, IntSpan size, IntSpan stride,
                        std::optional<int64_t> offset) {
  return op::as_strided_backward(grad, base_size, base_stride, size, stride,
                                 offset.value_or(base_offset) - base_offset);
}

// Whether no two elements of this geometry can share memory: strictly nested strides cannot meet.
static bool is_distinct(IntSpan size, IntSpan stride) {
  Dims order(size.size());
  for (size_t i = 0; i < size.size(); ++i) order[i] = int64_t(i);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return stride[a] < stride[b]; });
  int64_t covered = 0;
  for (int64_t d : order) {
    if (size[d] == 0) return true;
    if (size[d] == 1) continue;
    if (stride[d] <= covered) return false;
    covered += (size[d] - 1) * stride[d];
  }
  return true;
}

Tensor as_strided_backward(const Tensor& grad, IntSpan base_size, IntSpan base_stride, IntSpan size,
                           IntSpan stride, int64_t offset) {
  // A flat image of the memory both geometries reach; gradients are added where they point and
  // read back through the base's geometry.
  auto reach = [](IntSpan s, IntSpan st) {
    int64_t r = 1;
    for (size_t i = 0; i < s.size(); ++i) {
      if (s[i] == 0) return int64_t(0);
      r += (s[i] - 1) * st[i];
    }
    return r;
  };
  // The view may begin before the base does.
  const int64_t base_at = std::max<int64_t>(-offset, 0), at = offset + base_at;
  int64_t length = std::max(base_at + reach(base_size, base_stride), at + reach(size, stride));
  Tensor flat = op::new_zeros(grad, Dims{length});
  auto places = [&](IntSpan sizes, IntSpan strides, int64_t begin) {
    Tensor all = op::arange(Scalar(length), DType::Int64, std::nullopt, grad.device());
    return op::reshape(op::as_strided(all, sizes, strides, begin), Dims{-1});
  };
  if (is_distinct(size, stride)) op::copy_(op::as_strided(flat, size, stride, at), grad);
  else flat = op::index_add(flat, 0, places(size, stride, at), op::reshape(grad, Dims{-1}));
  if (!is_distinct(base_size, base_stride)) {
    // Elements of an expanded base that share a place share its gradient.
    Tensor index = places(base_size, base_stride, base_at);
    Tensor sharers = op::index_add(op::new_zeros(index, Dims{length}), 0, index,
                                   op::new_ones(index, Dims{index.size(0)}));
    flat = op::div(flat, op::clamp_min(sharers, Scalar(int64_t(1))));
  }
  return op::as_strided(flat, base_size, base_stride, base_at);
}

Tensor view(const Tensor& self, IntSpan size) {
  Dims shape = infer_size(size, self.sizes());
  Dims strides;
  if (!view_strides(self.sizes(), self.strides(), shape, strides))
    runtime_error(
        "view size is not compatible with input tensor's size and stride (at least one "
        "dimension spans across two contiguous subspaces): a view of ",
        self.sizes(), " with strides ", self.strides(), " as ", IntSpan(shape),
        " needs a copy. Use .reshape(...) instead.");
  return make_view(self, shape, strides, self.offset());
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  if (self.is_lazy() && dtype != self.dtype())
    runtime_error("Tensor.view is not supported for ",
                  self->keys & kKeyConj ? "conjugate" : "negative",
                  " view tensors when converting to a different dtype. Use resolve_conj() or "
                  "resolve_neg() first.");
  int64_t from = int64_t(self.item_size()), to = int64_t(item_size(dtype));
  Dims sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.offset();
  if (from != to) {
    int64_t last = self.dim() - 1;
    if (last < 0)
      runtime_error("self.dim() cannot be 0 to view ", self.dtype(), " as ", dtype,
                    " (different element sizes)");
    if (sizes[last] != 1 && strides[last] != 1)
      runtime_error("self.stride(-1) must be 1 to view ", self.dtype(), " as ", dtype,
                    " (different element sizes), but got ", strides[last]);
    if (from > to) {
      int64_t ratio = from / to;
      sizes[last] *= ratio;
      for (int64_t i = 0; i < last; ++i) strides[i] *= ratio;
      offset *= ratio;
      strides[last] = 1;
    } else {
      int64_t ratio = to / from;
      if (sizes[last] % ratio)
        runtime_error("self.size(-1) must be divisible by ", ratio, " to view ", self.dtype(),
                      " as ", dtype, " (different element sizes), but got ", sizes[last]);
      if (offset % ratio)
        runtime_error("self.storage_offset() must be divisible by ", ratio, " to view ",
                      self.dtype(), " as ", dtype, " (different element sizes), but got ", offset);
      sizes[last] /= ratio;
      for (int64_t i = 0; i < last; ++i) {
        if (strides[i] % ratio)
          runtime_error("self.stride(", i, ") must be divisible by ", ratio, " to view ",
                        self.dtype(), " as ", dtype, " (different element sizes), but got ",
                        strides[i]);
        strides[i] /= ratio;
      }
      offset /= ratio;
      strides[last] = 1;
    }
  }
  Tensor v = make_view(self, sizes, strides, offset);
  v->dtype = dtype;
  return v;
}

Tensor reshape(const Tensor& self, IntSpan shape) {
  Dims sizes = infer_size(shape, self.sizes());
  Dims strides;
  if (view_strides(self.sizes(), self.strides(), sizes, strides)) return op::view(self, sizes);
  return unsafe_view(op::clone(self, MemoryFormat::Contiguous), sizes);
}

Tensor reshape_as(const Tensor& self, const Tensor& other) {
  return op::reshape(self, other.sizes());
}
Tensor view_as(const Tensor& self, const Tensor& other) {
  return op::view(self, other.sizes());
}

Tensor flatten(const Tensor& self, int64_t start, int64_t end) {
  start = wrap_dim(start, self.dim());
  end = wrap_dim(end, self.dim());
  if (start > end) runtime_error("flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return op::reshape(self, Dims{1});
  if (start == end) return self;
  Dims shape;
  for (int64_t d = 0; d < start; ++d) shape.push_back(self.sizes()[d]);
  int64_t merged = 1;
  for (int64_t d = start; d <= end; ++d) merged *= self.sizes()[d];
  shape.push_back(merged);
  for (int64_t d = end + 1; d < self.dim(); ++d) shape.push_back(self.sizes()[d]);
  return op::reshape(self, shape);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntSpan sizes) {
  dim = wrap_dim(dim, self.dim());
  if (sizes.empty()) runtime_error("unflatten: sizes must be non-empty");
  int64_t whole = self.size(dim);
  Dims inner(sizes);
  int64_t known = 1, hole = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      if (hole >= 0) runtime_error("only one dimension can be inferred");
      hole = int64_t(i);
    } else {
      known *= sizes[i];
    }
  }
  if (hole >= 0 && known > 0 && whole % known == 0) inner[hole] = whole / known;
  int64_t product = 1;
  for (int64_t s : inner) product *= s;
  if (product != whole)
    runtime_error("unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ",
                  dim, " (", whole, ") in the input tensor");
  Dims shape;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == dim)
      for (int64_t s : inner) shape.push_back(s);
    else shape.push_back(self.sizes()[d]);
  }
  return op::view(self, shape);
}

Tensor ravel(const Tensor& self) {
  return op::reshape(op::contiguous(self), Dims{-1});
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim());
  dim1 = wrap_dim(dim1, self.dim());
  Dims sizes(self.sizes()), strides(self.strides());
  if (self.dim()) {
    std::swap(sizes[dim0], sizes[dim1]);
    std::swap(strides[dim0], strides[dim1]);
  }
  return make_view(self, sizes, strides, self.offset());
}

Tensor t(const Tensor& self) {
  if (self.dim() > 2)
    runtime_error("t() expects a tensor with <= 2 dimensions, but self is ", self.dim(),
                  "D. Use .transpose(-2, -1) or .mT for batches");
  return transpose(self, 0, self.dim() < 2 ? 0 : 1);
}

// The operators that turn a tensor itself: only its geometry changes.
void transpose_(const Tensor& self, int64_t d0, int64_t d1, Rets& rets) {
  adopt_geometry(self, op::transpose(self, d0, d1), rets);
}
void t_(const Tensor& self, Rets& rets) {
  adopt_geometry(self, op::t(self), rets);
}
void unsqueeze_(const Tensor& self, int64_t dim, Rets& rets) {
  adopt_geometry(self, op::unsqueeze(self, dim), rets);
}
void squeeze_(const Tensor& self, std::optional<IntSpan> dim, Rets& rets) {
  adopt_geometry(self, dim ? op::squeeze_dim(self, *dim) : op::squeeze(self), rets);
}

Tensor permute(const Tensor& self, IntSpan dims) {
  if (int64_t(dims.size()) != self.dim())
    runtime_error(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the "
        "length of the desired ordering of dimensions i.e. input.dim() = ",
        self.dim(), " is not equal to len(dims) = ", dims.size());
  check_rank(self.dim());
  Dims sizes(dims.size()), strides(dims.size());
  uint64_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], self.dim());
    if (seen >> d & 1) runtime_error("permute(): duplicate dims are not allowed, got ", dims);
    seen |= uint64_t(1) << d;
    sizes[i] = self.sizes()[d];
    strides[i] = self.strides()[d];
  }
  return make_view(self, sizes, strides, self.offset());
}

Tensor _permute_back(const Tensor& grad, IntSpan dims) {
  Dims back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    back[wrap_dim(dims[i], int64_t(dims.size()))] = int64_t(i);
  return op::permute(grad, back);
}

Tensor movedim(const Tensor& self, IntSpan source, IntSpan destination) {
  if (source.size() != destination.size())
    runtime_error("movedim: Invalid source or destination dims: source (", source,
                  " dims) should contain the same number of dims as destination (", destination,
                  " dims)");
  check_rank(self.dim());
  auto check_dims = [&](IntSpan dims, const char* which) {
    uint64_t seen = 0;
    for (int64_t d : dims) {
      uint64_t bit = uint64_t(1) << wrap_dim(d, self.dim());
      if (seen & bit) runtime_error("movedim: repeated dim in `", which, "` (", dims, ")");
      seen |= bit;
    }
  };
  check_dims(source, "source");
  check_dims(destination, "destination");
  if (source.empty()) return op::alias(self);
  Dims order(self.dim(), -1);
  uint64_t used = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    int64_t s = wrap_dim(source[i], self.dim());
    order[wrap_dim(destination[i], self.dim())] = s;
    used |= uint64_t(1) << s;
  }
  int64_t next = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (order[d] >= 0) continue;
    while (used >> next & 1) ++next;
    order[d] = next++;
  }
  return op::permute(self, order);
}

Tensor expand(const Tensor& self, IntSpan size, bool) {
  if (int64_t(size.size()) < self.dim()) expand_error(self.sizes(), size);
  Dims sizes(size), strides(size.size());
  int64_t lead = int64_t(size.size()) - self.dim();
  for (int64_t i = int64_t(size.size()) - 1; i >= 0; --i) {
    int64_t have = i >= lead ? self.sizes()[i - lead] : 1;
    // A new dimension goes past the one behind it, which shows where it stays as long as 1.
    const bool behind = self.dim() > 0 && i + 1 < int64_t(size.size());
    int64_t stride = i >= lead ? self.strides()[i - lead]
                     : behind  ? sizes[i + 1] * strides[i + 1]
                               : 0;
    if (size[i] == -1) {
      if (i < lead)
        runtime_error("expand(", self.sizes(), ", size=", size,
                      "): the expanded size of the tensor (-1) isn't allowed in a leading, "
                      "non-existing dimension ",
                      i);
      sizes[i] = have;
    } else if (size[i] < 0) {
      runtime_error("expand: negative size ", size[i], " in ", size);
    } else if (have != size[i] && have != 1) {
      expand_error(self.sizes(), size);
    }
    strides[i] = have == sizes[i] ? stride : 0;
  }
  checked_numel(sizes);
  return make_view(self, sizes, strides, self.offset());
}

Tensor expand_as(const Tensor& self, const Tensor& other) {
  return op::expand(self, other.sizes());
}
Tensor broadcast_to(const Tensor& self, IntSpan size) {
  return op::expand(self, size);
}

static Tensor squeeze_mask(const Tensor& self, uint64_t mask) {
  Dims sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (mask >> d & 1 && self.sizes()[d] == 1) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  return make_view(self, sizes, strides, self.offset());
}
Tensor squeeze(const Tensor& self) {
  return squeeze_mask(self, dim_mask({}, self.dim()));
}
Tensor squeeze_dim(const Tensor& self, IntSpan dim) {
  check_rank(self.dim());
  uint64_t mask = 0;
  for (int64_t d : dim) {
    uint64_t bit = uint64_t(1) << wrap_dim(d, self.dim());
    if (mask & bit) runtime_error("dim ", d, " appears multiple times in the list of dims");
    mask |= bit;
  }
  return squeeze_mask(self, mask);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  int64_t d = wrap_dim(dim, self.dim() + 1);
  Dims sizes(self.sizes()), strides(self.strides());
  strides.insert(d, d < self.dim() ? self.sizes()[d] * self.strides()[d] : 1);
  sizes.insert(d, 1);
  return make_view(self, sizes, strides, self.offset());
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  if (self.dim() == 0) index_error("select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  int64_t n = self.sizes()[dim];
  if (index < -n || index >= n)
    index_error("index ", index, " out of range for tensor of size ", self.sizes(),
                " at dimension ", dim);
  if (index < 0) index += n;
  Dims sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.offset() + index * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return make_view(self, sizes, strides, offset);
}

Tensor _select_grad(const Tensor& grad, IntSpan sizes, int64_t dim, int64_t index) {
  Tensor out = op::new_zeros(grad, sizes);
  op::copy_(op::select(out, dim, index), grad);
  return out;
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  if (self.dim() == 0) runtime_error("slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  if (step <= 0) value_error("slice step must be positive");
  int64_t n = self.sizes()[dim];
  auto clip = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n); };
  int64_t from = clip(start.value_or(0)), to = clip(end.value_or(n));
  if (to < from) to = from;
  Dims sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.offset() + from * strides[dim];
  sizes[dim] = (to - from + step - 1) / step;
  strides[dim] *= step;
  return make_view(self, sizes, strides, offset);
}

Tensor _slice_grad(const Tensor& grad, IntSpan sizes, int64_t dim, std::optional<int64_t> start,
                   std::optional<int64_t> end, int64_t step) {
  Tensor out = op::new_zeros(grad, sizes);
  op::copy_(op::slice(out, dim, start, end, step), grad);
  return out;
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  if (self.dim() == 0) runtime_error("narrow() cannot be applied to a 0-dim tensor.");
  if (length < 0) runtime_error("narrow(): length must be non-negative.");
  int64_t n = self.size(dim);
  if (start < -n || start > n)
    index_error("start out of range (expected to be in range of [", -n, ", ", n, "], but got ",
                start, ")");
  if (start < 0) start += n;
  if (start > n - length)
    runtime_error("start (", start, ") + length (", length, ") exceeds dimension size (", n, ").");
  return op::slice(self, dim, start, start + length, 1);
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  dim1 = wrap_dim(dim1, self.dim());
  dim2 = wrap_dim(dim2, self.dim());
  if (dim1 == dim2) runtime_error("diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Dims sizes(self.sizes()), strides(self.strides());
  int64_t at = self.offset(), n;
  if (offset >= 0) n = std::max<int64_t>(std::min(sizes[dim1], sizes[dim2] - offset), 0);
  else n = std::max<int64_t>(std::min(sizes[dim1] + offset, sizes[dim2]), 0);
  if (n > 0) at += offset >= 0 ? offset * strides[dim2] : -offset * strides[dim1];
  int64_t stride = strides[dim1] + strides[dim2];
  int64_t hi = std::max(dim1, dim2), lo = std::min(dim1, dim2);
  for (int64_t d : {hi, lo}) {
    sizes.erase(d);
    strides.erase(d);
  }
  sizes.push_back(n);
  strides.push_back(stride);
  return make_view(self, sizes, strides, at);
}

Tensor _diagonal_grad(const Tensor& grad, IntSpan sizes, int64_t offset, int64_t dim1,
                      int64_t dim2) {
  Tensor out = op::new_zeros(grad, sizes);
  op::copy_(op::diagonal(out, offset, dim1, dim2), grad);
  return out;
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  int64_t d = wrap_dim(dimension, self.dim());
  int64_t n = self.dim() ? self.sizes()[d] : 1;
  if (size < 0) runtime_error("size is ", size, " but must be >= 0");
  if (size > n)
    runtime_error("maximum size for tensor at dimension ", d, " is ", n, " but size is ", size);
  if (step <= 0) runtime_error("step is ", step, " but must be > 0");
  Dims sizes(self.sizes()), strides(self.strides());
  sizes.push_back(size);
  strides.push_back(self.dim() ? strides[d] : 1);
  if (self.dim()) {
    sizes[d] = (n - size) / step + 1;
    strides[d] *= step;
  }
  return make_view(self, sizes, strides, self.offset());
}

Tensor _unfold_grad(const Tensor& grad, IntSpan sizes, int64_t dimension, int64_t size,
                    int64_t step) {
  if (sizes.empty()) return op::sum(grad);  // a window of one number, or of none
  dimension = wrap_dim(dimension, int64_t(sizes.size()));
  Tensor frames = op::movedim(grad, Dims{dimension}, Dims{-2});
  Tensor line = op::_overlap_add(frames, size, step);
  const int64_t missing = sizes[dimension] - line.size(-1);
  if (missing > 0) {  // what no window reached
    Dims rest(line.sizes());
    rest[rest.size() - 1] = missing;
    line = op::cat(std::vector<Tensor>{line, op::new_zeros(line, rest)}, -1);
  }
  return op::movedim(line, Dims{-1}, Dims{dimension});
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  if (self.dim() == 0) index_error("Dimension specified as ", dim, " but tensor has no dimensions");
  dim = wrap_dim(dim, self.dim());
  std::vector<Tensor> out;
  for (int64_t i = 0; i < self.sizes()[dim]; ++i) out.push_back(select(self, dim, i));
  return out;
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  if (self.dim() == 0) runtime_error("split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, self.dim());
  int64_t total = 0;
  for (int64_t s : split_sizes) {
    if (s < 0)
      runtime_error(
          "split_with_sizes expects split_sizes have only non-negative entries, but got "
          "split_sizes=",
          split_sizes);
    total += s;
  }
  if (total != self.sizes()[dim])
    runtime_error("split_with_sizes expects split_sizes to sum exactly to ", self.sizes()[dim],
                  " (input tensor's size at dimension ", dim,
                  "), but got split_sizes=", split_sizes);
  std::vector<Tensor> out;
  int64_t at = 0;
  for (int64_t s : split_sizes) {
    out.push_back(slice(self, dim, at, at + s, 1));
    at += s;
  }
  return out;
}

std::vector<Tensor> _split(const Tensor& self, int64_t split_size, int64_t dim) {
  if (self.dim() == 0) runtime_error("split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, self.dim());
  int64_t n = self.sizes()[dim];
  if (split_size < 0)
    runtime_error("split expects split_size be non-negative, but got split_size=", split_size);
  if (split_size == 0 && n != 0)
    runtime_error("split_size can only be 0 if dimension size is 0, but got dimension size of ", n);
  std::vector<Tensor> out;
  if (n == 0) return {slice(self, dim, 0, 0, 1)};
  for (int64_t at = 0; at < n; at += split_size)
    out.push_back(slice(self, dim, at, std::min(n, at + split_size), 1));
  return out;
}

// Empty dimensions can be cut into any number of pieces: absurd ones are refused at once.
static std::vector<Tensor> room_for(int64_t pieces) {
  std::vector<Tensor> out;
  try {
    out.reserve(size_t(pieces));
  } catch (const std::exception&) {
    runtime_error("there is not enough memory for ", pieces, " pieces");
  }
  return out;
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  if (self.dim() == 0) runtime_error("chunk expects at least a 1-dimensional tensor");
  if (chunks <= 0) runtime_error("chunk expects `chunks` to be greater than 0, got: ", chunks);
  int64_t n = self.size(dim), size = n / chunks + (n % chunks != 0);
  if (size == 0) {  // zero-size dimension: as many empty pieces as were asked for
    room_for(chunks);
    Dims zeros(chunks, 0);
    return op::split_with_sizes(self, zeros, dim);
  }
  return op::_split(self, size, dim);
}

std::vector<Tensor> tensor_split_sections(const Tensor& self, int64_t sections, int64_t dim) {
  if (self.dim() == 0)
    runtime_error(
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  if (sections <= 0) runtime_error("number of sections must be larger than 0, got ", sections);
  int64_t n = self.size(dim), small = n / sections, big = n % sections, at = 0;
  std::vector<Tensor> out = room_for(sections);
  for (int64_t i = 0; i < sections; ++i) {
    int64_t s = small + (i < big);
    out.push_back(op::slice(self, dim, at, at + s, 1));
    at += s;
  }
  return out;
}

std::vector<Tensor> tensor_split_indices(const Tensor& self, IntSpan indices, int64_t dim) {
  if (self.dim() == 0)
    runtime_error(
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t end : indices) {
    out.push_back(op::slice(self, dim, start, end, 1));
    start = end;
  }
  out.push_back(op::slice(self, dim, start, self.size(dim), 1));
  return out;
}

// hsplit, vsplit and dsplit: the dimension that they cut, for a tensor of sufficient rank.
static int64_t split_dim(const char* name, const Tensor& self, int64_t dim, int64_t rank) {
  if (self.dim() < rank)
    runtime_error("torch.", name, " requires a tensor with at least ", rank,
                  " dimension, but got a tensor with ", self.dim(), " dimensions!");
  return dim;
}
static std::vector<Tensor> split_evenly(const char* name, const Tensor& self, int64_t sections,
                                        int64_t dim) {
  int64_t n = self.size(dim);
  if (sections <= 0 || n % sections)
    runtime_error("torch.", name, " attempted to split along dimension ", dim,
                  ", but the size of the dimension ", n, " is not divisible by the split_size ",
                  sections, "! Use tensor_split for uneven pieces");
  return op::tensor_split_sections(self, sections, dim);
}
std::vector<Tensor> hsplit_sections(const Tensor& self, int64_t sections) {
  return split_evenly("hsplit", self, sections,
                      split_dim("hsplit", self, self.dim() == 1 ? 0 : 1, 1));
}
std::vector<Tensor> hsplit_indices(const Tensor& self, IntSpan indices) {
  return op::tensor_split_indices(self, indices,
                                  split_dim("hsplit", self, self.dim() == 1 ? 0 : 1, 1));
}
std::vector<Tensor> vsplit_sections(const Tensor& self, int64_t sections) {
  return split_evenly("vsplit", self, sections, split_dim("vsplit", self, 0, 2));
}
std::vector<Tensor> vsplit_indices(const Tensor& self, IntSpan indices) {
  return op::tensor_split_indices(self, indices, split_dim("vsplit", self, 0, 2));
}
std::vector<Tensor> dsplit_sections(const Tensor& self, int64_t sections) {
  return split_evenly("dsplit", self, sections, split_dim("dsplit", self, 2, 3));
}
std::vector<Tensor> dsplit_indices(const Tensor& self, IntSpan indices) {
  return op::tensor_split_indices(self, indices, split_dim("dsplit", self, 2, 3));
}

Tensor detach(const Tensor& self) {
  return detach_tensor(self);
}

void detach_(const Tensor& self, Rets& rets) {
  if (self->base) runtime_error("Can't detach views in-place. Use detach() instead.");
  if (self->autograd) {
    self->autograd->grad_fn = NodeRef();
    self->autograd->output_nr = 0;
    self->autograd->requires_grad = false;
  }
  self->keys &= uint8_t(~kKeyGrad);
  rets.t[0] = self;
}

}  // namespace kernels
}  // namespace facula

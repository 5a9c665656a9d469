// Selection by masks: masked_select, masked_scatter, nonzero, and take_along_dim's broadcasting.
#include <limits>

#include "cpu/index_items.h"
#include "cpu/index_mask.h"
#include "cpu/index_points.h"
#include "kernels/destination.h"
#include "op/hooks/indexing.h"
#include "op/kernels/indexing.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula::kernels {

static Tensor expanded(const Tensor& t, IntSpan shape) {
  return same(t.sizes(), shape) ? t : op::expand(t, shape);
}

// A contiguous tensor as a vector.
static Tensor flat(const Tensor& t) {
  return alias_tensor(t, Dims{t.numel()}, Dims{1}, t.offset());
}

[[noreturn]] static void no_data(const char* what) {
  fail(ErrorKind::NotImplemented, "'", what,
       "' cannot run on the meta device: the shape of the "
       "result depends on the data");
}

void masked_select(const Tensor& self, const Tensor& mask, Rets& rets) {
  if (mask.dtype() != DType::Bool)
    runtime_error("expected BoolTensor for mask, got ", mask.dtype(),
                  ". Compare first, for example mask != 0");
  if (self.device() != mask.device() && mask.dim() != 0) device_error(self.device(), mask.device());
  if (self.is_meta() || mask.is_meta()) no_data("masked_select");
  GradGuard off(false);
  Dims shape = broadcast_shapes(self.sizes(), mask.sizes());
  Tensor from = self, which = mask;
  if (rets.destination != Destination::New) {
    if (has_internal_overlap(rets.t[0].sizes(), rets.t[0].strides())) overlap_error();
    from = apart_from(rets.t[0], self);
    which = apart_from(rets.t[0], mask);
  }
  from = dense(expanded(from, shape));
  if (self.is_cuda()) {
    if (which.is_cpu()) which = op::_to_copy(which, DType::None, self.device());
    const Tensor positions = device_indexing.true_positions(dense(expanded(which, shape)), false);
    Tensor& out = exact_result(rets, 0, Dims{positions.numel()}, self.dtype(), self.device());
    if (out.numel())
      device_indexing.read(slices_along("masked_select", flat(from), 0, positions, false), out);
    return;
  }
  if (which.is_cuda()) device_error(self.device(), which.device());
  Tensor chosen = dense(expanded(which, shape));
  TrueElements found(chosen);
  Tensor& out = exact_result(rets, 0, Dims{found.count()}, self.dtype(), self.device());
  const int64_t item = int64_t(self.item_size()), step = out.strides()[0] * item;
  with_item_type(item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = from.data_as<T>();
    char* target = out.data();
    found.for_each([=](int64_t position, int64_t number) {
      *reinterpret_cast<T*>(target + number * step) = source[position];
    });
  });
}

Tensor _masked_select_grad(const Tensor& grad, IntSpan sizes, const Tensor& mask) {
  Dims shape = broadcast_shapes(sizes, mask.sizes());
  Tensor zeros = op::new_zeros(grad, shape);
  return op::masked_scatter_(zeros, mask, grad);
}

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source, Rets& rets) {
  if (mask.dtype() != DType::Bool)
    runtime_error("masked_scatter only supports boolean masks, but got mask with dtype ",
                  mask.dtype());
  if (self.dtype() != source.dtype())
    runtime_error("expected self and source to have same dtypes but got ",
                  legacy_dtype_name(self.dtype()), " and ", legacy_dtype_name(source.dtype()));
  if (self.device() != source.device()) device_error(self.device(), source.device());
  if (self.device() != mask.device()) device_error(self.device(), mask.device());
  GradGuard off(false);
  const bool in_place = rets.destination == Destination::InPlace;
  Dims shape = broadcast_shapes(self.sizes(), mask.sizes());
  if (in_place && !same(shape, self.sizes()))
    runtime_error("the mask of shape ", mask.sizes(),
                  " cannot be broadcast to the tensor of shape ", self.sizes(),
                  ", which an in-place operation cannot enlarge");
  if (self.is_meta()) {
    start_from(expanded(self, shape), rets, CopyLayout::Contiguous);
    return;
  }
  if (in_place && has_internal_overlap(self.sizes(), self.strides())) overlap_error();
  Tensor chosen = dense(expanded(mask, shape)), from = source;
  if (in_place) {
    chosen = apart_from(self, chosen);
    from = apart_from(self, from);
  }
  from = dense(from);
  auto check_count = [&](int64_t found) {
    if (from.numel() < found)
      runtime_error("Number of elements of source < number of ones in mask: source has ",
                    from.numel(), " elements and the mask selects ", found);
  };
  if (self.is_cuda()) {
    const Tensor positions = device_indexing.true_positions(chosen, false);
    check_count(positions.numel());
    Tensor& out = start_from(expanded(self, shape), rets, CopyLayout::Contiguous);
    const Tensor target = dense(out);
    if (positions.numel())
      device_indexing.write(slices_along("masked_scatter", flat(target), 0, positions, false),
                            flat(from));
    if (!target.is(out)) op::copy_(out, target);
    return;
  }
  TrueElements found(chosen);
  check_count(found.count());
  Tensor& out = start_from(expanded(self, shape), rets, CopyLayout::Contiguous);
  Tensor target = dense(out);
  with_item_type(int64_t(self.item_size()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = from.data_as<T>();
    T* to = target.data_as<T>();
    found.for_each([=](int64_t position, int64_t number) { to[position] = values[number]; });
  });
  if (!target.is(out)) op::copy_(out, target);
}

Tensor _masked_scatter_source_grad(const Tensor& grad, const Tensor& mask, IntSpan sizes) {
  const int64_t all = checked_numel(sizes);
  if (is_wrapped_by(mask, LevelKind::Vmap)) {
    // Each mask has a number of elements of its own: they go where they came from, the rest to one
    // place more, which is left out.
    const Tensor chosen = op::reshape(op::expand(mask, grad.sizes()), Dims{-1});
    const Tensor place = op::where(chosen, op::cumsum(chosen, 0) - 1, all);
    const Tensor sums =
        op::scatter_add(op::new_zeros(grad, Dims{all + 1}), 0, place, op::reshape(grad, Dims{-1}));
    return op::reshape(op::narrow(sums, 0, 0, all), sizes);
  }
  Tensor used = op::masked_select(grad, mask);
  if (used.numel() < all) {
    Tensor rest = op::new_zeros(grad, Dims{all - used.numel()});
    used = op::cat(std::vector<Tensor>{used, rest}, 0);
  }
  return op::view(used, sizes);
}

void nonzero(const Tensor& self, Rets& rets) {
  if (self.is_meta()) no_data("nonzero");
  const Tensor in = dense(self);
  if (self.is_cuda()) {
    const Tensor found = device_indexing.true_positions(in, true);
    if (!rets.t[0].defined()) {
      rets.t[0] = found;
      return;
    }
    GradGuard off(false);
    op::copy_(exact_result(rets, 0, found.sizes(), DType::Int64, self.device()), found);
    return;
  }
  TrueElements found(in);
  const int64_t n = found.count(), dims = self.dim();
  // Columns lie together, since they are what indexing wants.
  if (!rets.t[0].defined())
    rets.t[0] =
        empty_tensor(Dims{n, dims}, Dims{1, std::max<int64_t>(n, 1)}, DType::Int64, self.device());
  Tensor& out = exact_result(rets, 0, Dims{n, dims}, DType::Int64, self.device());
  if (dims == 0 || n == 0) return;
  int64_t* to = out.data_as<int64_t>();
  const int64_t row = out.strides()[0], column = out.strides()[1];
  if (dims == 1) {
    found.for_each([=](int64_t position, int64_t number) { to[number * row] = position; });
    return;
  }
  // Positions count up, so most are in the row of the one before and need no division.
  const IntSpan sizes = self.sizes();
  const int64_t width = sizes[dims - 1];
  found.for_each_block([&](const TrueElements::Block& block) {
    int64_t start = -width, outer[kMaxDims];  // of the current row
    for (int64_t k = 0; k < block.count; ++k) {
      const int64_t position = block.begin + block.places[k];
      if (position - start >= width) {
        int64_t rest = position / width;
        start = rest * width;
        for (int64_t d = dims - 2; d >= 0; --d) {
          outer[d] = rest % sizes[d];
          rest /= sizes[d];
        }
      }
      int64_t* at = to + (block.number + k) * row;
      for (int64_t d = 0; d + 1 < dims; ++d) at[d * column] = outer[d];
      at[(dims - 1) * column] = position - start;
    }
  });
}

Tensor argwhere(const Tensor& self) {
  return op::nonzero(self);
}

// Whether there is nothing to wrap; where that cannot be seen, the answer is no.
static bool none_negative(const Tensor& index) {
  if (!index.is_cpu() || index.is_wrapped() || !index.is_contiguous()) return false;
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  return find_bad_index(index.data_as<int64_t>(), index.numel(), kAny, false) < 0;
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (indices.dtype() != DType::Int64)
    runtime_error("dtype of indices should be Long but got ", legacy_dtype_name(indices.dtype()));
  if (self.device() != indices.device()) device_error(self.device(), indices.device());
  Tensor x = dim ? self : op::reshape(self, Dims{-1}),
         i = dim ? indices : op::reshape(indices, Dims{-1});
  if (x.dim() != i.dim())
    runtime_error("input and indices should have the same number of dimensions, but got ", x.dim(),
                  " dimensions for input, and ", i.dim(), " dimensions for indices");
  const int64_t d = wrap_dim(dim.value_or(0), x.dim());
  // Negative positions count from the end, unlike those of gather.
  const int64_t size = x.dim() ? x.sizes()[d] : 1;
  if (!none_negative(i)) i = op::where(op::lt(i, 0), i + size, i);
  if (x.dim() == 0) return op::gather(x, d, i);
  Dims x_shape(x.sizes()), i_shape(i.sizes()), common_x(x.sizes()), common_i(i.sizes());
  common_x[size_t(d)] = common_i[size_t(d)] = 1;
  Dims common = broadcast_shapes(common_x, common_i);
  x_shape = i_shape = common;
  x_shape[size_t(d)] = x.sizes()[d];
  i_shape[size_t(d)] = i.sizes()[d];
  return op::gather(expanded(x, x_shape), d, expanded(i, i_shape));
}

}  // namespace facula::kernels

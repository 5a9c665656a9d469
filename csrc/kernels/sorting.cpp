// Sorting, selection by rank, and distinct elements.
#include <algorithm>
#include <limits>

#include "cpu/index_distinct.h"
#include "cpu/index_sort.h"
#include "kernels/destination.h"
#include "op/hooks/sorting.h"
#include "op/kernels/indexing.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

// Sort and topk are refused on the CPU as in PyTorch, which has a name for each in its texts.
void require_order(const Tensor& self, ErrorKind kind = ErrorKind::NotImplemented,
                   const char* name = nullptr) {
  if (!self.is_complex()) return;
  if (name)
    fail(kind, name, " does not support complex dtypes on ", self.is_cpu() ? "CPU" : "CUDA",
         ": they have no order. Got ", self.dtype());
  fail(kind, "does not support complex dtypes, which have no order, but got ", self.dtype());
}

void refuse_bool(const Tensor& self, ErrorKind kind, const char* name = nullptr) {
  if (self.dtype() == DType::Bool)
    fail(kind, name ? name : "", name ? " does" : "does", " not support bool dtypes",
         name && self.is_cpu() ? " on CPU" : "",
         " (not implemented for 'Bool'); convert to facula.uint8");
}

// Values and indices of one shape; `layout` gives the strides when they are new.
void prepare_pair(const Tensor& self, IntSpan shape, IntSpan layout, Rets& rets) {
  if (rets.destination == Destination::New) {
    rets.t[0] = empty_tensor(shape, layout, self.dtype(), self.device());
    rets.t[1] = empty_tensor(shape, layout, DType::Int64, self.device());
    return;
  }
  // Resized, it would no longer hold what is to be read.
  if (rets.t[0].is(self) && !same(shape, self.sizes())) aliasing_error();
  exact_result(rets, 0, shape, self.dtype(), self.device());
  exact_result(rets, 1, shape, DType::Int64, self.device());
}

Tensor readable(const Tensor& self, const Rets& rets) {
  if (rets.destination == Destination::New) return self;
  return apart_from(rets.t[1], apart_or_copied(rets.t[0], self));
}

void sort_lines(const Tensor& in, int64_t dim, bool descending, int64_t k, const Tensor& values,
                const Tensor& indices) {
  if (in.is_cuda()) device_sorting.sort(in, dim, descending, k, values, indices);
  else cpu_sort(in, dim, descending, k, values, indices);
}

void sort_into(const Tensor& self, int64_t dim, bool descending, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  require_order(self, ErrorKind::Runtime, "Sort");
  prepare_pair(self, self.sizes(), preserved_strides(self), rets);
  if (self.is_meta() || self.numel() == 0) return;
  Tensor in = readable(self, rets);
  Tensor line = at_least_1d(in);
  sort_lines(line, dim, descending, line.sizes()[dim], at_least_1d(rets.t[0]),
             at_least_1d(rets.t[1]));
}

// A result without the dimension gets it back with size 1.
Tensor with_dim(const Tensor& t, int64_t dim, bool has_it) {
  if (has_it) return at_least_1d(t);
  Dims sizes(t.sizes()), strides(t.strides());
  sizes.insert(size_t(dim), 1);
  strides.insert(size_t(dim), 1);
  return alias_tensor(t, sizes, strides, t.offset());
}

// ---- one element of each line, on a device: lines are sorted, and the position in them computed

Tensor same_as_before(const Tensor& sorted) {  // of elements 1, 2, ... in the last dimension
  const int64_t n = sorted.size(-1);
  const Tensor a = op::narrow(sorted, -1, 1, n - 1), b = op::narrow(sorted, -1, 0, n - 1);
  const Tensor equal = op::eq(a, b);
  return sorted.is_floating() ? op::logical_or(equal, op::logical_and(op::isnan(a), op::isnan(b)))
                              : equal;
}

Tensor rank_to_pick(const Tensor& sorted, Pick pick, int64_t k) {  // (..., 1)
  const int64_t n = sorted.size(-1);
  Dims shape(sorted.sizes());
  shape[shape.size() - 1] = 1;
  auto everywhere = [&](int64_t rank) {
    return op::full(shape, Scalar(rank), DType::Int64, std::nullopt, sorted.device());
  };
  if (pick == Pick::Kth) return everywhere(k - 1);
  if (pick == Pick::Mode) {
    // Positions at which runs of equal elements begin, carried on; the longest run ends where the
    // distance from its beginning is largest.
    const Tensor places = op::expand(
        op::arange(Scalar(n), DType::Int64, std::nullopt, sorted.device()), sorted.sizes());
    Tensor begins = op::clone(places, MemoryFormat::Contiguous);
    if (n > 1) op::masked_fill_(op::narrow(begins, -1, 1, n - 1), same_as_before(sorted), 0);
    return op::argmax(places - std::get<0>(op::cummax(begins, -1)), -1, true);
  }
  if (!sorted.is_floating()) return everywhere((n - 1) / 2);
  // NaN stands behind the numbers: the first one, or the middle of the numbers.
  const int64_t last = -1;
  const Tensor numbers =
      op::sum_dim(op::logical_not(op::isnan(sorted)), IntSpan(&last, 1), true, DType::Int64);
  const Tensor middle = op::clamp_min(op::floor_divide(numbers - 1, 2), 0);
  return pick == Pick::NanMedian ? middle : op::where(op::lt(numbers, n), numbers, middle);
}

void device_pick(const Tensor& in, int64_t dim, Pick pick, int64_t k, const Tensor& values,
                 const Tensor& indices) {
  GradGuard off(false);
  const Tensor lines = op::movedim(in, Dims{dim}, Dims{-1});
  auto [sorted, order] = op::sort(lines, -1, false);
  const Tensor rank = rank_to_pick(sorted, pick, k);
  op::copy_(values, op::movedim(op::gather(sorted, -1, rank), Dims{-1}, Dims{dim}));
  op::copy_(indices, op::movedim(op::gather(order, -1, rank), Dims{-1}, Dims{dim}));
}

void pick_lines(const Tensor& in, int64_t dim, Pick pick, int64_t k, const Tensor& values,
                const Tensor& indices) {
  if (in.is_cuda()) device_pick(in, dim, pick, k, values, indices);
  else cpu_pick(in, dim, pick, k, values, indices);
}

void pick_into(const Tensor& self, int64_t dim, bool keepdim, Pick pick, int64_t k, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  require_order(self);
  if (pick != Pick::Mode) refuse_bool(self, ErrorKind::NotImplemented);
  const int64_t n = self.dim() ? self.sizes()[dim] : 1;
  Dims shape(self.sizes());
  if (self.dim()) {
    if (keepdim) shape[size_t(dim)] = 1;
    else shape.erase(size_t(dim));
  }
  const bool none = self.numel() == 0;
  if (n == 0)
    index_error("Expected reduction dim ", dim, " to have non-zero size, but the input has shape ",
                self.sizes());
  if (pick == Pick::Kth && (k < 1 || k > n))
    runtime_error("selected number k out of range for dimension ", dim, ": got k=", k,
                  ", valid are 1 to ", n);
  prepare_pair(self, shape, contiguous_strides(shape), rets);
  if (self.is_meta() || none) return;
  Tensor in = readable(self, rets);
  const bool has_dim = keepdim || self.dim() == 0;
  pick_lines(at_least_1d(in), dim, pick, k, with_dim(rets.t[0], dim, has_dim),
             with_dim(rets.t[1], dim, has_dim));
}

Tensor median_of_all(const Tensor& self, Pick pick) {
  require_order(self);
  refuse_bool(self, ErrorKind::NotImplemented);
  Tensor out = empty_tensor({}, self.dtype(), self.device());
  if (self.is_meta()) return out;
  if (self.numel() == 0) {
    GradGuard off(false);
    const Tensor nothing = empty_tensor({}, self.dtype(), Device{});
    Scalar(std::numeric_limits<double>::quiet_NaN()).store(self.dtype(), nothing.data());
    op::copy_(out, nothing);
    return out;
  }
  Tensor in = dense(self), line = alias_tensor(in, Dims{in.numel()}, Dims{1}, in.offset());
  Tensor index = empty_tensor(Dims{1}, DType::Int64, self.device());
  pick_lines(line, 0, pick, 0, at_least_1d(out), index);
  return out;
}

}  // namespace

void sort(const Tensor& self, int64_t dim, bool descending, Rets& rets) {
  sort_into(self, dim, descending, rets);
}
void sort_stable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending,
                 Rets& rets) {
  sort_into(self, dim, descending, rets);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(op::sort(self, dim, descending));
}
Tensor argsort_stable(const Tensor& self, bool, int64_t dim, bool descending) {
  return std::get<1>(op::sort(self, dim, descending));
}
Tensor msort(const Tensor& self) {
  return std::get<0>(op::sort(self, 0, false));
}

void topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool, Rets& rets) {
  dim = wrap_dim(dim, self.dim());
  require_order(self, ErrorKind::Runtime, "topk");
  refuse_bool(self, ErrorKind::Runtime, "topk");
  const int64_t n = self.dim() ? self.sizes()[dim] : 1;
  if (k < 0 || k > n)
    runtime_error("selected index k out of range: got k=", k, " for dimension ", dim, " with size ",
                  n);
  Dims shape(self.sizes());
  if (self.dim()) shape[size_t(dim)] = k;
  prepare_pair(self, shape, contiguous_strides(shape), rets);
  if (self.is_meta() || rets.t[0].numel() == 0) return;
  Tensor in = readable(self, rets);
  sort_lines(at_least_1d(in), dim, largest, self.dim() ? k : 1, at_least_1d(rets.t[0]),
             at_least_1d(rets.t[1]));
}

void kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim, Rets& rets) {
  pick_into(self, dim, keepdim, Pick::Kth, k, rets);
}
void median_dim(const Tensor& self, int64_t dim, bool keepdim, Rets& rets) {
  pick_into(self, dim, keepdim, Pick::Median, 0, rets);
}
void nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim, Rets& rets) {
  pick_into(self, dim, keepdim, Pick::NanMedian, 0, rets);
}
void mode(const Tensor& self, int64_t dim, bool keepdim, Rets& rets) {
  pick_into(self, dim, keepdim, Pick::Mode, 0, rets);
}
Tensor median(const Tensor& self) {
  return median_of_all(self, Pick::Median);
}
Tensor nanmedian(const Tensor& self) {
  return median_of_all(self, Pick::NanMedian);
}

// ---- distinct elements

namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

Tensor as_tensor(const std::vector<int64_t>& v) {
  Tensor t = empty_tensor(Dims{int64_t(v.size())}, DType::Int64, Device{});
  std::copy(v.begin(), v.end(), t.data_as<int64_t>());
  return t;
}

// The first row of every group, the group of every row, and the groups' sizes.
Triple unpack(const Tensor& matrix, const Grouping& g, bool want_inverse, bool want_counts) {
  const size_t groups = g.starts.size() - 1;
  std::vector<int64_t> first(groups), counts(want_counts ? groups : 0);
  Tensor inverse =
      empty_tensor(Dims{want_inverse ? int64_t(g.order.size()) : 0}, DType::Int64, Device{});
  for (size_t k = 0; k < groups; ++k) {
    first[k] = g.order[size_t(g.starts[k])];
    if (want_counts) counts[k] = g.starts[k + 1] - g.starts[k];
    if (want_inverse)
      for (int64_t i = g.starts[k]; i < g.starts[k + 1]; ++i)
        inverse.data_as<int64_t>()[g.order[size_t(i)]] = int64_t(k);
  }
  return {op::index_select(matrix, 0, as_tensor(first)), inverse, as_tensor(counts)};
}

void require_data(const Tensor& self, const char* what) {
  if (self.is_meta())
    fail(ErrorKind::NotImplemented, "'", what,
         "' cannot run on the meta device: the shape of the "
         "result depends on the data");
  require_order(self);
}

// ---- on a device, made of operators; the host reads how many groups there are

// Rows of a matrix in order: sorted by the last column first, stably.
Tensor row_order(const Tensor& matrix) {
  Tensor order = op::arange(Scalar(matrix.size(0)), DType::Int64, std::nullopt, matrix.device());
  for (int64_t c = matrix.size(1); c-- > 0;) {
    const Tensor column = op::index_select(op::select(matrix, 1, c), 0, order);
    order = op::index_select(order, 0, std::get<1>(op::sort(column, 0, false)));
  }
  return order;
}

Triple device_groups(const Tensor& matrix, bool sorted, bool want_inverse, bool want_counts) {
  const int64_t n = matrix.size(0);
  const Device device = matrix.device();
  auto none = [&] { return empty_tensor(Dims{0}, DType::Int64, device); };
  if (n == 0) return {matrix, none(), none()};
  Tensor order, rows = matrix;
  if (sorted) {
    order = row_order(matrix);
    rows = op::index_select(matrix, 0, order);
  }
  // The first row of each group differs from the one before it; NaN differs from NaN.
  Tensor first = op::ones(Dims{n}, DType::Bool, std::nullopt, device);
  const int64_t along = 1;
  if (n > 1)
    op::copy_(op::narrow(first, 0, 1, n - 1),
              op::any_dim(op::ne(op::narrow(rows, 0, 1, n - 1), op::narrow(rows, 0, 0, n - 1)),
                          IntSpan(&along, 1)));
  const Tensor starts = op::reshape(op::nonzero(first), Dims{-1});
  Tensor inverse = none(), counts = none();
  if (want_inverse) {
    inverse = op::cumsum(first, 0) - 1;
    if (sorted) inverse = op::scatter_src(op::empty_like(inverse), 0, order, inverse);
  }
  if (want_counts) {
    const Tensor end = op::full(Dims{1}, Scalar(n), DType::Int64, std::nullopt, device);
    const std::vector<Tensor> limits{op::narrow(starts, 0, 1, starts.numel() - 1), end};
    counts = op::cat(limits, 0) - starts;
  }
  return {op::index_select(rows, 0, starts), inverse, counts};
}

Triple groups(const Tensor& matrix, bool sorted, bool want_inverse, bool want_counts) {
  if (matrix.is_cuda()) return device_groups(matrix, sorted, want_inverse, want_counts);
  return unpack(matrix, sorted ? cpu_group_sorted(matrix) : cpu_group_neighbours(matrix),
                want_inverse, want_counts);
}

Triple unique_elements(const Tensor& self, bool sorted, bool want_inverse, bool want_counts) {
  require_data(self, "unique");
  GradGuard off(false);
  if (self.is_cuda()) {
    Tensor column = op::reshape(dense(self), Dims{self.numel(), 1});
    auto [rows, inverse, counts] = groups(column, sorted, want_inverse, want_counts);
    if (want_inverse) inverse = op::reshape(inverse, self.sizes());
    return {op::reshape(rows, Dims{rows.numel()}), inverse, counts};
  }
  Tensor x = op::reshape(dense(self), Dims{self.numel()});
  Distinct d = sorted ? cpu_distinct_sorted(x, want_inverse, want_counts)
                      : cpu_distinct_neighbours(x, want_inverse, want_counts);
  if (want_inverse) d.inverse = op::reshape(d.inverse, self.sizes());
  return {d.values, d.inverse, d.counts};
}

Triple unique_slices(const Tensor& self, int64_t dim, bool sorted, bool want_inverse,
                     bool want_counts) {
  require_data(self, "unique");
  if (self.dim() == 0) index_error("Dimension specified as ", dim, " but tensor has no dimensions");
  dim = wrap_dim(dim, self.dim());
  GradGuard off(false);
  Tensor moved = dense(op::movedim(self, Dims{dim}, Dims{0}));
  const int64_t n = moved.sizes()[0], width = n ? moved.numel() / n : 0;
  int64_t empty_dims = std::count(self.sizes().begin(), self.sizes().end(), 0);
  if (empty_dims > 1 || (empty_dims == 1 && n != 0))
    runtime_error(
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied "
        "to shape ",
        self.sizes(), " along dim ", dim);
  if (width == 1) {
    auto [values, inverse, counts] =
        unique_elements(op::reshape(moved, Dims{n}), sorted, want_inverse, want_counts);
    Dims shape(moved.sizes());
    shape[0] = values.numel();
    return {op::movedim(op::reshape(values, shape), Dims{0}, Dims{dim}), inverse, counts};
  }
  Tensor matrix = op::reshape(moved, Dims{n, width});
  auto [rows, inverse, counts] = groups(matrix, sorted, want_inverse, want_counts);
  Dims shape(moved.sizes());
  shape[0] = rows.sizes()[0];
  return {op::movedim(op::reshape(rows, shape), Dims{0}, Dims{dim}), inverse, counts};
}

}  // namespace

Triple _unique(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  return unique_elements(self, true, return_inverse, return_counts);
}
Triple _unique_dim(const Tensor& self, int64_t dim, bool, bool return_inverse, bool return_counts) {
  return unique_slices(self, dim, true, return_inverse, return_counts);
}
Triple _unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                           std::optional<int64_t> dim) {
  return dim ? unique_slices(self, *dim, false, return_inverse, return_counts)
             : unique_elements(self, false, return_inverse, return_counts);
}

}  // namespace facula::kernels

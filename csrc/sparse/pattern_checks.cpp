// Whether index tensors and values belong together.
#include "autograd/node.h"
#include "kernels/destination.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/views.h"
#include "sparse/device_pattern.h"

namespace facula::sparse {

// Positions belong where the values are.
static void check_place(const Tensor& indices, const Tensor& values) {
  if (indices.is_meta())
    fail(ErrorKind::NotImplemented, "positions on the meta device cannot be checked");
  const Device wanted = device_of_positions(values.device());
  if (indices.device() != wanted) device_error(wanted, indices.device());
}

void check_coo(const Tensor& indices, const Tensor& values, IntSpan sizes) {
  check_place(indices, values);
  const int64_t dims = indices.size(0), n = indices.size(1);
  if (dims > int64_t(sizes.size()))
    runtime_error("number of dimensions must be sparse_dim (", dims, ") + dense_dim (",
                  values.dim() - 1, "), but the size is ", sizes);
  if (dims + values.dim() - 1 != int64_t(sizes.size()))
    runtime_error("number of dimensions must be sparse_dim (", dims, ") + dense_dim (",
                  values.dim() - 1, "), but got ", sizes.size(), " sizes: ", sizes);
  if (values.size(0) != n)
    runtime_error("indices and values must have same nnz, but got nnz from indices: ", n,
                  ", nnz from values: ", values.size(0));
  for (int64_t d = 1; d < values.dim(); ++d)
    if (values.size(d) != sizes[size_t(dims + d - 1)])
      runtime_error("values has incorrect size, expected (nnz, *dense sizes) for a tensor of size ",
                    sizes, " with ", dims, " sparse dimensions, got values of shape ",
                    values.sizes());
  // Where one is out of bounds, the loops find which.
  if (!has_loops(indices) && device::within(indices, sizes)) return;
  const Tensor dense = in_host_memory(indices);
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t* at = dense.data_as<int64_t>() + d * n;
    for (int64_t i = 0; i < n; ++i) {
      if (at[i] < 0) runtime_error("found negative index ", at[i], " for dim ", d);
      if (at[i] >= sizes[size_t(d)])
        runtime_error("size is inconsistent with indices: for dim ", d, ", size is ",
                      sizes[size_t(d)], " but found index ", at[i]);
    }
  }
}

// Every matrix of a batch by itself.
static bool check_batch(SparseLayout layout, const Tensor& starts, const Tensor& plain,
                        const Tensor& values, IntSpan sizes) {
  const int64_t n = starts.size(0);
  if (plain.dim() != starts.dim() || values.dim() < starts.dim() || sizes.size() < 3 ||
      plain.size(0) != n || values.size(0) != n || sizes[0] != n)
    runtime_error("the indices, the values and the size of a batch of matrices must have the same ",
                  "batch dimensions in front, but got shapes ", starts.sizes(), ", ", plain.sizes(),
                  " and ", values.sizes(), " for the size ", sizes);
  bool sorted = true;
  for (int64_t i = 0; i < n; ++i)
    sorted &= check_compressed(layout, op::select(starts, 0, i), op::select(plain, 0, i),
                               op::select(op::detach(values), 0, i), sizes.subspan(1));
  return sorted;
}

bool check_compressed(SparseLayout layout, const Tensor& starts, const Tensor& plain,
                      const Tensor& values, IntSpan sizes) {
  SparseParts form;
  form.layout = layout;
  const char* start_name = form.by_rows() ? "crow_indices" : "ccol_indices";
  const char* plain_name = form.by_rows() ? "col_indices" : "row_indices";
  check_place(starts, values);
  check_place(plain, values);
  if (starts.dim() > 1) return check_batch(layout, starts, plain, values, sizes);
  if (starts.dim() != 1 || plain.dim() != 1)
    runtime_error(start_name, " and ", plain_name, " must have as many dimensions, one or more, ",
                  "got shapes ", starts.sizes(), " and ", plain.sizes());
  const int64_t blocks = form.in_blocks() ? 2 : 0;
  if (values.dim() < 1 + blocks)
    runtime_error("values must have at least ", 1 + blocks, " dimensions, got shape ",
                  values.sizes());
  const int64_t dense_dims = values.dim() - 1 - blocks;
  if (int64_t(sizes.size()) != 2 + dense_dims)
    runtime_error("tensor dimensionality must be 2 (a matrix) + ", dense_dims,
                  " dense dimensions of the values, but the size is ", sizes);
  for (int64_t d = 0; d < dense_dims; ++d)
    if (values.size(1 + blocks + d) != sizes[size_t(2 + d)])
      runtime_error("dense dimension ", d, " of values is ", values.size(1 + blocks + d),
                    ", but the size is ", sizes);
  const int64_t height = blocks ? values.size(1) : 1, width = blocks ? values.size(2) : 1;
  if (height <= 0 || width <= 0 || sizes[0] % height || sizes[1] % width)
    runtime_error("the size ", sizes, " must be divisible by the blocks of ", height, " x ", width);
  const int64_t rows = form.by_rows() ? sizes[0] / height : sizes[1] / width,
                columns = form.by_rows() ? sizes[1] / width : sizes[0] / height;
  if (starts.numel() != rows + 1)
    runtime_error(start_name, ".shape[-1] must be equal to the number of ",
                  form.by_rows() ? "rows" : "columns", " + 1 (", rows + 1, "), but got ",
                  starts.numel());
  const int64_t n = plain.numel();
  if (values.size(0) != n)
    runtime_error("the number of ", plain_name, " (", n, ") must be that of the values (",
                  values.size(0), ")");
  if (!has_loops(starts))
    if (const auto sorted =
            device::sorted_pattern(plain_indices(starts), plain_indices(plain), columns))
      return *sorted;
  const Tensor s = in_host_memory(starts), p = in_host_memory(plain);
  const int64_t *at = s.data_as<int64_t>(), *c = p.data_as<int64_t>();
  const char* count = form.by_rows() ? "ncols" : "nrows";
  if (at[0] != 0) runtime_error("`", start_name, "[..., 0] == 0` is not satisfied. It is ", at[0]);
  if (at[rows] != n)
    runtime_error("`", start_name, "[..., -1] == nnz` is not satisfied. It is ", at[rows],
                  ", the number of elements ", n);
  bool sorted = true;
  for (int64_t r = 0; r < rows; ++r) {
    if (at[r + 1] < at[r] || at[r + 1] > n)
      runtime_error("`0 <= ", start_name, "[..., 1:] - ", start_name, "[..., :-1] <= ", count,
                    "` is not satisfied. It must rise by 0 to ", columns,
                    " at every step, but goes from ", at[r], " to ", at[r + 1], " at ", r);
    for (int64_t k = at[r]; k < at[r + 1]; ++k) {
      if (c[k] < 0 || c[k] >= columns)
        runtime_error("`0 <= ", plain_name, " < ", count, "` is not satisfied. Accepted is [0, ",
                      columns, "), but found ", c[k]);
      sorted &= k == at[r] || c[k] > c[k - 1];
    }
  }
  return sorted;
}

void resize(const Tensor& t, IntSpan sizes, int64_t sparse_dim, int64_t dense_dim, bool clear) {
  if (layout_of(t) != SparseLayout::Coo)
    runtime_error(
        "sparse_resize_() is for tensors of layout facula.sparse_coo, this one is facula.",
        layout_name(layout_of(t)));
  if (requires_grad(t)) runtime_error("cannot resize tensors that require grad");
  if (sparse_dim < 0 || dense_dim < 0 || sparse_dim + dense_dim != int64_t(sizes.size()))
    runtime_error("number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim (",
                  dense_dim, "), but got ", sizes.size());
  SparseParts parts = sparse_parts(t);
  Dims shape{clear ? 0 : parts.nnz()};
  for (int64_t s : sizes.subspan(size_t(sparse_dim))) shape.push_back(s);
  if (!clear && parts.nnz()) {
    bool fits = sparse_dim == parts.sparse_dim && dense_dim == parts.dense_dim;
    for (size_t d = 0; fits && d < sizes.size(); ++d) fits = sizes[d] >= t.sizes()[d];
    if (!fits)
      runtime_error("a tensor with elements of size ", t.sizes(), " (", parts.sparse_dim,
                    " sparse dimensions) can only grow, to as many dimensions of each kind, but ",
                    "the new size is ", sizes, " (", sparse_dim, " sparse)");
  }
  Tensor values = op::zeros(shape, t.dtype(), std::nullopt, t.device());
  if (!clear && parts.nnz()) {
    Tensor inner = values;
    for (int64_t d = 1; d < values.dim(); ++d)
      inner = op::narrow(inner, d, 0, parts.values.size(d));
    op::copy_(inner, parts.values);
  }
  if (!parts.nnz() || clear) {
    parts.indices = empty_tensor(Dims{sparse_dim, 0}, DType::Int64, parts.indices.device());
    parts.coalesced = true;
  }
  parts.values = values;
  parts.sparse_dim = sparse_dim;
  parts.dense_dim = dense_dim;
  replace_parts(t, sizes, std::move(parts));
  t.bump_version("sparse_resize_");
}

}  // namespace facula::sparse

#include "sparse/pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "autograd/node.h"
#include "kernels/destination.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/views.h"

namespace facula::sparse {
namespace {

Tensor integers(IntSpan sizes) {
  return empty_tensor(sizes, DType::Int64, Device{});
}

int64_t* numbers(const Tensor& t) {
  return t.data_as<int64_t>();
}

// Stable order of the keys: counting passes over 11 bits at a time, as many as the largest needs.
void radix_order(const int64_t* keys, int64_t n, int64_t largest, int64_t* order) {
  constexpr int kBits = 11;
  constexpr int64_t kBuckets = 1 << kBits;
  struct Entry {
    int64_t key, place;
  };
  std::unique_ptr<Entry[]> from(new Entry[size_t(n)]), to(new Entry[size_t(n)]);
  for (int64_t i = 0; i < n; ++i) from[size_t(i)] = {keys[i], i};
  const int width = std::bit_width(uint64_t(largest));
  std::unique_ptr<int64_t[]> first(new int64_t[kBuckets]);
  for (int shift = 0; shift < width; shift += kBits) {
    std::fill_n(first.get(), kBuckets, 0);
    for (int64_t i = 0; i < n; ++i) ++first[size_t(from[size_t(i)].key >> shift & (kBuckets - 1))];
    int64_t at = 0;
    for (int64_t b = 0; b < kBuckets; ++b) at += std::exchange(first[size_t(b)], at);
    for (int64_t i = 0; i < n; ++i) {
      const Entry e = from[size_t(i)];
      to[size_t(first[size_t(e.key >> shift & (kBuckets - 1))]++)] = e;
    }
    std::swap(from, to);
  }
  for (int64_t i = 0; i < n; ++i) order[i] = from[size_t(i)].place;
}

void comparison_order(const int64_t* keys, int64_t n, int64_t* order) {
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order, order + n, [keys](int64_t a, int64_t b) { return keys[a] < keys[b]; });
}

}  // namespace

Tensor plain_indices(const Tensor& t) {
  return dense_int64(t);
}

Tensor linear_keys(const Tensor& indices, IntSpan sizes) {
  const int64_t n = indices.size(1);
  Tensor keys = integers(Dims{n});
  int64_t* to = numbers(keys);
  std::fill_n(to, n, 0);
  const Tensor dense = plain_indices(indices);
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t* from = numbers(dense) + int64_t(d) * n;
    const int64_t size = sizes[d];
    for (int64_t i = 0; i < n; ++i) to[i] = to[i] * size + from[i];
  }
  return keys;
}

Tensor positions_of(const Tensor& keys, IntSpan sizes) {
  const int64_t n = keys.numel();
  Tensor indices = integers(Dims{int64_t(sizes.size()), n});
  const int64_t* from = numbers(keys);
  int64_t* to = numbers(indices);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = from[i];
    for (size_t d = sizes.size(); d-- > 1;) {
      to[int64_t(d) * n + i] = rest % sizes[d];
      rest /= sizes[d];
    }
    if (!sizes.empty()) to[i] = rest;
  }
  return indices;
}

Groups group_keys(const Tensor& keys) {
  const int64_t n = keys.numel();
  const int64_t* k = numbers(keys);
  Groups groups;
  bool sorted = true, distinct = true;
  int64_t largest = n ? k[0] : 0;
  for (int64_t i = 1; i < n; ++i) {
    sorted &= k[i - 1] <= k[i];
    distinct &= k[i - 1] < k[i];
    largest = std::max(largest, k[i]);
  }
  if (distinct) {
    groups.keys = keys;
    return groups;
  }
  const int64_t* order = nullptr;
  if (!sorted) {
    groups.order = integers(Dims{n});
    // Few keys do not fill the buckets.
    if (n < 512) comparison_order(k, n, numbers(groups.order));
    else radix_order(k, n, largest, numbers(groups.order));
    order = numbers(groups.order);
  }
  Tensor member = integers(Dims{n}), found = integers(Dims{n});
  int64_t* m = numbers(member);
  int64_t* f = numbers(found);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = order ? order[i] : i;
    if (!count || f[count - 1] != k[at]) f[count++] = k[at];
    m[at] = count - 1;
  }
  groups.keys = alias_tensor(found, Dims{count}, Dims{1}, 0);
  groups.distinct = count == n;
  if (order || !groups.distinct) groups.member = member;
  return groups;
}

Groups merge_keys(const Tensor& a, const Tensor& b) {
  const int64_t n = a.numel(), m = b.numel();
  Groups groups;
  groups.keys = integers(Dims{n + m});
  groups.member = integers(Dims{n + m});
  const int64_t *x = numbers(a), *y = numbers(b);
  int64_t *keys = numbers(groups.keys), *member = numbers(groups.member), count = 0;
  for (int64_t i = 0, j = 0; i < n || j < m; ++count) {
    const bool left = i < n && (j == m || x[i] <= y[j]), right = j < m && (i == n || y[j] <= x[i]);
    keys[count] = left ? x[i] : y[j];
    if (left) member[i++] = count;
    if (right) member[n + j++] = count;
  }
  groups.distinct = count == n + m;
  groups.keys = alias_tensor(groups.keys, Dims{count}, Dims{1}, 0);
  return groups;
}

Tensor row_starts(const Tensor& rows, int64_t count) {
  Tensor starts = integers(Dims{count + 1});
  int64_t* to = numbers(starts);
  const int64_t* from = numbers(rows);
  const int64_t n = rows.numel();
  std::fill_n(to, count + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++to[from[i] + 1];
  for (int64_t r = 0; r < count; ++r) to[r + 1] += to[r];
  return starts;
}

Tensor rows_of(const Tensor& starts, int64_t nnz) {
  Tensor rows = integers(Dims{nnz});
  const int64_t* from = numbers(starts);
  for (int64_t r = 0; r + 1 < starts.numel(); ++r)
    std::fill(numbers(rows) + from[r], numbers(rows) + from[r + 1], r);
  return rows;
}

Turned turn_pattern(const Tensor& starts, const Tensor& plain, int64_t columns) {
  const int64_t n = plain.numel(), rows = starts.numel() - 1;
  Turned t{row_starts(plain, columns), integers(Dims{n}), integers(Dims{n})};
  std::unique_ptr<int64_t[]> next(new int64_t[size_t(columns) + 1]);
  std::copy_n(numbers(t.starts), columns + 1, next.get());
  const int64_t *s = numbers(starts), *c = numbers(plain);
  int64_t *p = numbers(t.plain), *o = numbers(t.order);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = s[r]; k < s[r + 1]; ++k) {
      const int64_t at = next[size_t(c[k])]++;
      p[at] = r;
      o[at] = k;
    }
  return t;
}

Matches match_keys(const Tensor& wanted, const Tensor& known) {
  const int64_t n = wanted.numel(), m = known.numel();
  Tensor a = integers(Dims{n}), b = integers(Dims{n});
  const int64_t *w = numbers(wanted), *k = numbers(known);
  int64_t count = 0, j = 0;
  for (int64_t i = 0; i < n && j < m; ++i) {
    while (j < m && k[j] < w[i]) ++j;
    if (j < m && k[j] == w[i]) {
      numbers(a)[count] = i;
      numbers(b)[count++] = j;
    }
  }
  return {alias_tensor(a, Dims{count}, Dims{1}, 0), alias_tensor(b, Dims{count}, Dims{1}, 0)};
}

static void check_on_host(const Tensor& indices) {
  if (!indices.is_cpu())
    fail(ErrorKind::NotImplemented, "the positions of elements must be in host memory, but are on ",
         indices.device());
}

void check_coo(const Tensor& indices, const Tensor& values, IntSpan sizes) {
  check_on_host(indices);
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
  const Tensor dense = plain_indices(indices);
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t* at = numbers(dense) + d * n;
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
  check_on_host(starts);
  check_on_host(plain);
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
  const Tensor s = plain_indices(starts), p = plain_indices(plain);
  const int64_t *at = numbers(s), *c = numbers(p);
  if (at[0] != 0) runtime_error(start_name, "[0] must be 0, but got ", at[0]);
  if (at[rows] != n)
    runtime_error(start_name, "[-1] must be the number of elements, ", n, ", but got ", at[rows]);
  bool sorted = true;
  for (int64_t r = 0; r < rows; ++r) {
    if (at[r + 1] < at[r] || at[r + 1] > n)
      runtime_error(start_name, " must rise by 0 to ", columns, " at every step, but goes from ",
                    at[r], " to ", at[r + 1], " at ", r);
    for (int64_t k = at[r]; k < at[r + 1]; ++k) {
      if (c[k] < 0 || c[k] >= columns)
        runtime_error(plain_name, " must be in [0, ", columns, "), but found ", c[k]);
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
    parts.indices = integers(Dims{sparse_dim, 0});
    parts.coalesced = true;
  }
  parts.values = values;
  parts.sparse_dim = sparse_dim;
  parts.dense_dim = dense_dim;
  replace_parts(t, sizes, std::move(parts));
  t.bump_version("sparse_resize_");
}

}  // namespace facula::sparse

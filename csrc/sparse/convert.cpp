#include "sparse/convert.h"

#include "autograd/node.h"
#include "kernels/destination.h"
#include "op/kernels/sparse.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/reductions.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::sparse {

Tensor values_of(const Tensor& t) {
  const bool taped = grad_enabled() && requires_grad(t);
  return op::_sparse_elements(t, taped ? make_sparse(t.sizes(), sparse_parts(t)) : t);
}

Tensor from_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced) {
  return op::_sparse_make(indices, Tensor(), values, sizes, int64_t(SparseLayout::Coo), coalesced);
}

Tensor from_keys(const Tensor& keys, const Tensor& values, IntSpan sizes, bool coalesced) {
  const size_t dims = sizes.size() - size_t(values.dim() - 1);
  return from_coo(positions_of(keys, sizes.first(dims)), values, sizes, coalesced);
}

Tensor from_compressed(SparseLayout layout, const Tensor& starts, const Tensor& plain,
                       const Tensor& values, IntSpan sizes, bool sorted) {
  return op::_sparse_make(starts, plain, values, sizes, int64_t(layout), sorted);
}

Tensor with_values(const Tensor& t, const Tensor& values) {
  const SparseParts& parts = sparse_parts(t);
  Dims sizes(t.sizes().first(size_t(parts.batch_dim + parts.sparse_dim)));
  for (int64_t d = parts.batch_dim + (parts.in_blocks() ? 3 : 1); d < values.dim(); ++d)
    sizes.push_back(values.size(d));
  return op::_sparse_make(parts.indices, parts.plain, values, sizes, int64_t(parts.layout),
                          parts.coalesced);
}

IntSpan sparse_sizes(const Tensor& t) {
  return t.sizes().first(size_t(sparse_parts(t).sparse_dim));
}
IntSpan dense_sizes(const Tensor& t) {
  return t.sizes().subspan(size_t(sparse_parts(t).sparse_dim));
}
int64_t sparse_numel(const Tensor& t) {
  int64_t n = 1;
  for (int64_t s : sparse_sizes(t)) n *= s;
  return n;
}

Tensor element_keys(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  if (parts.layout == SparseLayout::Coo) return linear_keys(parts.indices, sparse_sizes(t));
  const Tensor outer = rows_of(plain_indices(parts.indices), parts.nnz()),
               inner = plain_indices(parts.plain);
  const BlockShape block{parts.in_blocks() ? parts.values.size(1) : 1,
                         parts.in_blocks() ? parts.values.size(2) : 1};
  return parts.by_rows() ? keys_in_blocks(outer, inner, t.sizes()[1], block)
                         : keys_in_blocks(inner, outer, t.sizes()[1], block);
}

Tensor element_values(const Tensor& t) {
  const Tensor values = values_of(t);
  if (!sparse_parts(t).in_blocks()) return values;
  Dims shape{values.size(0) * values.size(1) * values.size(2)};
  for (int64_t s : dense_sizes(t)) shape.push_back(s);
  return op::reshape(values, shape);
}

Tensor to_coo(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  if (parts.layout == SparseLayout::Coo) return t;
  return from_keys(element_keys(t), element_values(t), t.sizes(),
                   parts.layout == SparseLayout::Csr && parts.coalesced);
}

Tensor rows_at(const Tensor& values, const Tensor& index) {
  return values.is_meta() ? op::slice(values, 0, 0, index.numel())
                          : op::index_select(values, 0, index);
}

Tensor add_groups(const Tensor& values, const Tensor& member, int64_t groups) {
  Dims shape(values.sizes());
  shape[0] = groups;
  if (values.is_meta())  // the sum is for the history
    return op::add(op::zeros(shape, values.dtype(), std::nullopt, values.device()),
                   op::sum_dim(values, Dims{0}, false, values.dtype()));
  // Sums of truth values are numbers.
  const bool truths = values.dtype() == DType::Bool;
  const Tensor addends = truths ? op::_to_copy(values, DType::Int64) : values;
  const Tensor sums = op::index_add(
      op::zeros(shape, addends.dtype(), std::nullopt, values.device()), 0, member, addends);
  return truths ? op::ne(sums, 0) : sums;
}

Tensor add_in_order(const Tensor& values, const Tensor& member, const Tensor& order,
                    int64_t groups) {
  if (has_loops(member) || values.is_meta() || !is_floating(values.dtype()))
    return add_groups(values, member, groups);
  // A matrix of ones, with a row for each group, times the values.
  const int64_t n = values.size(0);
  const Tensor sorted = order.defined() ? op::index_select(member, 0, order) : member,
               entries = order.defined()
                             ? order
                             : op::arange(Scalar(n), DType::Int64, std::nullopt, member.device());
  Dims shape(values.sizes());
  shape[0] = groups;
  int64_t width = 1;
  for (size_t d = 1; d < shape.size(); ++d) width *= shape[d];
  const Tensor ones = op::ones(Dims{n}, values.dtype(), std::nullopt, values.device());
  return op::reshape(
      op::_csr_mm(row_starts(sorted, groups), entries, ones, op::reshape(values, Dims{n, width})),
      shape);
}

Tensor coalesce(const Tensor& given) {
  const Tensor t = to_coo(given);
  if (sparse_parts(t).coalesced) return t;
  const Groups groups = group_keys(element_keys(t));
  Tensor values = values_of(t);
  if (!groups.distinct)
    values = add_in_order(values, groups.member, groups.order, groups.keys.numel());
  else if (groups.order.defined()) values = rows_at(values, groups.order);
  return from_keys(groups.keys, values, t.sizes(), true);
}

Csr csr_of(const Tensor& t) {
  const int64_t rows = t.size(0), width = t.size(1);
  const SparseParts& parts = sparse_parts(t);
  if (parts.layout == SparseLayout::Csr)
    return {plain_indices(parts.indices), plain_indices(parts.plain), values_of(t), rows, width};
  if (parts.layout == SparseLayout::Csc)
    return turned(
        {plain_indices(parts.indices), plain_indices(parts.plain), values_of(t), width, rows});
  const Tensor sorted = coalesce(t);
  const Tensor indices = sparse_parts(sorted).indices;
  return {row_starts(op::select(indices, 0, 0), rows), plain_indices(op::select(indices, 0, 1)),
          values_of(sorted), rows, width};
}

Csr turned(const Csr& m) {
  const Turned pattern = turn_pattern(m.starts, m.columns, m.width);
  return {pattern.starts, pattern.plain, rows_at(m.values, pattern.order), m.width, m.rows};
}

static void check_matrix(const Tensor& t, SparseLayout layout, int64_t sparse_dims) {
  if (sparse_dims != 2)
    runtime_error("a tensor in ", layout_name(layout),
                  " layout has 2 sparse dimensions, but this one of shape ", t.sizes(), " has ",
                  sparse_dims);
}

static Tensor compress(const Tensor& t, SparseLayout layout) {
  check_matrix(t, layout, sparse_parts(t).sparse_dim);
  const SparseParts& parts = sparse_parts(t);
  const bool sorted = parts.layout == SparseLayout::Coo || parts.coalesced;
  Csr m = csr_of(t);
  if (layout == SparseLayout::Csc) m = turned(m);
  return from_compressed(layout, m.starts, m.columns, m.values, t.sizes(), sorted);
}

static Tensor into_blocks(const Tensor& t, SparseLayout layout, IntSpan block) {
  check_matrix(t, layout, sparse_parts(t).sparse_dim);
  if (block.size() != 2 || block[0] <= 0 || block[1] <= 0)
    runtime_error("blocksize must be two positive ints, got ", block);
  const int64_t height = block[0], width = block[1], columns = t.size(1);
  if (t.size(0) % height || columns % width)
    runtime_error("tensor sparse size (", t.size(0), ", ", columns,
                  ") must be divisible by given blocksize (", height, ", ", width, ")");
  const bool by_rows = layout == SparseLayout::Bsr;
  const int64_t outer = by_rows ? t.size(0) / height : columns / width,
                inner = by_rows ? columns / width : t.size(0) / height;
  const Tensor keys = element_keys(t);
  const Groups blocks = group_keys(block_keys(keys, columns, {height, width}, by_rows, inner));
  const Tensor place = places_in_blocks(keys, blocks.member, columns, {height, width});
  const int64_t count = blocks.keys.numel();
  Dims shape{count, height, width};
  for (int64_t s : dense_sizes(t)) shape.push_back(s);
  const Tensor values =
      op::reshape(add_groups(element_values(t), place, count * height * width), shape);
  const Tensor at = positions_of(blocks.keys, Dims{outer, inner});
  return from_compressed(layout, row_starts(op::select(at, 0, 0), outer),
                         plain_indices(op::select(at, 0, 1)), values, t.sizes(), true);
}

static Tensor from_dense(const Tensor& t, int64_t sparse_dims) {
  const IntSpan sizes = t.sizes();
  Dims flat{1};
  for (int64_t d = 0; d < sparse_dims; ++d) flat[0] *= sizes[size_t(d)];
  for (int64_t s : sizes.subspan(size_t(sparse_dims))) flat.push_back(s);
  const Tensor rows = op::reshape(t, flat);
  Tensor present = op::ne(op::detach(rows), 0);
  Dims inner;
  for (int64_t d = 1; d < present.dim(); ++d) inner.push_back(d);
  if (!inner.empty()) present = op::any_dim(present, inner);
  const Tensor keys = plain_indices(op::select(op::nonzero(present), 1, 0));
  return from_keys(keys, op::index_select(rows, 0, keys), sizes, true);
}

Tensor in_layout_of(const Tensor& t, const Tensor& like) {
  const SparseParts& parts = sparse_parts(like);
  if (parts.layout == sparse_parts(t).layout) return t;
  Dims block;
  if (parts.in_blocks()) {
    block = {parts.values.size(1), parts.values.size(2)};
    if (t.size(0) % block[0] || t.size(1) % block[1]) return t;
  }
  return op::_sparse_convert(t, int64_t(parts.layout), parts.sparse_dim, block);
}

}  // namespace facula::sparse

namespace facula::kernels {

using namespace facula::sparse;

Tensor _sparse_make(const Tensor& indices, const Tensor& plain, const Tensor& values, IntSpan sizes,
                    int64_t layout, bool sorted) {
  const Device place = device_of_positions(values.device());
  for (const Tensor* part : {&indices, &plain})
    if (part->defined() && part->device() != place) device_error(place, part->device());
  if (values.is_meta() && values.numel())
    fail(ErrorKind::NotImplemented, "sparse tensors on the meta device have no elements");
  if (values.is_lazy())
    return _sparse_make(indices, plain, op::clone(values), sizes, layout, sorted);
  const bool coo = SparseLayout(layout) == SparseLayout::Coo;
  if (layout < int64_t(SparseLayout::Coo) || layout > int64_t(SparseLayout::Bsc) ||
      is_sparse(indices) || is_sparse(values) || indices.dim() < 1 || (coo && indices.dim() != 2) ||
      plain.defined() == coo || (plain.defined() && plain.dim() != indices.dim()))
    runtime_error("the parts do not belong to a sparse tensor");
  SparseParts parts;
  parts.layout = SparseLayout(layout);
  parts.values = alias_tensor(values);
  parts.coalesced = sorted;
  if (parts.layout == SparseLayout::Coo) {
    parts.sparse_dim = indices.size(0);
    parts.dense_dim = values.dim() - 1;
    parts.indices = plain_indices(indices);
    parts.coalesced |= parts.nnz() < 2;  // there is nothing to be out of order
  } else {
    parts.sparse_dim = 2;
    parts.batch_dim = indices.dim() - 1;
    parts.dense_dim = values.dim() - parts.batch_dim - (parts.in_blocks() ? 3 : 1);
    parts.indices = alias_tensor(indices);
    parts.plain = alias_tensor(plain);
  }
  const int64_t batch = parts.batch_dim;
  bool fits = parts.dense_dim >= 0 &&
              batch + parts.sparse_dim + parts.dense_dim == int64_t(sizes.size()) &&
              parts.nnz() == values.size(batch);
  for (int64_t d = 0; fits && d < batch; ++d)
    fits = indices.size(d) == sizes[size_t(d)] && plain.size(d) == sizes[size_t(d)] &&
           values.size(d) == sizes[size_t(d)];
  if (!fits)
    runtime_error("indices of shape ", indices.sizes(), " and values of shape ", values.sizes(),
                  " do not make a sparse tensor of size ", sizes);
  return make_sparse(sizes, std::move(parts));
}

Tensor _sparse_values(const Tensor& self) {
  return values_of(self);
}

Tensor _sparse_elements(const Tensor& self, const Tensor&) {
  return alias_tensor(sparse_parts(self).values);
}

Tensor _sparse_indices(const Tensor& self, int64_t part) {
  const SparseParts& parts = sparse_parts(self);
  if (part && !parts.plain.defined())
    runtime_error("a tensor of layout facula.", layout_name(parts.layout), " has no such indices");
  const Tensor& found = part ? parts.plain : parts.indices;
  if (self.is_meta()) return empty_tensor(found.sizes(), found.dtype(), self.device());
  return alias_tensor(found);
}

// Values of sorted, distinct keys out of a sparse tensor; zero where it has none.
static Tensor lookup(const Tensor& sparse, const Tensor& keys) {
  const Tensor sorted = coalesce(sparse);
  const Matches found = match_keys(keys, element_keys(sorted));
  const Tensor values = rows_at(values_of(sorted), found.known);
  return found.wanted.numel() == keys.numel() ? values
                                              : add_groups(values, found.wanted, keys.numel());
}

Tensor _sparse_gather(const Tensor& self, const Tensor& pattern) {
  const SparseParts& parts = sparse_parts(pattern);
  if (is_sparse(self)) {
    const SparseParts& mine = sparse_parts(self);
    if (mine.layout == parts.layout && mine.indices->storage == parts.indices->storage &&
        same(mine.indices.sizes(), parts.indices.sizes()) &&
        (!mine.plain.defined() || mine.plain->storage == parts.plain->storage) &&
        same(mine.values.sizes(), parts.values.sizes()))
      return values_of(self);
  }
  const Tensor keys = element_keys(pattern);
  Tensor found;
  if (is_sparse(self)) {
    const Groups groups = group_keys(keys);
    found = lookup(self, groups.keys);
    if (groups.member.defined()) found = rows_at(found, groups.member);
  } else {
    Dims flat{sparse_numel(pattern)};
    for (int64_t s : dense_sizes(pattern)) flat.push_back(s);
    found = rows_at(op::reshape(self, flat), keys);
  }
  return parts.in_blocks() ? op::reshape(found, parts.values.sizes()) : found;
}

Tensor _sparse_gather_at(const Tensor& self, const Tensor& indices, const Tensor& plain,
                         IntSpan values_size, IntSpan size, int64_t layout) {
  // Only the positions matter: one element stands for all values.
  const Tensor none =
      empty_tensor(values_size, Dims(values_size.size(), 0), self.dtype(), self.device());
  const Tensor pattern = _sparse_make(indices, plain, none, size, layout, false);
  return op::_sparse_gather(self, pattern);
}

Tensor _sparse_like(const Tensor& pattern, const Tensor& values) {
  const SparseParts& parts = sparse_parts(pattern);
  if (parts.layout == SparseLayout::Coo && !parts.coalesced) {
    // The same gradient belongs to all entries of a position: one of them stands for it.
    const Tensor keys = element_keys(pattern);
    const Groups groups = group_keys(keys);
    if (!groups.distinct) {
      const Tensor first = first_entries(groups.member, groups.keys.numel());
      return from_keys(groups.keys, rows_at(values, first), pattern.sizes(), true);
    }
  }
  return with_values(pattern, values);
}

Tensor _sparse_coalesce(const Tensor& self) {
  return coalesce(self);
}

Tensor _sparse_to_dense(const Tensor& self) {
  if (self.is_meta())  // the sum is for the history
    return op::add(op::zeros(self.sizes(), self.dtype(), std::nullopt, self.device()),
                   op::sum(values_of(self), self.dtype()));
  return op::reshape(add_groups(element_values(self), element_keys(self), sparse_numel(self)),
                     self.sizes());
}

// What a tensor without memory becomes: sizes, and no elements.
static Tensor nothing_on_meta(const Tensor& self, SparseLayout layout, int64_t sparse_dim,
                              IntSpan block) {
  if (sparse_dim < 0 || sparse_dim > self.dim())
    runtime_error("sparse_dim argument must be in [0, ", self.dim(), "], but got ", sparse_dim);
  Dims shape{0};
  const bool coo = layout == SparseLayout::Coo;
  SparseParts form;
  form.layout = layout;
  if (!coo && sparse_dim != 2)
    fail(ErrorKind::NotImplemented, "on the meta device only matrices can be compressed, got ",
         sparse_dim, " sparse dimensions");
  int64_t height = 1, width = 1;
  if (form.in_blocks()) {
    if (block.size() != 2 || block[0] <= 0 || block[1] <= 0 || self.size(0) % block[0] ||
        self.size(1) % block[1])
      runtime_error("blocks of ", block, " do not go into a matrix of ", self.sizes());
    height = block[0], width = block[1];
    shape.push_back(height);
    shape.push_back(width);
  }
  for (int64_t s : self.sizes().subspan(size_t(sparse_dim))) shape.push_back(s);
  const Tensor values = op::zeros(shape, self.dtype(), std::nullopt, self.device());
  if (coo)
    return from_coo(op::zeros(Dims{sparse_dim, 0}, DType::Int64, std::nullopt, Device{}), values,
                    self.sizes(), true);
  const int64_t rows = form.by_rows() ? self.size(0) / height : self.size(1) / width;
  return from_compressed(layout, op::zeros(Dims{rows + 1}, DType::Int64, std::nullopt, Device{}),
                         op::zeros(Dims{0}, DType::Int64, std::nullopt, Device{}), values,
                         self.sizes(), true);
}

Tensor _sparse_convert(const Tensor& self, int64_t to, int64_t sparse_dim, IntSpan blocksize) {
  const SparseLayout layout = SparseLayout(to);
  const bool coo = layout == SparseLayout::Coo;
  if (!is_sparse(self)) {
    if (self.is_meta()) return nothing_on_meta(self, layout, sparse_dim, blocksize);
    if (!coo && self.dim() < 2)
      runtime_error("conversion to ", layout_name(layout),
                    " layout expects a tensor of at least 2 dimensions, got shape ", self.sizes());
    if (sparse_dim < (self.dim() ? 1 : 0) || sparse_dim > self.dim())
      runtime_error("sparse_dim argument must be in [", self.dim() ? 1 : 0, ", ", self.dim(),
                    "], but got ", sparse_dim);
    if (!coo && sparse_dim > 2) {
      if (self.size(0) == 0)
        runtime_error("an empty batch of matrices cannot be brought into a compressed layout");
      std::vector<Tensor> matrices;
      for (int64_t i = 0; i < self.size(0); ++i)
        matrices.push_back(
            op::_sparse_convert(op::select(self, 0, i), to, sparse_dim - 1, blocksize));
      return stacked_matrices(matrices);
    }
    const Tensor found = from_dense(self, sparse_dim);
    if (coo) return found;
    const Tensor made = op::_sparse_convert(found, to, sparse_dim, blocksize);
    if (!sparse_parts(made).in_blocks()) return made;
    // Zeros inside of blocks are elements, too: their gradients go back.
    return with_values(made, op::_sparse_gather(self, made));
  }
  const SparseParts& parts = sparse_parts(self);
  if (layout == parts.layout && !parts.in_blocks()) return self;
  if (coo) return to_coo(self);
  if (layout == SparseLayout::Csr || layout == SparseLayout::Csc) return compress(self, layout);
  return into_blocks(self, layout, blocksize);
}

Tensor _sparse_mask(const Tensor& self, const Tensor& mask) {
  if (!is_sparse(mask))
    runtime_error("the mask must be a sparse tensor, got one of layout ",
                  layout_name(layout_of(mask)));
  if (!same(self.sizes(), mask.sizes()))
    runtime_error("operands have incompatible sizes; self has size ", self.sizes(),
                  " but mask has size ", mask.sizes());
  const Tensor pattern = layout_of(mask) == SparseLayout::Coo ? coalesce(mask) : mask;
  return with_values(pattern, op::_sparse_gather(self, pattern));
}

}  // namespace facula::kernels

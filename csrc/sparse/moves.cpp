// Dimensions of sparse tensors turned, added, cut and joined: positions change, values are moved.
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/reductions.h"
#include "op/ops/shapes.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "sparse/call.h"
#include "sparse/convert.h"

namespace facula::sparse {
namespace {

// The entries `kept` of a COO tensor's positions, with others along one dimension.
Tensor moved_positions(const Tensor& indices, const Tensor& kept, int64_t dim,
                       const Tensor& positions) {
  const Tensor moved = plain_indices(op::index_select(indices, 1, kept));
  op::copy_(op::select(moved, 0, dim), positions);
  return moved;
}

Tensor permuted(const Tensor& t, IntSpan given) {
  const int64_t rank = t.dim();
  if (int64_t(given.size()) != rank)
    runtime_error(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the "
        "length of the desired ordering of dimensions i.e. input.dim() = ",
        rank, " is not equal to len(dims) = ", given.size());
  Dims dims;
  bool identity = true;
  uint64_t seen = 0;
  for (int64_t d : given) {
    const int64_t at = wrap_dim(d, rank);
    if (seen >> at & 1) runtime_error("permute: duplicate dims are not allowed.");
    seen |= uint64_t(1) << at;
    identity &= at == int64_t(dims.size());
    dims.push_back(at);
  }
  if (identity) return t;
  const SparseParts& parts = sparse_parts(t);
  const int64_t sparse_dims = parts.sparse_dim;
  for (int64_t d = 0; d < rank; ++d)
    if ((d < sparse_dims) != (dims[size_t(d)] < sparse_dims))
      runtime_error("permute of sparse tensors keeps sparse and dense dimensions apart: the first ",
                    sparse_dims, " dimensions of ", t.sizes(), " are sparse, the order is ",
                    IntSpan(dims));
  Dims sizes;
  for (int64_t d : dims) sizes.push_back(t.size(d));
  const bool compressed = parts.layout != SparseLayout::Coo;
  const int64_t lead = parts.in_blocks() ? 3 : 1;
  Tensor values = values_of(t);
  const bool turn = sparse_dims > 0 && [&] {
    for (int64_t d = 0; d < sparse_dims; ++d)
      if (dims[size_t(d)] != d) return true;
    return false;
  }();
  Dims order;
  for (int64_t d = 0; d < lead; ++d) order.push_back(d);
  if (compressed && turn && parts.in_blocks()) std::swap(order[1], order[2]);
  for (int64_t d = sparse_dims; d < rank; ++d)
    order.push_back(dims[size_t(d)] - sparse_dims + lead);
  values = op::permute(values, order);
  if (!compressed) {
    std::vector<Tensor> rows;
    for (int64_t d = 0; d < sparse_dims; ++d)
      rows.push_back(op::select(parts.indices, 0, dims[size_t(d)]));
    return from_coo(turn ? op::stack(rows, 0) : parts.indices, values, sizes,
                    parts.coalesced && !turn);
  }
  static constexpr SparseLayout other[] = {SparseLayout::Strided, SparseLayout::Coo,
                                           SparseLayout::Csc,     SparseLayout::Csr,
                                           SparseLayout::Bsc,     SparseLayout::Bsr};
  return from_compressed(turn ? other[int(parts.layout)] : parts.layout, parts.indices, parts.plain,
                         values, sizes, parts.coalesced);
}

Tensor permute(const OpDef&, const Value* args) {
  return permuted(args[0].tensor(), args[1].ints());
}
Tensor exchanged(const Tensor& t, int64_t a, int64_t b) {
  Dims dims;
  for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d);
  std::swap(dims[size_t(wrap_dim(a, t.dim()))], dims[size_t(wrap_dim(b, t.dim()))]);
  return permuted(t, dims);
}
Tensor transpose(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  return t.dim() ? exchanged(t, args[1].to_int(), args[2].to_int()) : t;
}
Tensor t(const OpDef&, const Value* args) {
  const Tensor& self = args[0].tensor();
  if (self.dim() > 2)
    runtime_error("t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return self.dim() == 2 ? exchanged(self, 0, 1) : self;
}

Tensor with_dim(const Tensor& given, int64_t dim) {
  const Tensor coo = to_coo(given);
  const SparseParts& parts = sparse_parts(coo);
  const int64_t at = wrap_dim(dim, coo.dim() + 1);
  Dims sizes(coo.sizes());
  sizes.insert(size_t(at), 1);
  if (at > parts.sparse_dim)
    return from_coo(parts.indices, op::unsqueeze(values_of(coo), at - parts.sparse_dim + 1), sizes,
                    parts.coalesced);
  std::vector<Tensor> rows;
  if (at) rows.push_back(op::slice(parts.indices, 0, 0, at));
  rows.push_back(
      op::zeros(Dims{1, parts.nnz()}, DType::Int64, std::nullopt, parts.indices.device()));
  rows.push_back(op::slice(parts.indices, 0, at, parts.sparse_dim));
  return from_coo(op::cat(rows, 0), values_of(coo), sizes, parts.coalesced);
}
Tensor unsqueeze(const OpDef&, const Value* args) {
  return with_dim(args[0].tensor(), args[1].to_int());
}

Tensor without_dim(const Tensor& coo, int64_t dim) {
  const SparseParts& parts = sparse_parts(coo);
  Dims sizes(coo.sizes());
  sizes.erase(size_t(dim));
  if (dim >= parts.sparse_dim)
    return from_coo(parts.indices,
                    op::squeeze_dim(values_of(coo), Dims{dim - parts.sparse_dim + 1}), sizes,
                    parts.coalesced);
  const Tensor indices = op::cat(std::vector<Tensor>{op::slice(parts.indices, 0, 0, dim),
                                                     op::slice(parts.indices, 0, dim + 1)},
                                 0);
  return from_coo(indices, values_of(coo), sizes, parts.coalesced);
}
Tensor squeeze_mask(const Tensor& given, uint64_t mask) {
  Tensor t = to_coo(given);
  for (int64_t d = t.dim(); d-- > 0;)
    if (mask >> d & 1 && t.size(d) == 1) t = without_dim(t, d);
  return t;
}
Tensor squeeze(const OpDef&, const Value* args) {
  return squeeze_mask(args[0].tensor(), ~uint64_t(0));
}
Tensor squeeze_dim(const OpDef&, const Value* args) {
  const Tensor& self = args[0].tensor();
  const IntSpan dims = args[1].ints();
  return squeeze_mask(self, dims.empty() ? 0 : dim_mask(dims, self.dim()));
}

// The entries whose index in `dim` is among start, start + step, ... below end.
Tensor cut(const Tensor& coo, int64_t dim, int64_t start, int64_t end, int64_t step) {
  const SparseParts& parts = sparse_parts(coo);
  Dims sizes(coo.sizes());
  sizes[size_t(dim)] = end > start ? (end - start + step - 1) / step : 0;
  if (dim >= parts.sparse_dim)
    return from_coo(parts.indices,
                    op::slice(values_of(coo), dim - parts.sparse_dim + 1, start, end, step), sizes,
                    parts.coalesced);
  const Cut part =
      cut_positions(plain_indices(op::select(parts.indices, 0, dim)), start, end, step);
  return from_coo(moved_positions(parts.indices, part.kept, dim, part.positions),
                  rows_at(values_of(coo), part.kept), sizes, parts.coalesced);
}

Tensor slice(const OpDef&, const Value* args) {
  const Tensor& self = args[0].tensor();
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim()), size = self.size(dim);
  auto bound = [size](const Value& v, int64_t otherwise) {
    int64_t at = v.is_none() ? otherwise : v.to_int();
    if (at < 0) at += size;
    return std::clamp<int64_t>(at, 0, size);
  };
  const int64_t step = args[4].to_int();
  if (step <= 0) runtime_error("slice step must be positive");
  const Tensor part = cut(to_coo(self), dim, bound(args[2], 0), bound(args[3], size), step);
  return in_layout_of(part, self);
}

Tensor narrow(const OpDef&, const Value* args) {
  const Tensor& self = args[0].tensor();
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim()), size = self.size(dim);
  int64_t start = args[2].to_int();
  const int64_t length = args[3].to_int();
  if (start < 0) start += size;
  if (length < 0 || start < 0 || start + length > size)
    runtime_error("start (", start, ") + length (", length, ") exceeds dimension size (", size,
                  ").");
  return in_layout_of(cut(to_coo(self), dim, start, start + length, 1), self);
}

Tensor select(const OpDef&, const Value* args) {
  const Tensor& self = args[0].tensor();
  if (self.dim() == 0) index_error("select() cannot be applied to a 0-dim tensor.");
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim()), size = self.size(dim);
  int64_t at = args[2].to_int();
  if (at < -size || at >= size) index_range_error(at, dim, size);
  if (at < 0) at += size;
  const Tensor one = cut(to_coo(self), dim, at, at + 1, 1);
  if (dim >= sparse_parts(one).sparse_dim || sparse_parts(one).sparse_dim > 1)
    return without_dim(one, dim);
  // No sparse dimension is left: what remains is dense.
  return op::sum_dim(values_of(one), Dims{0}, false, self.dtype());
}

Tensor index_select(const OpDef&, const Value* args) {
  const Tensor& self = args[0].tensor();
  const Tensor coo = to_coo(self);
  const SparseParts& parts = sparse_parts(coo);
  const int64_t dim = wrap_dim(args[1].to_int(), coo.dim()), size = coo.size(dim);
  if (args[2].tensor().dim() > 1)
    index_error("the index must be a vector, got shape ", args[2].tensor().sizes());
  const Tensor given = op::reshape(args[2].tensor(), Dims{args[2].tensor().numel()});
  if (given.device() != coo.device()) device_error(coo.device(), given.device());
  const Tensor index = given.is_meta() ? given : plain_indices(given);
  const int64_t wanted = index.numel();
  Dims sizes(coo.sizes());
  sizes[size_t(dim)] = wanted;
  if (dim >= parts.sparse_dim)
    return from_coo(parts.indices,
                    op::index_select(values_of(coo), dim - parts.sparse_dim + 1, index), sizes,
                    parts.coalesced);
  if (coo.is_meta())
    return in_layout_of(from_coo(parts.indices, values_of(coo), sizes, true), self);
  check_wanted(index, dim, size);
  const Picks picks = pick_positions(plain_indices(op::select(parts.indices, 0, dim)), index, size);
  const Tensor moved = moved_positions(parts.indices, picks.entries, dim, picks.places);
  return in_layout_of(from_coo(moved, rows_at(values_of(coo), picks.entries), sizes, false), self);
}

Tensor joined(TensorSpan tensors, int64_t given_dim) {
  for (const Tensor& t : tensors)
    if (!is_sparse(t))
      runtime_error(
          "Concatenating sparse tensors, but a dense tensor was found in the list; use "
          ".to_sparse() on it");
  const Tensor& first = tensors[0];
  const int64_t dim = wrap_dim(given_dim, first.dim());
  std::vector<Tensor> indices, values;
  Dims sizes(first.sizes());
  sizes[size_t(dim)] = 0;
  const int64_t sparse_dims = sparse_parts(first).sparse_dim;
  bool coalesced = dim == 0;
  for (const Tensor& t : tensors) {
    bool fits = t.dim() == first.dim() && sparse_parts(t).sparse_dim == sparse_dims;
    for (int64_t d = 0; fits && d < t.dim(); ++d)
      fits = d == dim || t.sizes()[size_t(d)] == first.sizes()[size_t(d)];
    if (!fits)
      runtime_error("All tensors must have the same shape except in the concatenated dimension ",
                    dim, ", and as many sparse dimensions, but got ", first.sizes(), " and ",
                    t.sizes());
    sizes[size_t(dim)] += t.size(dim);
  }
  int64_t before = 0;
  for (const Tensor& t : tensors) {
    const Tensor coo = to_coo(t);
    coalesced &= sparse_parts(coo).coalesced;
    Tensor v = values_of(coo);
    if (dim >= sparse_dims) {
      const int64_t d = dim - sparse_dims + 1;
      auto blank = [&](int64_t size) {
        Dims shape(v.sizes());
        shape[size_t(d)] = size;
        return op::zeros(shape, v.dtype(), std::nullopt, v.device());
      };
      v = op::cat(
          std::vector<Tensor>{blank(before), v, blank(sizes[size_t(dim)] - before - t.size(dim))},
          d);
    }
    before += t.size(dim);
    indices.push_back(sparse_parts(coo).indices);
    values.push_back(v);
  }
  const Tensor all = op::cat(indices, 1);
  before = 0;
  for (size_t i = 0, entry = 0; i < tensors.size() && dim < sparse_dims; ++i) {
    const int64_t count = indices[i].size(1);
    op::add_(op::narrow(op::select(all, 0, dim), 0, int64_t(entry), count), before);
    before += tensors[i].size(dim);
    entry += size_t(count);
  }
  return from_coo(all, op::cat(values, 0), sizes, coalesced && dim < sparse_dims);
}

Tensor cat(const OpDef&, const Value* args) {
  const TensorSpan tensors = args[0].tensors();
  return in_layout_of(joined(tensors, args[1].to_int()), tensors[0]);
}
Tensor stack(const OpDef&, const Value* args) {
  std::vector<Tensor> longer;
  for (const Tensor& t : args[0].tensors()) {
    if (!is_sparse(t)) runtime_error("all tensors of a stack must be sparse when one of them is");
    longer.push_back(with_dim(t, args[1].to_int()));
  }
  return joined(longer, wrap_dim(args[1].to_int(), longer[0].dim()));
}

}  // namespace

void add_moves(Table& table) {
  table[&defs::permute].compute = permute;
  table[&defs::transpose].compute = transpose;
  table[&defs::t].compute = t;
  table[&defs::unsqueeze].compute = unsqueeze;
  table[&defs::squeeze].compute = squeeze;
  table[&defs::squeeze_dim].compute = squeeze_dim;
  table[&defs::slice].compute = slice;
  table[&defs::narrow].compute = narrow;
  table[&defs::narrow_copy].compute = narrow;
  table[&defs::select].compute = select;
  table[&defs::index_select].compute = index_select;
  table[&defs::cat].compute = cat;
  table[&defs::stack].compute = stack;
}

}  // namespace facula::sparse

// Batches of compressed matrices: leading dimensions of the index tensors and the values, as many
// elements in each matrix. What is done to values is done to all of them at once; the rest is done
// matrix by matrix.
#include "op/arguments.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/joining.h"
#include "op/ops/products.h"
#include "op/ops/reductions.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "sparse/call.h"
#include "sparse/convert.h"

namespace facula::sparse {

Tensor stacked_matrices(const std::vector<Tensor>& matrices) {
  const SparseParts& first = sparse_parts(matrices[0]);
  std::vector<Tensor> starts, plain, values;
  bool sorted = true;
  for (const Tensor& m : matrices) {
    const SparseParts& parts = sparse_parts(m);
    if (parts.nnz() != first.nnz())
      runtime_error("every matrix of a batch must have as many elements, but one has ", first.nnz(),
                    " and another one ", parts.nnz());
    starts.push_back(parts.indices);
    plain.push_back(parts.plain);
    values.push_back(values_of(m));
    sorted &= parts.coalesced;
  }
  Dims sizes(matrices[0].sizes());
  sizes.insert(0, int64_t(matrices.size()));
  return from_compressed(first.layout, op::stack(starts, 0), op::stack(plain, 0),
                         op::stack(values, 0), sizes, sorted);
}

namespace {

Tensor part_of(const Tensor& t, int64_t dim, int64_t i) {
  const SparseParts& parts = sparse_parts(t);
  Dims sizes(t.sizes());
  sizes.erase(size_t(dim));
  return from_compressed(parts.layout, op::select(parts.indices, dim, i),
                         op::select(parts.plain, dim, i), op::select(values_of(t), dim, i), sizes,
                         parts.coalesced);
}

bool same_positions(const Tensor& a, const Tensor& b) {
  const SparseParts &p = sparse_parts(a), &q = sparse_parts(b);
  return p.layout == q.layout && p.plain.defined() && q.plain.defined() &&
         p.plain->storage == q.plain->storage && p.indices->storage == q.indices->storage &&
         same(p.plain.sizes(), q.plain.sizes()) && same(p.indices.sizes(), q.indices.sizes());
}

template <class F>
std::vector<Tensor> for_each_part(const Tensor& t, F&& f) {
  std::vector<Tensor> results;
  for (int64_t i = 0; i < t.size(0); ++i) results.push_back(f(i));
  return results;
}

Tensor to_dense(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  if (t.size(0) == 0) return op::zeros(t.sizes(), t.dtype(), std::nullopt, t.device());
  return op::stack(
      for_each_part(t, [&](int64_t i) { return op::_sparse_to_dense(part_of(t, 0, i)); }), 0);
}

// Values of a tensor, sparse or dense, at the positions of a batch.
Tensor gather(const OpDef&, const Value* args) {
  const Tensor &self = args[0].tensor(), &pattern = args[1].tensor();
  if (is_sparse(self) && same_positions(self, pattern)) return values_of(self);
  if (pattern.size(0) == 0)
    return op::zeros(sparse_parts(pattern).values.sizes(), self.dtype(), std::nullopt,
                     self.device());
  return op::stack(for_each_part(pattern,
                                 [&](int64_t i) {
                                   return op::_sparse_gather(op::select(self, 0, i),
                                                             part_of(pattern, 0, i));
                                 }),
                   0);
}

Tensor convert(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  const SparseLayout layout = SparseLayout(args[1].to_int());
  if (layout == sparse_parts(t).layout && !sparse_parts(t).in_blocks()) return t;
  if (t.size(0) == 0)
    fail(ErrorKind::NotImplemented, "an empty batch cannot be brought into another layout");
  const std::vector<Tensor> parts = for_each_part(t, [&](int64_t i) {
    return op::_sparse_convert(part_of(t, 0, i), args[1].to_int(), 2, args[3].ints());
  });
  return layout == SparseLayout::Coo ? op::stack(parts, 0) : stacked_matrices(parts);
}

Tensor select(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  const int64_t dim = wrap_dim(args[1].to_int(), t.dim()), size = t.size(dim);
  if (dim >= sparse_parts(t).batch_dim)
    fail(ErrorKind::NotImplemented, "of a batch of compressed matrices, whole matrices can be ",
         "selected only, but dimension ", dim, " is one of the matrices; use .to_dense()");
  int64_t at = args[2].to_int();
  if (at < -size || at >= size) index_range_error(at, dim, size);
  return part_of(t, dim, at < 0 ? at + size : at);
}

void unbind_kernel(const OpDef&, const Value* args, Rets& rets) {
  const Tensor& t = args[0].tensor();
  const int64_t dim = wrap_dim(args[1].to_int(), t.dim());
  rets.list->clear();
  for (int64_t i = 0; i < t.size(dim); ++i) rets.list->push_back(op::select(t, dim, i));
}

Tensor on_values(const OpDef& op, const Value* args) {
  Arguments replaced(op, args);
  const Tensor t = args[0].tensor();
  replaced.set(replaced[0], values_of(t));
  Rets rets;
  call(op, replaced.data(), rets);
  return rets.t[0];
}

// A number times a batch, or a batch divided by one.
Tensor scaled(const OpDef& op, const Value* args) {
  auto is_number = [](const Value& v) {
    return v.is_number() || (v.is_tensor() && !is_sparse(v.tensor()) && v.tensor().dim() == 0);
  };
  if (is_number(args[1])) return with_values(args[0].tensor(), on_values(op, args));
  if (&op == &defs::mul && is_number(args[0])) {
    const Value turned[] = {args[1], args[0]};
    return with_values(args[1].tensor(), on_values(op, turned));
  }
  fail(ErrorKind::NotImplemented,
       "batches of compressed matrices can be scaled by numbers only; use .to_dense()");
}

Tensor add(const OpDef&, const Value* args) {
  if (!args[0].is_tensor() || !args[1].is_tensor() || !is_sparse(args[0].tensor()) ||
      !is_sparse(args[1].tensor()) || !same(args[0].tensor().sizes(), args[1].tensor().sizes()))
    fail(ErrorKind::NotImplemented,
         "batches of compressed matrices can be added to batches of the same size only; use "
         ".to_dense()");
  const Tensor &a = args[0].tensor(), &b = args[1].tensor();
  const Scalar alpha = args[2].scalar();
  if (same_positions(a, b)) return with_values(a, op::add(values_of(a), values_of(b), alpha));
  if (a.size(0) == 0) return a;
  return stacked_matrices(for_each_part(
      a, [&](int64_t i) { return op::add(op::select(a, 0, i), op::select(b, 0, i), alpha); }));
}

Tensor times(const OpDef&, const Value* args) {
  const Tensor &a = args[0].tensor(), &b = args[1].tensor();
  if (a.dim() != 3 || b.dim() != 3 || a.size(0) != b.size(0) || a.size(2) != b.size(1))
    runtime_error("batches of matrices of shapes ", a.sizes(), " and ", b.sizes(),
                  " cannot be multiplied");
  std::vector<Tensor> products;
  for (int64_t i = 0; i < a.size(0); ++i)
    products.push_back(op::mm(op::select(a, 0, i), op::select(b, 0, i)));
  if (products.empty())
    return op::zeros(Dims{0, a.size(1), b.size(2)}, a.dtype(), std::nullopt, a.device());
  return is_sparse(products[0]) ? stacked_matrices(products) : op::stack(products, 0);
}

Tensor sum(const OpDef& op, const Value* args) {
  return on_values(op, args);
}

}  // namespace

void add_batched(Table& table) {
  add_valuewise(table);
  for (const OpDef* op : {&defs::_sparse_values, &defs::_sparse_elements, &defs::_sparse_indices,
                          &defs::_sparse_like, &defs::_sparse_gather_at})
    table[op].kernel = run_kernel;
  table[&defs::_sparse_to_dense].compute = to_dense;
  table[&defs::_sparse_gather].compute = gather;
  table[&defs::_sparse_convert].compute = convert;
  table[&defs::select].compute = select;
  table[&defs::unbind] = {.kernel = unbind_kernel, .composite = true};
  table[&defs::add].compute = add;
  table[&defs::mul].compute = scaled;
  table[&defs::div].compute = scaled;
  table[&defs::bmm].compute = times;
  table[&defs::matmul].compute = times;
  table[&defs::sum].compute = sum;
}

}  // namespace facula::sparse

// Sums over sparse tensors, and softmax over the elements that are there.
#include <limits>

#include "autograd/node.h"
#include "op/arguments.h"
#include "op/kernels/sparse.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/selection.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "sparse/call.h"
#include "sparse/convert.h"

namespace facula::sparse {
namespace {

DType sum_dtype(const Tensor& t, DType asked) {
  if (asked != DType::None) return asked;
  return is_integral(t.dtype(), true) ? DType::Int64 : t.dtype();
}

Tensor sum(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  return op::sum(values_of(t), sum_dtype(t, args[1].dtype()));
}

}  // namespace

static Tensor sum_over(const Tensor& given, uint64_t mask, DType dtype) {
  const Tensor coo = to_coo(given);
  const SparseParts& parts = sparse_parts(coo);
  Tensor values = values_of(coo);
  Dims dense_dims, sizes;
  std::vector<Tensor> rows;
  Dims kept;
  for (int64_t d = 0; d < coo.dim(); ++d) {
    const bool summed = mask >> d & 1;
    if (!summed) sizes.push_back(coo.size(d));
    if (d >= parts.sparse_dim) {
      if (summed) dense_dims.push_back(d - parts.sparse_dim + 1);
    } else if (!summed) {
      rows.push_back(op::select(parts.indices, 0, d));
      kept.push_back(coo.size(d));
    }
  }
  if (!dense_dims.empty()) values = op::sum_dim(values, dense_dims, false, dtype);
  if (values.dtype() != dtype) values = op::_to_copy(values, dtype);
  if (rows.empty()) return op::sum_dim(values, Dims{0}, false, dtype);
  const bool whole = int64_t(rows.size()) == parts.sparse_dim;
  const Tensor indices = whole ? parts.indices : op::stack(rows, 0);
  const Tensor result = from_coo(indices, values, sizes, whole && parts.coalesced);
  return whole ? result : coalesce(result);
}

namespace {

Tensor sum_dim(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  const DType dtype = sum_dtype(t, args[3].dtype());
  const uint64_t mask = dim_mask(args[1].is_none() ? IntSpan() : args[1].ints(), t.dim());
  Tensor out = sum_over(t, mask, dtype);
  if (args[2].to_bool())
    for (int64_t d = 0; d < t.dim(); ++d)
      if (mask >> d & 1) out = op::unsqueeze(out, d);
  // As many dimensions as before: still a matrix by rows.
  const SparseParts& parts = sparse_parts(t);
  if (args[2].to_bool() && parts.layout == SparseLayout::Csr && !parts.dense_dim)
    return op::_sparse_convert(out, int64_t(parts.layout), 2, Dims{});
  return out;
}

Tensor mean(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  return op::sum(t, args[1].dtype()) / t.numel();
}

Tensor any(const OpDef&, const Value* args) {
  return op::any(values_of(coalesce(args[0].tensor())));
}

Tensor norm(const OpDef& op, const Value* args) {
  const Tensor& t = args[0].tensor();
  if (!args[2].is_none() && args[2].ints().size() && int64_t(args[2].ints().size()) != t.dim())
    fail(ErrorKind::NotImplemented,
         "norms of sparse tensors are taken over all dimensions; use .to_dense()");
  Arguments flat(op, args);
  const Tensor values = values_of(coalesce(t));
  flat.set(flat[0], op::reshape(values, Dims{values.numel()}));
  flat[2] = Value();
  Rets rets;
  call(op, flat.data(), rets);
  return rets.t[0];
}

Tensor softmax(const OpDef& op, const Value* args) {
  const Tensor& t = args[0].tensor();
  const Tensor input = args[2].is_none() ? t : op::_to_copy(t, args[2].dtype());
  return op::_sparse_softmax(input, args[1].to_int(), &op == &defs::log_softmax);
}

}  // namespace

void add_reductions(Table& table) {
  table[&defs::sum].compute = sum;
  table[&defs::sum_dim].compute = sum_dim;
  table[&defs::mean].compute = mean;
  table[&defs::any].compute = any;
  table[&defs::linalg_vector_norm].compute = norm;
  table[&defs::softmax].compute = softmax;
  table[&defs::log_softmax].compute = softmax;
}

}  // namespace facula::sparse

namespace facula::kernels {

using namespace facula::sparse;

Tensor _sparse_sum(const Tensor& self, IntSpan dim) {
  return sum_over(self, dim.empty() ? 0 : dim_mask(dim, self.dim()), self.dtype());
}

Tensor _sparse_softmax(const Tensor& self, int64_t given_dim, bool logarithm) {
  const Tensor t = coalesce(self);
  if (!is_floating(t.dtype())) dtype_error(t.dtype(), "floating dtypes (or dtype= with one)");
  const SparseParts& parts = sparse_parts(t);
  const int64_t dim = wrap_dim(given_dim, t.dim());
  const Tensor values = values_of(t);
  if (t.is_meta()) return with_values(t, op::exp(values));
  if (dim >= parts.sparse_dim) {
    const int64_t d = dim - parts.sparse_dim + 1;
    return with_values(t, logarithm ? op::log_softmax(values, d) : op::softmax(values, d));
  }
  // Elements that differ only in `dim` are a group; what is not there counts as -inf.
  std::vector<Tensor> rows;
  Dims sizes;
  for (int64_t d = 0; d < parts.sparse_dim; ++d)
    if (d != dim) {
      rows.push_back(op::select(parts.indices, 0, d));
      sizes.push_back(t.size(d));
    }
  const int64_t n = parts.nnz();
  const Groups groups =
      group_keys(rows.empty() ? op::zeros(Dims{n}, DType::Int64, std::nullopt, t.device())
                              : linear_keys(op::stack(rows, 0), sizes));
  const int64_t count = groups.keys.numel();
  const Tensor member = groups.member.defined()
                            ? groups.member
                            : op::arange(Scalar(n), DType::Int64, std::nullopt, t.device());
  Dims shape(values.sizes());
  shape[0] = count;
  const Tensor lowest = op::full(shape, Scalar(-std::numeric_limits<double>::infinity()),
                                 values.dtype(), std::nullopt, values.device());
  const Tensor highest = op::index_reduce(lowest, 0, member, op::detach(values), "amax");
  const Tensor shifted = values - rows_at(highest, member);
  const Tensor powers = op::exp(shifted);
  const Tensor sums = add_in_order(powers, member, groups.order, count);
  return with_values(
      t, logarithm ? shifted - rows_at(op::log(sums), member) : powers / rows_at(sums, member));
}

}  // namespace facula::kernels

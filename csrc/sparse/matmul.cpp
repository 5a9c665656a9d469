// Products with sparse matrices: sparse with dense, dense with sparse, sparse with sparse.
#include "autograd/node.h"
#include "op/ops/copying.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/linalg_products.h"
#include "op/ops/linear.h"
#include "op/ops/products.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "sparse/call.h"
#include "sparse/convert.h"

namespace facula::sparse {
namespace {

void check_matrix(const Tensor& t, const char* name) {
  if (t.dim() != 2) runtime_error(name, " must be a matrix, got shape ", t.sizes());
  if (is_sparse(t) && sparse_parts(t).sparse_dim != 2)
    runtime_error(name, " must have 2 sparse dimensions and no dense ones");
}

Tensor csr_times(const Csr& m, const Tensor& matrix) {
  return op::_csr_mm(m.starts, m.columns, m.values, matrix);
}

Tensor sparse_times_sparse(const Tensor& a, const Tensor& b) {
  const Csr x = csr_of(a), y = csr_of(b);
  const Meetings m = meetings(x.starts, x.columns, y.starts, y.columns, y.width);
  const Tensor values = add_in_order(rows_at(x.values, m.a) * rows_at(y.values, m.b), m.slot,
                                     m.order, m.columns.numel());
  const Tensor result =
      from_compressed(SparseLayout::Csr, m.starts, m.columns, values, Dims{x.rows, y.width}, true);
  // Products of compressed matrices are compressed by rows, as in PyTorch.
  return layout_of(a) == SparseLayout::Coo ? in_layout_of(result, a) : result;
}

Tensor times(const Tensor& a, const Tensor& b) {
  check_matrix(a, "self");
  check_matrix(b, "mat2");
  if (a.size(1) != b.size(0))
    runtime_error("mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1), " and ",
                  b.size(0), "x", b.size(1), ")");
  if (is_sparse(a) && is_sparse(b)) return sparse_times_sparse(a, b);
  if (is_sparse(a)) return csr_times(csr_of(a), b);
  return op::contiguous(op::t(csr_times(turned(csr_of(b)), op::t(a))));
}

Tensor mm(const OpDef&, const Value* args) {
  return times(args[0].tensor(), args[1].tensor());
}

Tensor times_vector(const Tensor& m, const Tensor& v) {
  if (is_sparse(v)) fail(ErrorKind::NotImplemented, "the vector is sparse; use .to_dense() on it");
  if (v.dim() != 1) runtime_error("vec must be a vector, got shape ", v.sizes());
  return op::select(times(m, op::unsqueeze(v, 1)), 1, 0);
}
Tensor mv(const OpDef&, const Value* args) {
  return times_vector(args[0].tensor(), args[1].tensor());
}

// beta * self + alpha * product; a beta of 0 ignores self.
Tensor combined(const Tensor& self, const Tensor& product, const Scalar& beta,
                const Scalar& alpha) {
  const Tensor scaled = product * alpha;
  if (beta.to_complex().re == 0 && beta.to_complex().im == 0 && !requires_grad(self)) return scaled;
  return op::add(self * beta, scaled);
}
Tensor addmm(const OpDef&, const Value* args) {
  return combined(args[0].tensor(), times(args[1].tensor(), args[2].tensor()), args[3].scalar(),
                  args[4].scalar());
}
Tensor addmv(const OpDef&, const Value* args) {
  return combined(args[0].tensor(), times_vector(args[1].tensor(), args[2].tensor()),
                  args[3].scalar(), args[4].scalar());
}

// A batch of sparse matrices is one matrix with them along its diagonal.
Tensor batch_times(const Tensor& a, const Tensor& b) {
  if (!is_sparse(a) || is_sparse(b))
    fail(ErrorKind::NotImplemented, "batches are multiplied as sparse with dense; use .to_dense()");
  if (a.dim() != 3 || b.dim() != 3 || sparse_parts(a).sparse_dim != 3)
    runtime_error("batches of matrices have 3 dimensions, all sparse in the sparse one, got ",
                  a.sizes(), " and ", b.sizes());
  if (a.size(0) != b.size(0) || a.size(2) != b.size(1))
    runtime_error("batches of shapes ", a.sizes(), " and ", b.sizes(), " cannot be multiplied");
  const int64_t batch = a.size(0), rows = a.size(1), inner = a.size(2), columns = b.size(2);
  const Tensor coo = to_coo(a);
  const Tensor at = sparse_parts(coo).indices;
  const Tensor first = op::select(at, 0, 0);
  const Tensor indices = op::stack(std::vector<Tensor>{first * rows + op::select(at, 0, 1),
                                                       first * inner + op::select(at, 0, 2)},
                                   0);
  const Tensor diagonal = from_coo(indices, values_of(coo), Dims{batch * rows, batch * inner},
                                   sparse_parts(coo).coalesced);
  return op::reshape(times(diagonal, op::reshape(b, Dims{batch * inner, columns})),
                     Dims{batch, rows, columns});
}
Tensor bmm(const OpDef&, const Value* args) {
  return batch_times(args[0].tensor(), args[1].tensor());
}

Tensor matrix_product(const Tensor& a, const Tensor& b) {
  if (a.dim() == 3 && b.dim() == 3) return batch_times(a, b);
  if (a.dim() == 2 && b.dim() == 1) return times_vector(a, b);
  if (a.dim() == 1 && b.dim() == 2) return times_vector(op::t(b), a);
  if (a.dim() > 2 && b.dim() == 2 && !is_sparse(a)) {
    Dims shape(a.sizes());
    shape[shape.size() - 1] = b.size(1);
    return op::reshape(times(op::reshape(a, Dims{-1, a.size(-1)}), b), shape);
  }
  return times(a, b);
}
Tensor matmul(const OpDef&, const Value* args) {
  return matrix_product(args[0].tensor(), args[1].tensor());
}

Tensor linear(const OpDef&, const Value* args) {
  const Tensor &input = args[0].tensor(), &weight = args[1].tensor();
  const Tensor product = matrix_product(input, op::t(weight));
  return args[2].is_tensor() ? product + args[2].tensor() : product;
}

}  // namespace

void add_products(Table& table) {
  table[&defs::mm].compute = mm;
  table[&defs::mv].compute = mv;
  table[&defs::addmm].compute = addmm;
  table[&defs::addmv].compute = addmv;
  table[&defs::bmm].compute = bmm;
  table[&defs::matmul].compute = matmul;
  table[&defs::linear].compute = linear;
}

}  // namespace facula::sparse

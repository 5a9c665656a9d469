// Operators on sparse tensors that follow from others: composites as they are, and changes in
// place that need no more than other parts.
#include "autograd/node.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/linalg_products.h"
#include "op/ops/linalg_solve.h"
#include "op/ops/mathematics.h"
#include "op/ops/number_format.h"
#include "op/ops/numerics.h"
#include "op/ops/reductions.h"
#include "op/ops/shapes.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "sparse/call.h"
#include "sparse/convert.h"

namespace facula::sparse {
namespace {

Tensor ldexp(const OpDef&, const Value* args) {
  const Tensor& other = args[1].tensor();
  return op::mul(args[0].tensor(),
                 op::exp2(is_sparse(other) ? op::_sparse_to_dense(other) : other));
}

void unbind_kernel(const OpDef&, const Value* args, Rets& rets) {
  const Tensor& self = args[0].tensor();
  if (self.dim() == 0) index_error("a tensor without dimensions cannot be taken apart");
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim());
  rets.list->clear();
  for (int64_t i = 0; i < self.size(dim); ++i) rets.list->push_back(op::select(self, dim, i));
}

// The tensor becomes what the operator without _ gives; its history would be another one.
void become(const OpDef& op, const Tensor& self, const Tensor& result, Rets& rets) {
  if (grad_enabled() && requires_grad(self))
    runtime_error(
        "a sparse tensor that requires grad cannot be turned in place; use the operator "
        "without _");
  SparseParts parts = sparse_parts(result);
  if (layout_of(result) != layout_of(self))
    runtime_error("turning a tensor of layout facula.", layout_name(layout_of(self)),
                  " in place would change its layout; use the operator without _");
  replace_parts(self, result.sizes(), std::move(parts));
  self.bump_version(op.name);
  rets.t[0] = self;
}
void transpose_kernel(const OpDef& op, const Value* args, Rets& rets) {
  const Tensor& self = args[0].tensor();
  become(op, self, op::transpose(self, args[1].to_int(), args[2].to_int()), rets);
}
void t_kernel(const OpDef& op, const Value* args, Rets& rets) {
  const Tensor& self = args[0].tensor();
  become(op, self, op::t(self), rets);
}

void conj_kernel(const OpDef&, const Value* args, Rets& rets) {
  const Tensor& self = args[0].tensor();
  if (is_complex(self.dtype())) op::copy_(self, op::conj_physical(self));
  rets.t[0] = self;
}

// Sparse tensors without elements, as in PyTorch: of zeros there is nothing to keep.
Tensor new_zeros(const OpDef&, const Value* args) {
  const Tensor& self = args[0].tensor();
  const IntSpan sizes = args[1].ints();
  const DType dtype = args[2].is_none() ? self.dtype() : args[2].dtype();
  const int64_t rank = int64_t(sizes.size());
  const Device device = args[4].is_none() ? self.device() : args[4].device();
  const Tensor values = op::zeros(Dims{0}, dtype, std::nullopt, device);
  const Tensor empty = from_coo(
      op::zeros(Dims{rank, 0}, DType::Int64, std::nullopt, device_of_positions(values.device())),
      values, sizes, true);
  return layout_of(self) == SparseLayout::Coo || rank != 2 ? empty : in_layout_of(empty, self);
}

}  // namespace

void add_derived(Table& table) {
  for (const OpDef* op :
       {&defs::adjoint, &defs::movedim, &defs::dist, &defs::matrix_power, &defs::sum_to_size,
        &defs::flatten, &defs::inner, &defs::diff, &defs::detach_, &defs::float_power})
    table[op].kernel = run_kernel;
  table[&defs::ldexp].compute = ldexp;
  table[&defs::unbind] = {.kernel = unbind_kernel, .composite = true};
  table[&defs::transpose_].kernel = transpose_kernel;
  table[&defs::t_].kernel = t_kernel;
  table[&defs::conj_physical_].kernel = conj_kernel;
  table[&defs::new_zeros].compute = new_zeros;
  table[&defs::new_empty].compute = new_zeros;
}

}  // namespace facula::sparse

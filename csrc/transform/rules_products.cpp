// Batching rules of matrix products: all are matmul, which broadcasts over leading dimensions.
#include "op/ops/products.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

static void expect_rank(const OpDef& op, const Tensor& t, const char* name, int64_t rank) {
  if (t.dim() != rank)
    runtime_error("argument '", name, "' of ", op.name, "() must have ", rank,
                  " dimensions inside of vmap, but has shape ", t.sizes());
}

static Tensor product(const Tensor& a, const Tensor& b, uint32_t level) {
  return op::matmul(value_of(a, level), value_of(b, level));
}

void mm(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {  // also bmm
  const Tensor &a = args[0].tensor(), &b = args[1].tensor();
  const int64_t rank = std::string_view(op.name) == "mm" ? 2 : 3;
  expect_rank(op, a, "self", rank);
  expect_rank(op, b, "mat2", rank);
  deliver(rets, product(a, b, level), level);
}

void mv(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &a = args[0].tensor(), &x = args[1].tensor();
  expect_rank(op, a, "self", 2);
  expect_rank(op, x, "vec", 1);
  Tensor column = op::unsqueeze(value_of(x, level), -1);
  deliver(rets, op::squeeze_dim(op::matmul(value_of(a, level), column), Dims{-1}), level);
}

void dot(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &a = args[0].tensor(), &b = args[1].tensor();
  expect_rank(op, a, "self", 1);
  expect_rank(op, b, "tensor", 1);
  Tensor row = op::unsqueeze(value_of(a, level), -2),
         column = op::unsqueeze(value_of(b, level), -1);
  deliver(rets, op::squeeze_dim(op::matmul(row, column), Dims{-2, -1}), level);
}

void addmm(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {  // also baddbmm
  const int64_t rank = std::string_view(op.name) == "addmm" ? 2 : 3;
  const Tensor &a = args[1].tensor(), &b = args[2].tensor();
  expect_rank(op, a, op.args[1].name, rank);
  expect_rank(op, b, op.args[2].name, rank);
  const Scalar beta = args[3].scalar(), alpha = args[4].scalar();
  Tensor sum = is_batched(a, level) || is_batched(b, level) ? product(a, b, level)
                                                            : in_front(op::matmul(a, b), level);
  if (!alpha.equals(1)) sum = sum * alpha;
  if (!beta.equals(0)) {
    Tensor self = aligned(args[0].tensor(), level, rank);
    sum = sum + (beta.equals(1) ? self : self * beta);
  }
  deliver(rets, sum, level);
}

}  // namespace facula::batch

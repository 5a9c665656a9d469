// One-hot vectors, lengths and distances along a dimension.
#include "op/kernels/vectors.h"

#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/reductions.h"
#include "op/ops/vectors.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  if (self.dtype() != DType::Int64)
    runtime_error("one_hot is only applicable to index tensor of type LongTensor, but got ",
                  self.dtype());
  if (num_classes < -1) runtime_error("num_classes should be positive, but got ", num_classes);
  const bool readable = !self.is_meta() && !self.is_wrapped();
  int64_t classes = num_classes;
  if (self.numel() == 0 || !readable) {
    if (num_classes <= 0)
      runtime_error("Can not infer total number of classes from ",
                    readable ? "empty tensor" : "values that cannot be read here",
                    "; give num_classes");
  } else {
    const int64_t least = item_of(op::_to_copy(op::amin(self), DType::None, Device{})).to_int(),
                  most = item_of(op::_to_copy(op::amax(self), DType::None, Device{})).to_int();
    if (least < 0) runtime_error("Class values must be non-negative, but got ", least);
    if (num_classes >= 0 && most >= num_classes)
      runtime_error("Class values must be smaller than num_classes=", num_classes, ", but got ",
                    most);
    if (num_classes < 0) classes = most + 1;
  }
  if (readable && self.is_cpu()) {
    Dims shape(self.sizes());
    shape.push_back(classes);
    return op::scatter_value_(op::zeros(shape, DType::Int64, std::nullopt, self.device()), -1,
                              op::unsqueeze(self, -1), 1);
  }
  const Tensor numbers = op::arange(Scalar(classes), DType::Int64, std::nullopt, self.device());
  return op::_to_copy(op::eq(op::unsqueeze(self, -1), numbers), DType::Int64);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const int64_t inner = std::max<int64_t>(x1.dim(), x2.dim()) - 1;
  return op::linalg_vector_norm(x1 - x2 + eps, Scalar(p), std::optional<IntSpan>(Dims{inner}),
                                keepdim);
}

Tensor normalize(const Tensor& input, double p, IntSpan dim, double eps) {
  const Tensor length = op::linalg_vector_norm(input, Scalar(p), std::optional<IntSpan>(dim), true);
  return input / op::clamp_min(length, eps);
}

}  // namespace facula::kernels

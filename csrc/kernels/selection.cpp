// Reductions by index, positions in a fixed number.
#include "op/kernels/selection.h"
#include "op/elementwise.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  if (reduce != "prod" && reduce != "mean" && reduce != "amax" && reduce != "amin")
    runtime_error("Expected reduce to be one of prod, mean, amax or amin but got ", reduce, ".");
  dim = wrap_dim(dim, self.dim());
  if (index.dim() > 1)
    index_error("Index is supposed to be a vector, but got dim: ", index.dim(),
                " with type: ", legacy_dtype_name(index.dtype()), " and size: ", index.sizes());
  if (index.dtype() != DType::Int64 && index.dtype() != DType::Int32)
    runtime_error("Expected dtype int32/int64 for index but got: ",
                  legacy_dtype_name(index.dtype()));
  if (self.dtype() != source.dtype())
    runtime_error("self (", legacy_dtype_name(self.dtype()), ") and source (",
                  legacy_dtype_name(source.dtype()),
                  ") must have the same scalar type. Convert one of them with .to(...)");
  const auto shapes_error = [&] {
    runtime_error(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
        "self.shape = ",
        self.sizes(), " source.shape = ", source.sizes());
  };
  if (self.dim() != source.dim()) shapes_error();
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim && self.sizes()[d] != source.sizes()[d]) shapes_error();
  const int64_t slices = source.dim() ? source.sizes()[dim] : 1;
  if (index.numel() != slices)
    runtime_error("Number of indices (", index.numel(), ") should be equal to source.size(dim): (",
                  slices, "), for dim: ", dim);
  Dims shape(size_t(self.dim()), 1);
  if (self.dim()) shape[size_t(dim)] = slices;
  Tensor everywhere = op::expand(op::reshape(index, shape), source.sizes());
  return op::scatter_reduce_two(self, dim, everywhere, source, reduce, include_self);
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  if (size < 0) runtime_error("'size' must be an non-negative integer, got ", size);
  GradGuard off(false);
  Tensor out =
      op::full(Dims{size, self.dim()}, fill_value, DType::Int64, std::nullopt, self.device());
  if (self.is_meta()) return out;
  Tensor found = op::nonzero(self);
  const int64_t n = std::min(size, found.sizes()[0]);
  op::copy_(op::narrow(out, 0, 0, n), op::narrow(found, 0, 0, n));
  return out;
}

}  // namespace facula::kernels

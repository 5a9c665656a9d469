#include "kernels/linalg_matrices.h"

#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula {

void require_matrix(const Tensor& t, const char* name) {
  if (t.dim() < 2)
    runtime_error("The input tensor ", name,
                  " must have at least 2 dimensions, a matrix or a batch "
                  "of matrices, but its shape is ",
                  t.sizes());
}

void require_square(const Tensor& t, const char* name) {
  require_matrix(t, name);
  if (t.size(-1) != t.size(-2))
    runtime_error(name, " must be batches of square matrices, but they are ", t.size(-2), " by ",
                  t.size(-1), " matrices (shape ", t.sizes(), ")");
}

void require_lapack_dtype(const Tensor& t, const char* name, ErrorKind for_integers) {
  if (category(t.dtype()) <= Category::Integral)
    fail(for_integers, "Expected a floating point or complex tensor as ", name, ". Got ", t.dtype(),
         " (not implemented for '", legacy_dtype_name(t.dtype()),
         "'); convert it with .to(facula.float32) or .to(facula.float64)");
  if (is_reduced_float(t.dtype()))
    fail(ErrorKind::NotImplemented, "Low precision dtypes are not supported: ", name, " is ",
         t.dtype(), " (not implemented for '", legacy_dtype_name(t.dtype()),
         "'); convert it with .to(facula.float32)");
}

void require_same_dtype(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name) {
  if (a.dtype() != b.dtype())
    runtime_error("Expected ", a_name, " and ", b_name, " to have the same dtype, but found ",
                  a_name, " of type ", a.dtype(), " and ", b_name, " of type ", b.dtype());
  if (a.device() != b.device()) device_error(a.device(), b.device());
}

void require_system(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name,
                    bool left) {
  require_square(a, a_name);
  require_matrix(b, b_name);
  require_same_dtype(a, a_name, b, b_name);
  if (a.size(-1) != b.size(left ? -2 : -1))
    runtime_error("Incompatible shapes of ", a_name, " and ", b_name, " for the equation ",
                  left ? "AX = B (" : "XA = B (", a.size(-2), "x", a.size(-1), " and ", b.size(-2),
                  "x", b.size(-1), "): ", b_name, " of shape ", b.sizes(), " must have ",
                  a.size(-1), left ? " rows" : " columns");
}

Dims with_matrix(IntSpan batch, int64_t rows, int64_t columns) {
  Dims shape(batch);
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

Dims broadcast_batches(const Tensor& a, const Tensor& b) {
  try {
    return broadcast_shapes(batch_of(a), batch_of(b));
  } catch (const Error& e) {
    runtime_error(e.what(), ". These are the batch dimensions of ", a.sizes(), " and ", b.sizes());
  }
}

Tensor empty_columns(IntSpan batch, int64_t rows, int64_t columns, DType dtype, Device device) {
  const Dims shape = with_matrix(batch, rows, columns);
  Dims strides = contiguous_strides(shape);
  strides[shape.size() - 2] = 1;
  strides[shape.size() - 1] = std::max<int64_t>(rows, 1);
  return empty_tensor(shape, strides, dtype, device);
}

Tensor as_columns(const Tensor& vectors) {
  Dims sizes(vectors.sizes()), strides(vectors.strides());
  sizes.push_back(1);
  strides.push_back(1);
  return alias_tensor(vectors, sizes, strides, vectors.offset());
}

MatrixBatch::MatrixBatch(const Tensor& t, IntSpan batch)
    : rows(t.size(-2)),
      columns(t.size(-1)),
      row_stride(t.stride(-2)),
      column_stride(t.stride(-1)),
      data_(t.data()),
      count_(checked_numel(batch)) {
  const size_t own = size_t(t.dim() - 2), missing = batch.size() - own;
  for (size_t d = batch.size(); d-- > 0;) {
    if (batch[d] == 1) continue;
    const bool repeated = d < missing || t.sizes()[d - missing] == 1;
    const int64_t stride = repeated ? 0 : t.strides()[d - missing];
    if (!sizes_.empty() && stride == strides_[0] * sizes_[0]) {
      sizes_[0] *= batch[d];
    } else {
      sizes_.insert(0, batch[d]);
      strides_.insert(0, stride);
    }
  }
  if (strides_.empty()) {
    sizes_.push_back(1);
    strides_.push_back(0);
  }
}

int lapack_int(int64_t size) {
  if (size > INT_MAX)
    runtime_error("LAPACK takes matrices of at most ", INT_MAX, " rows and columns, but got ",
                  size);
  return int(size);
}

Tensor columns_of(const Tensor& t, IntSpan batch) {
  GradGuard off(false);
  Tensor out = empty_columns(batch, t.size(-2), t.size(-1), t.dtype(), t.device());
  if (out.numel()) op::copy_(out, t);
  return out;
}

Tensor dense_rows(const Tensor& t, IntSpan batch) {
  GradGuard off(false);
  Dims shape(batch);
  shape.push_back(t.size(-1));
  return op::contiguous(op::expand(t, shape));
}

void check_info(const Tensor& info, std::string (*describe)(int info)) {
  if (info.is_meta()) return;
  if (info.is_cuda()) return check_info(op::_to_copy(info, DType::None, Device{}), describe);
  const int* values = info.data_as<int>();
  for (int64_t i = 0; i < info.numel(); ++i) {
    if (values[i] == 0) continue;
    if (values[i] < 0)
      runtime_error("LAPACK refused its argument ", -values[i], " (info ", values[i],
                    "); please report this as a bug");
    if (info.dim() == 0) fail(ErrorKind::LinAlg, describe(values[i]));
    Dims index(info.sizes());
    for (int64_t d = info.dim() - 1, rest = i; d >= 0; --d) {
      index[size_t(d)] = rest % info.sizes()[size_t(d)];
      rest /= info.sizes()[size_t(d)];
    }
    if (info.dim() == 1) fail(ErrorKind::LinAlg, "(Batch element ", i, "): ", describe(values[i]));
    fail(ErrorKind::LinAlg, "(Batch element ", i, ", at ", IntSpan(index),
         "): ", describe(values[i]));
  }
}

}  // namespace facula

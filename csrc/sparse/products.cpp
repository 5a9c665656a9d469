// Products of sparse matrices by rows; the derivative is in the rows of ops/sparse.py.
#include "core/thread_pool.h"
#include "cpu/cast.h"
#include "cpu/iterate.h"
#include "kernels/destination.h"
#include "op/hooks/sparse.h"
#include "op/kernels/sparse.h"
#include "op/ops/copying.h"
#include "op/ops/indexing.h"
#include "op/ops/sparse.h"
#include "sparse/convert.h"
#include "sparse/rows.h"

namespace facula {

namespace baseline {
SparseRowLoops sparse_row_loops(DType dtype);
}
#ifdef FACULA_X86
namespace v3 {
SparseRowLoops sparse_row_loops(DType dtype);
}
namespace v4 {
SparseRowLoops sparse_row_loops(DType dtype);
}
#endif

SparseRowLoops sparse_row_loops(DType dtype) {
#ifdef FACULA_X86
  if (isa_level() == 2) return v4::sparse_row_loops(dtype);
  if (isa_level() == 1) return v3::sparse_row_loops(dtype);
#endif
  return baseline::sparse_row_loops(dtype);
}

namespace {

SparseRowLoops loops_for(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    runtime_error("expected both matrices to have the same dtype, but got ", a.dtype(), " and ",
                  b.dtype());
  // Devices have kernels for what has loops.
  const SparseRowLoops loops =
      sparse_row_loops(is_reduced_float(a.dtype()) ? DType::Float32 : a.dtype());
  if (!loops.multiply) dtype_error(a.dtype(), "floating, complex and signed integer dtypes, uint8");
  return loops;
}

// Loops have no halves; kernels do.
bool goes_through_float(const Tensor& t) {
  return is_reduced_float(t.dtype()) && !t.is_cuda();
}

template <class F>  // run(first, last) on pieces of the rows
void for_rows(const Tensor& starts, int64_t width, F&& run) {
  const int64_t rows = starts.numel() - 1, nnz = starts.data_as<int64_t>()[rows];
  const int64_t work = std::max<int64_t>(1, (nnz / std::max<int64_t>(1, rows) + 1) * width);
  parallel_for(0, rows, std::max<int64_t>(1, kGrain / work), run);
}

}  // namespace

namespace kernels {

using namespace facula::sparse;

Tensor _csr_mm(const Tensor& starts, const Tensor& columns, const Tensor& values,
               const Tensor& matrix) {
  const int64_t rows = starts.numel() - 1, width = matrix.size(1);
  if (goes_through_float(values))
    return op::_to_copy(op::_csr_mm(starts, columns, op::_to_copy(values, DType::Float32),
                                    op::_to_copy(matrix, DType::Float32)),
                        values.dtype());
  if (values.device() != matrix.device()) device_error(values.device(), matrix.device());
  if (values.is_meta()) return empty_tensor(Dims{rows, width}, values.dtype(), values.device());
  const Tensor s = plain_indices(starts), c = plain_indices(columns), v = dense(values),
               m = dense(matrix);
  const SparseRowLoops loops = loops_for(v, m);
  Tensor out = empty_tensor(Dims{rows, width}, values.dtype(), values.device());
  if (out.is_cuda()) {
    device_sparse.multiply_rows(s, c, v, m, out);
    return out;
  }
  for_rows(s, width, [&](int64_t first, int64_t last) {
    loops.multiply(s.data_as<int64_t>(), c.data_as<int64_t>(), v.data(), m.data(), out.data(),
                   width, first, last);
  });
  return out;
}

Tensor _csr_sampled(const Tensor& starts, const Tensor& columns, const Tensor& a, const Tensor& b) {
  const int64_t width = a.size(1);
  if (goes_through_float(a))
    return op::_to_copy(op::_csr_sampled(starts, columns, op::_to_copy(a, DType::Float32),
                                         op::_to_copy(b, DType::Float32)),
                        a.dtype());
  if (a.device() != b.device()) device_error(a.device(), b.device());
  if (a.is_meta()) return empty_tensor(Dims{columns.numel()}, a.dtype(), a.device());
  const Tensor s = plain_indices(starts), c = plain_indices(columns), x = dense(a), y = dense(b);
  const SparseRowLoops loops = loops_for(x, y);
  Tensor out = empty_tensor(Dims{columns.numel()}, a.dtype(), a.device());
  if (out.is_cuda()) {
    device_sparse.sample_rows(s, c, x, y, out);
    return out;
  }
  for_rows(s, width, [&](int64_t first, int64_t last) {
    loops.sample(s.data_as<int64_t>(), c.data_as<int64_t>(), x.data(), y.data(), out.data(), width,
                 first, last);
  });
  return out;
}

Tensor _csr_mm_turned(const Tensor& starts, const Tensor& columns, const Tensor& values,
                      const Tensor& matrix, IntSpan size) {
  const Turned pattern = turn_pattern(plain_indices(starts), plain_indices(columns), size[0]);
  return op::_csr_mm(pattern.starts, pattern.plain, rows_at(values, pattern.order), matrix);
}

}  // namespace kernels
}  // namespace facula

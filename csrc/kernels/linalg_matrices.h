// What the kernels on LAPACK share: checks of matrices, results in column-major order, and loops
// over batches of matrices.
#pragma once
#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <type_traits>

#include "core/host_array.h"
#include "core/tensor.h"
#include "core/thread_pool.h"
#include "cpu/blas.h"
#include "cpu/small_matrix.h"
#include "cpu/turn_block.h"

namespace facula {

// ---- checks; `name` is the argument as the signature has it
void require_matrix(const Tensor& t, const char* name);
void require_square(const Tensor& t, const char* name);
// float32, float64 and the complex types; PyTorch's error for integers is not the same everywhere.
void require_lapack_dtype(const Tensor& t, const char* name,
                          ErrorKind for_integers = ErrorKind::Runtime);
void require_same_dtype(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name);
// op(a) x = b when left, x op(a) = b otherwise; a is square.
void require_system(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name,
                    bool left);

// ---- shapes
inline IntSpan batch_of(const Tensor& t) {
  return t.sizes().first(size_t(t.dim() - 2));
}
Dims with_matrix(IntSpan batch, int64_t rows, int64_t columns);
// The batch dimensions of two operands, broadcast; the error names both shapes.
Dims broadcast_batches(const Tensor& a, const Tensor& b);
// A result in LAPACK's order: contiguous columns, then columns, then the batch.
Tensor empty_columns(IntSpan batch, int64_t rows, int64_t columns, DType dtype, Device device);
// Vectors (..., n) seen as matrices of n rows and one column.
Tensor as_columns(const Tensor& vectors);

// ---- matrices in memory

// The matrices of a tensor, numbered over a batch shape that its own batch dimensions expand to.
class MatrixBatch {
 public:
  explicit MatrixBatch(const Tensor& t) : MatrixBatch(t, batch_of(t)) {}
  MatrixBatch(const Tensor& t, IntSpan batch);

  int64_t count() const { return count_; }
  int64_t rows, columns, row_stride, column_stride;  // in elements

  template <class T>
  T* at(int64_t i) const {
    return reinterpret_cast<T*>(data_) + offset(i);
  }
  // Whether LAPACK can read the matrices where they are.
  bool column_major() const {
    return (row_stride == 1 || rows <= 1) &&
           (column_stride >= std::max<int64_t>(rows, 1) || columns <= 1) &&
           column_stride <= INT_MAX;
  }
  int leading() const { return int(columns <= 1 ? std::max<int64_t>(rows, 1) : column_stride); }

 private:
  int64_t offset(int64_t i) const {
    if (strides_.size() == 1) return i * strides_[0];
    int64_t at = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      at += i % sizes_[d] * strides_[d];
      i /= sizes_[d];
    }
    return at;
  }
  char* data_;
  int64_t count_;
  Dims sizes_, strides_;  // of the batch; dimensions that lie evenly are one
};

constexpr int64_t kCopiedElements = 1 << 15;  // for a task

// A rows x columns matrix of any strides to columns `ld` apart.
template <class T>
void copy_to_columns(T* to, int64_t ld, const T* from, int64_t row_stride, int64_t column_stride,
                     int64_t rows, int64_t columns) {
  if (row_stride == 1) {
    for (int64_t j = 0; j < columns; ++j)
      std::memcpy(to + j * ld, from + j * column_stride, size_t(rows) * sizeof(T));
    return;
  }
  constexpr int64_t kTile = 16;  // both sides of a tile stay in the first-level cache
  if (column_stride == 1) {
    const int64_t tiles = (columns + kTile - 1) / kTile,
                  grain =
                      std::max<int64_t>(1, kCopiedElements / (kTile * std::max<int64_t>(rows, 1)));
    parallel_for(0, tiles, grain, [&](int64_t tile, int64_t end) {
      for (int64_t j = tile * kTile; j < std::min(columns, end * kTile); j += kTile)
        for (int64_t i = 0; i < rows; i += kTile)
          turn_matrix(to + i + j * ld, ld, from + i * row_stride + j, row_stride,
                      std::min(kTile, columns - j), std::min(kTile, rows - i));
    });
    return;
  }
  for (int64_t j0 = 0; j0 < columns; j0 += kTile)
    for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
      const int64_t j1 = std::min(j0 + kTile, columns), i1 = std::min(i0 + kTile, rows);
      for (int64_t j = j0; j < j1; ++j)
        for (int64_t i = i0; i < i1; ++i) to[i + j * ld] = from[i * row_stride + j * column_stride];
    }
}
template <class T>
void copy_to_columns(T* to, int64_t ld, const MatrixBatch& from, int64_t i) {
  copy_to_columns(to, ld, from.at<T>(i), from.row_stride, from.column_stride, from.rows,
                  from.columns);
}

// The matrices of a batch where LAPACK can read them: in place, or copied one at a time.
template <class T>
class ReadableMatrices {
 public:
  explicit ReadableMatrices(const MatrixBatch& batch)
      : batch_(batch), copy_(batch.column_major() ? 0 : batch.rows * batch.columns) {}
  int leading() const {
    return batch_.column_major() ? batch_.leading() : int(std::max<int64_t>(batch_.rows, 1));
  }
  const T* at(int64_t i) const {
    if (batch_.column_major()) return batch_.at<T>(i);
    copy_to_columns(copy_.data(), leading(), batch_, i);
    return copy_.data();
  }

 private:
  const MatrixBatch& batch_;
  HostArray<T> copy_;
};

// Up to one matrix for each lane, from number `first` on.
template <class T>
typename MatrixLanes<T>::Source lanes_of(const MatrixBatch& batch, int64_t first, int count) {
  typename MatrixLanes<T>::Source source;
  source.row_stride = batch.row_stride;
  source.column_stride = batch.column_stride;
  for (int l = 0; l < count; ++l) source.at[l] = batch.at<T>(first + l);
  return source;
}
// Whether matrices of this type and size are taken several at a time.
template <class T>
bool fits_lanes(int64_t n, int64_t count) {
  return std::is_floating_point_v<T> && n >= 1 && n <= kTinyMatrix && count > 2;
}

// ---- loops

// f(begin, end) over ranges of matrices. Many matrices are shared by the pool, each with BLAS on
// one thread; few large ones are taken in turn with threads inside BLAS, or, if `pooled`, with
// those of the pool inside f.
template <class F>
void for_matrices(int64_t count, double operations_each, F&& f, bool pooled = false) {
  if (count == 0) return;
  if (count < num_threads() && operations_each > (pooled ? 4e6 : 1e7)) {
    std::optional<BlasThreads> threads;
    if (!pooled) threads.emplace();
    f(int64_t(0), count);
    return;
  }
  const auto grain = int64_t(32768 / std::max(operations_each, 16.0));
  parallel_for(0, count, std::max<int64_t>(grain, 1), f);
}

// f(first, count) over as many matrices as there are lanes.
template <class T, class F>
void for_lanes(int64_t total, F&& f) {
  const int64_t lanes = matrix_lanes<T>().lanes;
  parallel_for(0, total, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += lanes) f(i, int(std::min(lanes, end - i)));
  });
}

// f.operator()<T>() for the type of a tensor that require_lapack_dtype has let pass.
template <class F>
void dispatch_lapack(DType d, F&& f) {
  switch (d) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Complex64: return f.template operator()<Complex<float>>();
    default: return f.template operator()<Complex<double>>();
  }
}

// LAPACK's sizes are 32 bits wide.
int lapack_int(int64_t size);

// ---- devices

// The matrices of `t`, broadcast to a batch shape, as hooks take them (op/hooks/linalg.h).
Tensor columns_of(const Tensor& t, IntSpan batch);
// Rows of numbers that belong to matrices (pivots, tau), broadcast to a batch shape, dense.
Tensor dense_rows(const Tensor& t, IntSpan batch);

// ---- failures

// Raises LinAlgError for the first matrix with info > 0: "(Batch element 3): " and what `describe`
// says of its info. `info` is int32 and has the batch's shape.
void check_info(const Tensor& info, std::string (*describe)(int info));

}  // namespace facula

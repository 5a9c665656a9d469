// The loops over rows; built once per ISA.
#include "sparse/rows.h"

#include <cstring>
#include <type_traits>

#include "core/numeric.h"
#include "cpu/lanes.h"

namespace facula::FACULA_ISA {
namespace {

// kVectors vectors of columns: they stay in registers while the row's elements go by.
template <class T, int kVectors>
void multiply_vectors(const int64_t* columns, const T* values, int64_t count, const T* matrix,
                      T* out, int64_t width) {
  typedef T Vector __attribute__((vector_size(kLaneBytes)));
  Vector sum[kVectors] = {};
  for (int64_t k = 0; k < count; ++k) {
    const T v = values[k];
    const T* from = matrix + columns[k] * width;
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      Vector x;
      std::memcpy(&x, from + i * kLanes<T>, sizeof x);
      sum[i] += x * v;
    }
  }
  std::memcpy(out, sum, sizeof sum);
}

template <class T, int kBlock>
void multiply_block(const int64_t* columns, const T* values, int64_t count, const T* matrix, T* out,
                    int64_t width) {
  T sum[kBlock] = {};
  for (int64_t k = 0; k < count; ++k) {
    const T v = values[k];
    const T* from = matrix + columns[k] * width;
    for (int j = 0; j < kBlock; ++j) sum[j] += v * from[j];
  }
  for (int j = 0; j < kBlock; ++j) out[j] = sum[j];
}

template <class T>
void multiply(const int64_t* starts, const int64_t* columns, const void* values_of,
              const void* matrix_of, void* out_of, int64_t width, int64_t first, int64_t last) {
  const T *values = static_cast<const T*>(values_of), *matrix = static_cast<const T*>(matrix_of);
  for (int64_t i = first; i < last; ++i) {
    const int64_t begin = starts[i], count = starts[i + 1] - begin;
    const int64_t* c = columns + begin;
    const T* v = values + begin;
    T* to = static_cast<T*>(out_of) + i * width;
    int64_t j = 0;
    if constexpr (std::is_arithmetic_v<T>) {
      for (; j + 4 * kLanes<T> <= width; j += 4 * kLanes<T>)
        multiply_vectors<T, 4>(c, v, count, matrix + j, to + j, width);
      for (; j + kLanes<T> <= width; j += kLanes<T>)
        multiply_vectors<T, 1>(c, v, count, matrix + j, to + j, width);
    }
    for (; j + 4 <= width; j += 4) multiply_block<T, 4>(c, v, count, matrix + j, to + j, width);
    for (; j < width; ++j) multiply_block<T, 1>(c, v, count, matrix + j, to + j, width);
  }
}

template <class T>
void sample(const int64_t* starts, const int64_t* columns, const void* a, const void* b, void* out,
            int64_t width, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    const T* x = static_cast<const T*>(a) + i * width;
    for (int64_t k = starts[i]; k < starts[i + 1]; ++k) {
      const T* y = static_cast<const T*>(b) + columns[k] * width;
      T sum{};
      int64_t j = 0;
      if constexpr (std::is_arithmetic_v<T>) {
        typedef T Vector __attribute__((vector_size(kLaneBytes)));
        Vector lanes = {};
        for (; j + kLanes<T> <= width; j += kLanes<T>) {
          Vector p, q;
          std::memcpy(&p, x + j, sizeof p);
          std::memcpy(&q, y + j, sizeof q);
          lanes += p * q;
        }
        for (int l = 0; l < kLanes<T>; ++l) sum += lanes[l];
      }
      for (; j < width; ++j) sum += x[j] * y[j];
      static_cast<T*>(out)[k] = sum;
    }
  }
}

template <class T>
constexpr SparseRowLoops loops() {
  return {multiply<T>, sample<T>};
}

}  // namespace

SparseRowLoops sparse_row_loops(DType dtype) {
  switch (dtype) {
    case DType::Float32: return loops<float>();
    case DType::Float64: return loops<double>();
    case DType::Complex64: return loops<Complex<float>>();
    case DType::Complex128: return loops<Complex<double>>();
    case DType::Int64: return loops<int64_t>();
    case DType::Int32: return loops<int32_t>();
    case DType::Int16: return loops<int16_t>();
    case DType::Int8: return loops<int8_t>();
    case DType::UInt8: return loops<uint8_t>();
    default: return {};
  }
}

}  // namespace facula::FACULA_ISA

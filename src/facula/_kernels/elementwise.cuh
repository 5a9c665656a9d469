// out[i] = formula(a[i], b[i], ...) over any layout. The host defines
//   FACULA_NAME      the kernel's name
//   FACULA_COMPUTE   the type T in which the formula is evaluated
//   FACULA_RESULT    the type that the formula's value is given before it is stored
//   FACULA_OUT       dtype of the stored result
//   FACULA_INPUTS    number of inputs, FACULA_IN0.. their dtypes
//   FACULA_ARG0..    the types in which the formula sees them: T, or bool for masks
//   FACULA_PARAMS    number of scalars; FACULA_SLOT0.. the types they are handed over in,
//                    FACULA_P0.. those in which formulas see them, FACULA_PARAM_NAME0.. their names
//   FACULA_BODY      the function body over a, b, ..., the scalars and `index`
//   FACULA_VECTOR    V, elements moved at once
//   FACULA_SPLAT     bit k: input k is one number, or one number per innermost row
//   FACULA_NDIM      0: everything is dense; else the number of dimensions to compute offsets from
//   FACULA_INDEX     uint32 or uint64
//   FACULA_UNROLL    vectors per thread, all loaded before any is used
#pragma once
#include "division.cuh"
#include "formula.cuh"

namespace facula {
namespace math {

constexpr int V = FACULA_VECTOR;
constexpr int kUnroll = FACULA_UNROLL;
using Index = FACULA_INDEX;
using Offset = signed_index<Index>;

// Mirrored by ElementwiseArguments in csrc/cuda/elementwise.cpp.
struct Arguments {
  int64 count;  // elements if dense, else vectors
  char* pointer[FACULA_INPUTS + 1];
#if FACULA_PARAMS > 0
  Slot slot[FACULA_PARAMS];
#endif
#if FACULA_NDIM > 0
  Divider<Index> size[FACULA_NDIM];  // innermost first; its elements are vectors
  Offset stride[FACULA_INPUTS + 1][FACULA_NDIM];  // bytes
#endif
};

#if FACULA_NDIM > 0
// Byte offsets of all operands at a thread's vectors. Many dimensions are a loop, whose steps serve
// all vectors.
struct Offsets {
  Offset at[kUnroll][FACULA_INPUTS + 1];

  __device__ __forceinline__ Offsets(const Arguments& arguments, int64 first) {
    Index rest[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      rest[u] = Index(first + u * blockDim.x);
#pragma unroll
      for (int k = 0; k <= FACULA_INPUTS; ++k) at[u][k] = 0;
    }
    constexpr int kWritten = FACULA_NDIM > 4 ? 1 : FACULA_NDIM;
#pragma unroll kWritten
    for (int d = 0; d < FACULA_NDIM; ++d) {
      const Divider<Index> size = arguments.size[d];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        // The outermost dimension needs no division.
        const Index quotient = d + 1 < FACULA_NDIM ? size.divide(rest[u]) : 0;
        const Offset position = Offset(rest[u] - quotient * size.divisor);
        rest[u] = quotient;
#pragma unroll
        for (int k = 0; k <= FACULA_INPUTS; ++k) at[u][k] += position * arguments.stride[k][d];
      }
    }
  }
};
#endif

// An element as the formula sees it, and what the formula gives as an element. Where nothing
// changes, nothing is called: calls that are inlined take time to compile, too.
template <class To, class From>
__device__ __forceinline__ To value_of(stored<From> x) {
  if constexpr (same<To, stored<From>>) return x;
  else return convert<To>(as_value<From>(x));
}
template <class Value>
__device__ __forceinline__ stored<FACULA_OUT> element_of(Value x) {
  if constexpr (same<Value, FACULA_RESULT> && same<Value, FACULA_OUT>) return x;
  else return convert<FACULA_OUT>(convert<FACULA_RESULT>(x));
}

}  // namespace math
}  // namespace facula

// The kernel is one function, and what it does for every input is written out by the preprocessor.
#define FACULA_IS_SPLAT(k) (FACULA_SPLAT >> k & 1)
#if FACULA_NDIM > 0
#define FACULA_PLACE(k, u, i, size) (arguments.pointer[k] + offsets.at[u][k])
#else
#define FACULA_PLACE(k, u, i, size) (arguments.pointer[k] + (i) * int64(size))
#endif

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::math::Arguments arguments) {
  using namespace facula;
  using namespace facula::math;
  const Formula formula FACULA_FORMULA_FROM(arguments);
  const int64 vectors = FACULA_NDIM == 0 ? arguments.count / V : arguments.count;
  const int64 first = int64(blockIdx.x) * (blockDim.x * kUnroll) + threadIdx.x;

#if FACULA_NDIM > 0
  Offsets offsets(arguments, first);
#endif
  // What one thread holds of all inputs; of a splat one, the number.
#define X(k) Vector<FACULA_IN##k, FACULA_IS_SPLAT(k) ? 1 : V> input##k[kUnroll];
  FACULA_EACH_INPUT(X)
#undef X
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64 i = first + u * blockDim.x;
    if (i < vectors) {
#define X(k) \
  load(input##k[u], FACULA_PLACE(k + 1, u, FACULA_IS_SPLAT(k) ? 0 : i, sizeof input##k[u]));
      FACULA_EACH_INPUT(X)
#undef X
    }
  }
  // The next inputs move up instead of being addressed, so that the loop stays a loop: the formula
  // is compiled once for all vectors of a thread.
#pragma unroll 1
  for (int64 i = first, end = first + kUnroll * blockDim.x; i < end; i += blockDim.x) {
    if (i < vectors) {
      Vector<FACULA_OUT, V> result;
#pragma unroll
      for (int v = 0; v < V; ++v) {
#define X(k) , value_of<FACULA_ARG##k, FACULA_IN##k>(input##k[0].at[FACULA_IS_SPLAT(k) ? 0 : v])
        result.at[v] = element_of(formula(i * V + v FACULA_EACH_INPUT(X)));
#undef X
      }
      store(result, FACULA_PLACE(0, 0, i, sizeof result));
    }
#pragma unroll
    for (int u = 1; u < kUnroll; ++u) {
#define X(k) input##k[u - 1] = input##k[u];
      FACULA_EACH_INPUT(X)
#undef X
#if FACULA_NDIM > 0
      offsets.at[u - 1][0] = offsets.at[u][0];
#endif
    }
  }

#if FACULA_NDIM == 0 && FACULA_VECTOR > 1
  // The elements after the last whole vector.
  const int64 i = vectors * V + threadIdx.x;
  if (blockIdx.x == gridDim.x - 1 && i < arguments.count) {
#define X(k)                               \
  , value_of<FACULA_ARG##k, FACULA_IN##k>( \
        reinterpret_cast<const stored<FACULA_IN##k>*>( \
            arguments.pointer[k + 1])[FACULA_IS_SPLAT(k) ? 0 : i])
    reinterpret_cast<stored<FACULA_OUT>*>(arguments.pointer[0])[i] =
        element_of(formula(i FACULA_EACH_INPUT(X)));
#undef X
  }
#endif
}

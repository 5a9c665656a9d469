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

// Byte offsets of all operands at vector i.
struct Offsets {
  choose<FACULA_NDIM == 0, int64, Offset> at[FACULA_INPUTS + 1];

  __device__ __forceinline__ Offsets(const Arguments& arguments, int64 i) {
#if FACULA_NDIM == 0
    at[0] = i * V * int64(sizeof(FACULA_OUT));
#define X(k) at[k + 1] = FACULA_SPLAT >> k & 1 ? 0 : i * V * int64(sizeof(FACULA_IN##k));
    FACULA_EACH_INPUT(X)
#undef X
#else
#pragma unroll
    for (int k = 0; k <= FACULA_INPUTS; ++k) at[k] = 0;
    Index rest = Index(i);
#pragma unroll
    for (int d = 0; d < FACULA_NDIM; ++d) {
      // The outermost dimension needs no division.
      const Index quotient = d + 1 < FACULA_NDIM ? arguments.size[d].divide(rest) : 0;
      const Offset position = Offset(rest - quotient * arguments.size[d].divisor);
      rest = quotient;
#pragma unroll
      for (int k = 0; k <= FACULA_INPUTS; ++k) at[k] += position * arguments.stride[k][d];
    }
#endif
  }
};

// What one thread holds of all inputs.
template <int W>
struct Inputs {
#define X(k) Vector<FACULA_IN##k, W> input##k;
  FACULA_EACH_INPUT(X)
#undef X

  __device__ __forceinline__ void read(const Arguments& arguments, const Offsets& offsets) {
#define X(k)                                                                       \
  if (FACULA_SPLAT >> k & 1) load_splat(input##k, arguments.pointer[k + 1] + offsets.at[k + 1]); \
  else load(input##k, arguments.pointer[k + 1] + offsets.at[k + 1]);
    FACULA_EACH_INPUT(X)
#undef X
  }
};

template <int W>
__device__ __forceinline__ void write(const Formula& formula, const Inputs<W>& inputs, int64 index,
                                      char* out) {
  Vector<FACULA_OUT, W> result;
#pragma unroll
  for (int v = 0; v < W; ++v) {
#define X(k) , convert<FACULA_ARG##k>(as_value<FACULA_IN##k>(inputs.input##k.at[v]))
    result.at[v] =
        convert<FACULA_OUT>(convert<FACULA_RESULT>(formula(index + v FACULA_EACH_INPUT(X))));
#undef X
  }
  store(result, out);
}

}  // namespace math
}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::math::Arguments arguments) {
  using namespace facula;
  using namespace facula::math;
  const Formula formula FACULA_FORMULA_FROM(arguments);
  const int64 vectors = FACULA_NDIM == 0 ? arguments.count / V : arguments.count;
  const int64 first = int64(blockIdx.x) * (blockDim.x * kUnroll) + threadIdx.x;

  Inputs<V> inputs[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64 i = first + u * blockDim.x;
    if (i < vectors) inputs[u].read(arguments, Offsets(arguments, i));
  }
  // The next inputs move up instead of being addressed, so that the loop stays a loop: the formula
  // is compiled once for all vectors of a thread.
#pragma unroll 1
  for (int64 i = first, end = first + kUnroll * blockDim.x; i < end; i += blockDim.x) {
    if (i < vectors) {
      write(formula, inputs[0], i * V, arguments.pointer[0] + Offsets(arguments, i).at[0]);
    }
#pragma unroll
    for (int u = 1; u < kUnroll; ++u) inputs[u - 1] = inputs[u];
  }

#if FACULA_NDIM == 0 && FACULA_VECTOR > 1
  // The elements after the last whole vector.
  const int64 i = vectors * V + threadIdx.x;
  if (blockIdx.x == gridDim.x - 1 && i < arguments.count) {
    Inputs<1> rest;
#define X(k)                                                                                  \
  load(rest.input##k, arguments.pointer[k + 1] +                                              \
                          (FACULA_SPLAT >> k & 1 ? 0 : i * int64(sizeof(FACULA_IN##k))));
    FACULA_EACH_INPUT(X)
#undef X
    write(formula, rest, i, arguments.pointer[0] + i * int64(sizeof(FACULA_OUT)));
  }
#endif
}

// Multiplies many tensors by one number of the device, and looks for infinities and NaN before.
//   FACULA_DTYPE   of the tensors
//   FACULA_COMPUTE the type of the product
//   FACULA_FACTOR  dtype of the number
//   FACULA_CHECK   1: a float32 is set to 1 where an element is not finite
//   FACULA_VECTOR  elements moved at once where addresses allow
#pragma once
#include "tensor_list.cuh"

namespace facula {

using T = FACULA_COMPUTE;

struct Arguments {
  const char* factor;
  float* found;
  TensorList list;
};

__device__ __forceinline__ bool is_finite(float x) { return x - x == 0.0f; }
__device__ __forceinline__ bool is_finite(double x) { return x - x == 0.0; }
template <class R>
__device__ __forceinline__ bool is_finite(Complex<R> x) {
  return is_finite(x.re) && is_finite(x.im);
}

template <int V>
__device__ __forceinline__ bool scale(char* at, T factor) {
  Vector<FACULA_DTYPE, V> x;
  bool finite = true;
  load(x, at);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const T value = convert<T>(x.at[v]);
    if (FACULA_CHECK) finite = finite && is_finite(value);
    x.at[v] = convert<FACULA_DTYPE>(value * factor);
  }
  store(x, at);
  return finite;
}

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  constexpr int V = FACULA_VECTOR;
  constexpr int64 kItem = int64(sizeof(FACULA_DTYPE));
  const Piece piece(arguments.list);
  const auto& set = arguments.list.set[piece.at];
  const T factor = convert<T>(*reinterpret_cast<const FACULA_FACTOR*>(arguments.factor));
  bool finite = true;
  int64 rest = piece.first;
  if (aligned(set, 0, V * int(kItem))) {
    const int64 vectors = (piece.last - piece.first) / V;
    for (int64 i = threadIdx.x; i < vectors; i += blockDim.x) {
      finite = scale<V>(set.pointer[0] + (piece.first + i * V) * kItem, factor) && finite;
    }
    rest += vectors * V;
  }
#pragma unroll 1
  for (int64 i = rest + threadIdx.x; i < piece.last; i += blockDim.x) {
    finite = scale<1>(set.pointer[0] + i * kItem, factor) && finite;
  }
  if (FACULA_CHECK && !finite) *arguments.found = 1.0f;  // whoever writes, writes the same
}

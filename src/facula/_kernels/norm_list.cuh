// What norms of many tensors are made of: for each piece, the largest magnitude or the sum of
// powers of them.
//   FACULA_DTYPE   of the tensors
//   FACULA_COMPUTE float32 or float64
//   FACULA_ORDER   0: the largest; 1: sum; 2: sum of squares; 3: sum of powers `order`
//   FACULA_VECTOR  elements moved at once where addresses allow
#pragma once
#include "math.cuh"
#include "tensor_list.cuh"

namespace facula {

using T = FACULA_COMPUTE;
constexpr int kOrder = FACULA_ORDER;

struct Arguments {
  T* parts;  // one for each block
  T order;
  TensorList list;
};

__device__ __forceinline__ T size_of(T x) { return x < T(0) ? -x : x; }
template <class R>
__device__ __forceinline__ T size_of(Complex<R> x) { return T(math::abs(x)); }

__device__ __forceinline__ T combine(T a, T b) {
  if constexpr (kOrder == 0) return a > b || a != a ? a : b;  // NaN stays
  else return a + b;
}

template <class X>
__device__ __forceinline__ T term(X x, T order) {
  const T size = size_of(x);
  if constexpr (kOrder == 2) return size * size;
  else if constexpr (kOrder == 3) return math::pow(size, order);
  else return size;
}

template <int V>
__device__ __forceinline__ void add(T& sum, const char* at, T order) {
  using Value = choose<is_complex<FACULA_DTYPE>, FACULA_DTYPE, T>;
  Vector<FACULA_DTYPE, V> x;
  load(x, at);
#pragma unroll
  for (int v = 0; v < V; ++v) sum = combine(sum, term(convert<Value>(x.at[v]), order));
}

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  constexpr int V = FACULA_VECTOR;
  constexpr int64 kItem = int64(sizeof(FACULA_DTYPE));
  const Piece piece(arguments.list);
  const auto& set = arguments.list.set[piece.at];
  T sum = T(0);
  int64 rest = piece.first;
  if (aligned(set, 0, V * int(kItem))) {
    const int64 vectors = (piece.last - piece.first) / V;
    for (int64 i = threadIdx.x; i < vectors; i += blockDim.x) {
      add<V>(sum, set.pointer[0] + (piece.first + i * V) * kItem, arguments.order);
    }
    rest += vectors * V;
  }
#pragma unroll 1
  for (int64 i = rest + threadIdx.x; i < piece.last; i += blockDim.x) {
    add<1>(sum, set.pointer[0] + i * kItem, arguments.order);
  }
  // Whole warps, then the first warp over their results; always in the same order.
  __shared__ T warps[32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    sum = combine(sum, __shfl_down_sync(0xffffffffu, sum, step));
  }
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  if (lane == 0) warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < int(blockDim.x) / 32 ? warps[lane] : T(0);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      sum = combine(sum, __shfl_down_sync(0xffffffffu, sum, step));
    }
    if (lane == 0) arguments.parts[blockIdx.x] = sum;
  }
}

// A formula over every tensor of lists. Beside what tensor_list.cuh needs, the host defines
//   FACULA_DTYPE    of all tensors
//   FACULA_COMPUTE  the type T of the formula
//   FACULA_INPUTS   tensors that it reads, 1 to 3: a, b, c; the result is the set's first pointer
//   FACULA_NUMBER   1: the set's last pointer is a double, the number p
//   FACULA_BODY     an expression of these
//   FACULA_VECTOR   elements moved at once where addresses allow
#pragma once
#include "math.cuh"
#include "tensor_list.cuh"

namespace facula {
namespace math {

using T = FACULA_COMPUTE;
constexpr int64 kItem = int64(sizeof(FACULA_DTYPE));

// Written by formula in csrc/cuda/lists.cpp.
struct Arguments {
  TensorList list;
};

template <int V, class Set>
__device__ __forceinline__ void compute(const Set& set, int64 at, [[maybe_unused]] T p) {
  Vector<FACULA_DTYPE, V> x[FACULA_INPUTS], result;
#pragma unroll
  for (int k = 0; k < FACULA_INPUTS; ++k) load(x[k], set.pointer[1 + k] + at * kItem);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const T a = convert<T>(x[0].at[v]);
    [[maybe_unused]] const T b = convert<T>(x[FACULA_INPUTS > 1 ? 1 : 0].at[v]);
    [[maybe_unused]] const T c = convert<T>(x[FACULA_INPUTS > 2 ? 2 : 0].at[v]);
    result.at[v] = convert<FACULA_DTYPE>(T(FACULA_BODY));
  }
  store(result, set.pointer[0] + at * kItem);
}

}  // namespace math
}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::math::Arguments arguments) {
  using namespace facula;
  using namespace facula::math;
  constexpr int V = FACULA_VECTOR;
  const Piece piece(arguments.list);
  const auto& set = arguments.list.set[piece.at];
#if FACULA_NUMBER
  const T p = T(__longlong_as_double(reinterpret_cast<int64>(set.pointer[FACULA_INPUTS + 1])));
#else
  const T p = T(0);
#endif
  bool wide = true;
#pragma unroll
  for (int k = 0; k <= FACULA_INPUTS; ++k) wide = wide && aligned(set, k, V * int(kItem));
  int64 rest = piece.first;
  if (wide) {
    const int64 vectors = (piece.last - piece.first) / V;
    for (int64 i = threadIdx.x; i < vectors; i += blockDim.x) {
      compute<V>(set, piece.first + i * V, p);
    }
    rest += vectors * V;
  }
#pragma unroll 1
  for (int64 i = rest + threadIdx.x; i < piece.last; i += blockDim.x) compute<1>(set, i, p);
}

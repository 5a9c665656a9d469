// One step of an optimiser over many parameters. Beside what tensor_list.cuh needs, the host defines
//   FACULA_RULE     a struct of optim_updates.h
//   FACULA_FLAGS    the terms of its update
//   FACULA_COMPUTE  float32 or float64
//   FACULA_PARAM, FACULA_GRAD, FACULA_STATE0..2  dtypes; a state that is not used has any
//   FACULA_VECTOR   elements moved at once where addresses allow
//   FACULA_COUNTED  1: coefficients come from optim_prepare.cuh, in a row of doubles for each set,
//                   to which its last pointer points; the flags of the update stand behind them
//   FACULA_EITHER   flags that such a row may or may not have
#pragma once
#include "optim_rules.cuh"
#include "tensor_list.cuh"

namespace facula {
namespace optim {

using T = FACULA_COMPUTE;
using Rule = FACULA_RULE;
constexpr unsigned kFlags = FACULA_FLAGS;
constexpr unsigned kSlots = Rule::slots(kFlags);
constexpr int kState0 = 2, kState1 = kState0 + (kSlots & 1 ? 1 : 0),
              kState2 = kState1 + (kSlots & 2 ? 1 : 0);

struct Arguments {
#if !FACULA_COUNTED
  T k[10];
#endif
  TensorList list;
};

// The update of V neighbouring elements.
template <int V, unsigned F, class Set>
__device__ __forceinline__ void update(const Set& set, int64 i, const T* k) {
  Vector<FACULA_PARAM, V> param;
  Vector<FACULA_GRAD, V> grad;
  Vector<FACULA_STATE0, V> state0;
  Vector<FACULA_STATE1, V> state1;
  Vector<FACULA_STATE2, V> state2;
  char* const at = set.pointer[0] + i * int64(sizeof(FACULA_PARAM));
  load(param, at);
  load(grad, set.pointer[1] + i * int64(sizeof(FACULA_GRAD)));
  if constexpr (kSlots & 1) load(state0, set.pointer[kState0] + i * int64(sizeof(FACULA_STATE0)));
  if constexpr (kSlots & 2) load(state1, set.pointer[kState1] + i * int64(sizeof(FACULA_STATE1)));
  if constexpr (kSlots & 4) load(state2, set.pointer[kState2] + i * int64(sizeof(FACULA_STATE2)));
#pragma unroll
  for (int v = 0; v < V; ++v) {
    T p = convert<T>(param.at[v]), a = T(0), b = T(0), c = T(0);
    if constexpr (kSlots & 1) a = convert<T>(state0.at[v]);
    if constexpr (kSlots & 2) b = convert<T>(state1.at[v]);
    if constexpr (kSlots & 4) c = convert<T>(state2.at[v]);
    Rule::update<F>(p, convert<T>(grad.at[v]), a, b, c, k);
    param.at[v] = convert<FACULA_PARAM>(p);
    if constexpr (kSlots & 1) state0.at[v] = convert<FACULA_STATE0>(a);
    if constexpr (kSlots & 2) state1.at[v] = convert<FACULA_STATE1>(b);
    if constexpr (kSlots & 4) state2.at[v] = convert<FACULA_STATE2>(c);
  }
  store(param, at);
  if constexpr (kSlots & 1) store(state0, set.pointer[kState0] + i * int64(sizeof(FACULA_STATE0)));
  if constexpr (kSlots & 2) store(state1, set.pointer[kState1] + i * int64(sizeof(FACULA_STATE1)));
  if constexpr (kSlots & 4) store(state2, set.pointer[kState2] + i * int64(sizeof(FACULA_STATE2)));
}

template <unsigned F, class Set>
__device__ __forceinline__ void update_piece(const Piece& piece, const Set& set, const T* k) {
  constexpr int V = FACULA_VECTOR;
  bool wide = aligned(set, 0, V * int(sizeof(FACULA_PARAM))) &&
              aligned(set, 1, V * int(sizeof(FACULA_GRAD)));
  if constexpr (kSlots & 1) wide = wide && aligned(set, kState0, V * int(sizeof(FACULA_STATE0)));
  if constexpr (kSlots & 2) wide = wide && aligned(set, kState1, V * int(sizeof(FACULA_STATE1)));
  if constexpr (kSlots & 4) wide = wide && aligned(set, kState2, V * int(sizeof(FACULA_STATE2)));
  int64 rest = piece.first;
  if (wide) {
    const int64 vectors = (piece.last - piece.first) / V;
    for (int64 i = threadIdx.x; i < vectors; i += blockDim.x) {
      update<V, F>(set, piece.first + i * V, k);
    }
    rest += vectors * V;
  }
#pragma unroll 1
  for (int64 i = rest + threadIdx.x; i < piece.last; i += blockDim.x) update<1, F>(set, i, k);
}

}  // namespace optim
}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::optim::Arguments arguments) {
  using namespace facula;
  using namespace facula::optim;
  const Piece piece(arguments.list);
  const auto& set = arguments.list.set[piece.at];
  T k[10];
#if FACULA_COUNTED
  const double* row = reinterpret_cast<const double*>(set.pointer[FACULA_OPERANDS - 1]);
#pragma unroll
  for (int i = 0; i < 10; ++i) k[i] = T(row[i]);
#if FACULA_EITHER
  if (unsigned(row[10]) & FACULA_EITHER) return update_piece<kFlags | FACULA_EITHER>(piece, set, k);
#endif
#else
#pragma unroll
  for (int i = 0; i < 10; ++i) k[i] = arguments.k[i];
#endif
  update_piece<kFlags>(piece, set, k);
}

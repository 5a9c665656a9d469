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

// The first element goes, the others move up, and `last` comes behind them.
template <class Item, int V>
__device__ __forceinline__ void turn(Vector<Item, V>& elements, stored<Item> last) {
#pragma unroll
  for (int v = 1; v < V; ++v) elements.at[v - 1] = elements.at[v];
  elements.at[V - 1] = last;
}
// The element at an address.
template <class Item>
__device__ __forceinline__ stored<Item>& one(char* at) {
  return *reinterpret_cast<stored<Item>*>(at);
}

// The update of V neighbouring elements, or of one. They take turns, so that the rule is compiled
// once: divisions and roots take long. Branches do, too: one for all operands.
template <unsigned F, class Set>
__device__ __forceinline__ void update(const Set& set, int64 i, bool all, const T* k) {
  constexpr int V = FACULA_VECTOR;
  Vector<FACULA_PARAM, V> param;
  Vector<FACULA_GRAD, V> grad;
  Vector<FACULA_STATE0, V> state0;
  Vector<FACULA_STATE1, V> state1;
  Vector<FACULA_STATE2, V> state2;
  char* const at = set.pointer[0] + i * int64(sizeof(FACULA_PARAM));
  char* const at0 = set.pointer[kSlots & 1 ? kState0 : 0] + i * int64(sizeof(FACULA_STATE0));
  char* const at1 = set.pointer[kSlots & 2 ? kState1 : 0] + i * int64(sizeof(FACULA_STATE1));
  char* const at2 = set.pointer[kSlots & 4 ? kState2 : 0] + i * int64(sizeof(FACULA_STATE2));
  char* const from = set.pointer[1] + i * int64(sizeof(FACULA_GRAD));
  if (all) {
    load(param, at);
    load(grad, from);
    if constexpr (kSlots & 1) load(state0, at0);
    if constexpr (kSlots & 2) load(state1, at1);
    if constexpr (kSlots & 4) load(state2, at2);
  } else {
    param.at[0] = one<FACULA_PARAM>(at);
    grad.at[0] = one<FACULA_GRAD>(from);
    if constexpr (kSlots & 1) state0.at[0] = one<FACULA_STATE0>(at0);
    if constexpr (kSlots & 2) state1.at[0] = one<FACULA_STATE1>(at1);
    if constexpr (kSlots & 4) state2.at[0] = one<FACULA_STATE2>(at2);
  }
#pragma unroll 1
  for (int v = all ? V : 1; v > 0; --v) {
    T p = convert<T>(param.at[0]), a = T(0), b = T(0), c = T(0);
    if constexpr (kSlots & 1) a = convert<T>(state0.at[0]);
    if constexpr (kSlots & 2) b = convert<T>(state1.at[0]);
    if constexpr (kSlots & 4) c = convert<T>(state2.at[0]);
    Rule::update<F>(p, convert<T>(grad.at[0]), a, b, c, k);
    turn(param, convert<FACULA_PARAM>(p));
    turn(grad, grad.at[0]);
    if constexpr (kSlots & 1) turn(state0, convert<FACULA_STATE0>(a));
    if constexpr (kSlots & 2) turn(state1, convert<FACULA_STATE1>(b));
    if constexpr (kSlots & 4) turn(state2, convert<FACULA_STATE2>(c));
  }
  if (all) {
    store(param, at);
    if constexpr (kSlots & 1) store(state0, at0);
    if constexpr (kSlots & 2) store(state1, at1);
    if constexpr (kSlots & 4) store(state2, at2);
  } else {  // it has gone through all places
    one<FACULA_PARAM>(at) = param.at[V - 1];
    if constexpr (kSlots & 1) one<FACULA_STATE0>(at0) = state0.at[V - 1];
    if constexpr (kSlots & 2) one<FACULA_STATE1>(at1) = state1.at[V - 1];
    if constexpr (kSlots & 4) one<FACULA_STATE2>(at2) = state2.at[V - 1];
  }
}

template <unsigned F, class Set>
__device__ __forceinline__ void update_piece(const Piece& piece, const Set& set, const T* k) {
  constexpr int V = FACULA_VECTOR;
  bool wide = aligned(set, 0, V * int(sizeof(FACULA_PARAM))) &
              aligned(set, 1, V * int(sizeof(FACULA_GRAD)));
  if constexpr (kSlots & 1) wide &= aligned(set, kState0, V * int(sizeof(FACULA_STATE0)));
  if constexpr (kSlots & 2) wide &= aligned(set, kState1, V * int(sizeof(FACULA_STATE1)));
  if constexpr (kSlots & 4) wide &= aligned(set, kState2, V * int(sizeof(FACULA_STATE2)));
  // Vectors first, then the elements behind them.
  const int count = int(piece.last - piece.first), vectors = wide ? count / V : 0;
  const int left = count - vectors * V;
#pragma unroll 1
  for (int i = threadIdx.x; i < vectors + left; i += blockDim.x) {
    const bool all = i < vectors;
    update<F>(set, piece.first + (all ? i * V : i + vectors * (V - 1)), all, k);
  }
}

}  // namespace optim
}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::optim::Arguments arguments) {
  using namespace facula;
  using namespace facula::optim;
  const Piece piece(arguments.list);
  const auto& set = arguments.list.set[piece.at];
#if FACULA_COUNTED
  T k[10];
  const double* row = reinterpret_cast<const double*>(set.pointer[FACULA_OPERANDS - 1]);
#pragma unroll
  for (int i = 0; i < 10; ++i) k[i] = T(row[i]);
#if FACULA_EITHER
  if (unsigned(row[10]) & FACULA_EITHER) return update_piece<kFlags | FACULA_EITHER>(piece, set, k);
#endif
#else
  const T* const k = arguments.k;
#endif
  update_piece<kFlags>(piece, set, k);
}

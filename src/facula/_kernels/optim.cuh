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

// V neighbouring elements, or the one at `from`.
template <class Item, int V>
__device__ __forceinline__ void load_some(Vector<Item, V>& to, const char* from, bool all) {
  if (all) load(to, from);
  else to.at[0] = *reinterpret_cast<const stored<Item>*>(from);
}
// The first element goes, the others move up, and `last` comes behind them.
template <class Item, int V>
__device__ __forceinline__ void turn(Vector<Item, V>& elements, stored<Item> last) {
#pragma unroll
  for (int v = 1; v < V; ++v) elements.at[v - 1] = elements.at[v];
  elements.at[V - 1] = last;
}
template <class Item, int V>
__device__ __forceinline__ void store_some(const Vector<Item, V>& from, char* to, bool all) {
  if (all) store(from, to);
  else *reinterpret_cast<stored<Item>*>(to) = from.at[V - 1];
}

// The update of V neighbouring elements, or of one. They take turns, so that the rule is compiled
// once: divisions and roots take long.
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
  load_some(param, at, all);
  load_some(grad, set.pointer[1] + i * int64(sizeof(FACULA_GRAD)), all);
  if constexpr (kSlots & 1) load_some(state0, at0, all);
  if constexpr (kSlots & 2) load_some(state1, at1, all);
  if constexpr (kSlots & 4) load_some(state2, at2, all);
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
  store_some(param, at, all);
  if constexpr (kSlots & 1) store_some(state0, at0, all);
  if constexpr (kSlots & 2) store_some(state1, at1, all);
  if constexpr (kSlots & 4) store_some(state2, at2, all);
}

template <unsigned F, class Set>
__device__ __forceinline__ void update_piece(const Piece& piece, const Set& set, const T* k) {
  constexpr int V = FACULA_VECTOR;
  bool wide = aligned(set, 0, V * int(sizeof(FACULA_PARAM))) &&
              aligned(set, 1, V * int(sizeof(FACULA_GRAD)));
  if constexpr (kSlots & 1) wide = wide && aligned(set, kState0, V * int(sizeof(FACULA_STATE0)));
  if constexpr (kSlots & 2) wide = wide && aligned(set, kState1, V * int(sizeof(FACULA_STATE1)));
  if constexpr (kSlots & 4) wide = wide && aligned(set, kState2, V * int(sizeof(FACULA_STATE2)));
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

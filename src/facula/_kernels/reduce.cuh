// Reductions of any layout: out[o] = finalise(combine over r of map(in[o, r])). The host defines
//   FACULA_NAME, FACULA_COMPUTE, FACULA_OUT, FACULA_IN0, FACULA_PARAMS and what goes with it
//                       as in elementwise.cuh, with FACULA_INPUTS 1
//   FACULA_ACC          type of the accumulator: T, or one of the structs below
//   FACULA_INIT         body: the accumulator's value for no elements
//   FACULA_MAP          body: the accumulator for one element `a` at position `index`
//   FACULA_COMBINE      body: one accumulator for accumulators `a` and `b`
//   FACULA_FINALISE     body: the result for accumulator `a`
//   FACULA_STAGE        0: everything; 1: partial accumulators to memory; 2: from them to results
//   FACULA_OUTER        0: neighbouring threads walk along the reduction; 1: along the results
//   FACULA_VECTOR       V, neighbouring elements loaded at once, of one result or of V results
//   FACULA_KEPT, FACULA_REDUCED   dimensions to compute offsets from, 1 meaning a plain stride
//   FACULA_INDEX        uint32 or uint64
//   FACULA_UNROLL       loads in flight
#pragma once
#include "formula.cuh"

namespace facula {
namespace math {

// Accumulators beyond plain numbers.
template <class Value>
struct Indexed {  // the value found so far and where it was
  Value value;
  int64 index;
};
template <class Value>
__device__ __forceinline__ Indexed<Value> indexed(Value value, int64 index) {
  return {value, index};
}
// NaN is larger and smaller than everything; of equal values the first one wins.
template <class Value>
__device__ __forceinline__ bool goes_first(Indexed<Value> x, Indexed<Value> y, bool better) {
  const bool x_nan = x.value != x.value, y_nan = y.value != y.value;
  if (x_nan || y_nan) return x_nan && (!y_nan || x.index < y.index);
  return better || (x.value == y.value && x.index < y.index);
}
template <class Value>
__device__ __forceinline__ Indexed<Value> larger(Indexed<Value> x, Indexed<Value> y) {
  return goes_first(x, y, x.value > y.value) ? x : y;
}
template <class Value>
__device__ __forceinline__ Indexed<Value> smaller(Indexed<Value> x, Indexed<Value> y) {
  return goes_first(x, y, x.value < y.value) ? x : y;
}

template <class Value>
struct Moments {  // count, mean and sum of squared deviations (Chan, Golub and LeVeque 1979)
  Value count, mean, squares;
};
template <class Value>
__device__ __forceinline__ Moments<Value> moments(Value value) {
  return {Value(1), value, Value(0)};
}
template <class Value>
__device__ __forceinline__ Moments<Value> merge(Moments<Value> x, Moments<Value> y) {
  // Without any elements both means are 0, and so is what is added.
  const Value count = x.count + y.count;
  const Value share = count == Value(0) ? Value(0) : quotient_of_counts(y.count, count);
  const Value delta = y.mean - x.mean;
  return {count, x.mean + delta * share, x.squares + y.squares + delta * delta * x.count * share};
}

using Acc = FACULA_ACC;
constexpr int V = FACULA_VECTOR;
constexpr int kUnroll = FACULA_UNROLL;
using Index = FACULA_INDEX;
using Offset = signed_index<Index>;

struct Reduction : Parameters {
  __device__ __forceinline__ Acc init() const {
    FACULA_INIT
  }
  __device__ __forceinline__ Acc map([[maybe_unused]] T a, [[maybe_unused]] int64 index) const {
    FACULA_MAP
  }
  __device__ __forceinline__ Acc combine(Acc a, Acc b) const {
    FACULA_COMBINE
  }
  __device__ __forceinline__ auto finalise(Acc a) const {
    FACULA_FINALISE
  }
};

// Byte offset of element i of some dimensions, innermost first.
template <int N>
struct Dimensions {
  Divider<Index> size[N];
  __device__ __forceinline__ Offset offset(Index i, const Offset (&stride)[N]) const {
    Offset total = 0;
#pragma unroll
    for (int d = 0; d < N; ++d) {
      const Index quotient = d + 1 < N ? size[d].divide(i) : 0;
      total += Offset(i - quotient * size[d].divisor) * stride[d];
      i = quotient;
    }
    return total;
  }
};
template <>
struct Dimensions<1> {
  __device__ __forceinline__ int64 offset(int64 i, const int64 (&stride)[1]) const {
    return i * stride[0];
  }
};
template <int N>
using Strides = choose<N == 1, int64, Offset>;

// Mirrored by write_arguments in csrc/cuda/reduce.cpp.
struct Arguments {
  const char* in;
  char* out;
#if FACULA_PARAMS > 0
  Slot slot[FACULA_PARAMS];
#endif
  int64 kept;      // results, or groups of V results
  int64 reduced;   // loads per result
  int64 share;     // loads per result for one block; blocks along y share a result
  int64 rest;      // elements after the last whole vector
  int64 out_step;  // bytes between the V results of a group
  Strides<FACULA_KEPT> kept_in[FACULA_KEPT];
  Strides<FACULA_KEPT> kept_out[FACULA_KEPT];
  Strides<FACULA_REDUCED> reduced_in[FACULA_REDUCED];
#if FACULA_KEPT > 1
  Dimensions<FACULA_KEPT> kept_dims;
#endif
#if FACULA_REDUCED > 1
  Dimensions<FACULA_REDUCED> reduced_dims;
#endif

  __device__ __forceinline__ int64 kept_in_offset(int64 o) const {
#if FACULA_KEPT > 1
    return kept_dims.offset(Index(o), kept_in);
#else
    return o * kept_in[0];
#endif
  }
  __device__ __forceinline__ int64 kept_out_offset(int64 o) const {
#if FACULA_KEPT > 1
    return kept_dims.offset(Index(o), kept_out);
#else
    return o * kept_out[0];
#endif
  }
  __device__ __forceinline__ int64 reduced_offset(int64 r) const {
#if FACULA_REDUCED > 1
    return reduced_dims.offset(Index(r), reduced_in);
#else
    return r * reduced_in[0];
#endif
  }
};

#if FACULA_STAGE == 2
// Partial accumulators are read as they are.
struct Loaded {
  Acc value;
  __device__ __forceinline__ void read(const char* address) {
    value = *reinterpret_cast<const Acc*>(address);
  }
  __device__ __forceinline__ Acc map(const Reduction&, int, int64) const { return value; }
};
#else
struct Loaded {
  Vector<FACULA_IN0, V> vector;
  __device__ __forceinline__ void read(const char* address) { load(vector, address); }
  __device__ __forceinline__ Acc map(const Reduction& reduction, int v, int64 index) const {
    return reduction.map(convert<T>(as_value<FACULA_IN0>(vector.at[v])), index);
  }
};
#endif

// Any accumulator, word by word.
__device__ __forceinline__ Acc from_lane(Acc value, int distance) {
  union Whole {
    Acc value;
    uint32 word[(sizeof(Acc) + 3) / 4];
    __device__ Whole() {}
  } whole;
  whole.value = value;
#pragma unroll
  for (int i = 0; i < int((sizeof(Acc) + 3) / 4); ++i) {
    whole.word[i] = __shfl_xor_sync(0xffffffffu, whole.word[i], distance);
  }
  return whole.value;
}

// What a thread gathers over its part of the reduction, starting at load r.
__device__ __forceinline__ void gather(const Reduction& reduction, const Arguments& arguments,
                                       const char* in, int64 r, int64 end, int64 step,
                                       Acc (&acc)[V]) {
  constexpr int per_load = FACULA_OUTER ? 1 : V;  // positions along the reduction
#pragma unroll 1
  for (; r < end; r += kUnroll * step) {
    Loaded loaded[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (r + u * step < end) loaded[u].read(in + arguments.reduced_offset(r + u * step));
    }
    // The next loads move up instead of being addressed, so that the loop stays a loop: a reduction
    // of long formulas would take long to compile.
    const int64 last = r + kUnroll * step < end ? r + kUnroll * step : end;
#pragma unroll 1
    for (int64 at = r; at < last; at += step) {
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const int64 index = at * per_load + (FACULA_OUTER ? 0 : v);
        acc[v] = reduction.combine(acc[v], loaded[0].map(reduction, v, index));
      }
#pragma unroll
      for (int u = 1; u < kUnroll; ++u) loaded[u - 1] = loaded[u];
    }
  }
}

// Result number `o` of the group, or its partial accumulator.
__device__ __forceinline__ void deliver(const Reduction& reduction, const Arguments& arguments,
                                        int64 o, int v, Acc acc) {
#if FACULA_STAGE == 1
  constexpr int group = FACULA_OUTER ? V : 1;
  reinterpret_cast<Acc*>(arguments.out)[(int64(blockIdx.y) * arguments.kept + o) * group + v] = acc;
#else
  Vector<FACULA_OUT, 1> result;
  result.at[0] = convert<FACULA_OUT>(reduction.finalise(acc));
  store(result, arguments.out + arguments.kept_out_offset(o) + v * arguments.out_step);
#endif
}

}  // namespace math
}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::math::Arguments arguments) {
  using namespace facula;
  using namespace facula::math;
  const Reduction reduction FACULA_FORMULA_FROM(arguments);
  const int64 begin = blockIdx.y * arguments.share;
  const int64 end = begin + arguments.share < arguments.reduced ? begin + arguments.share
                                                                : arguments.reduced;
  Acc acc[V];
#pragma unroll
  for (int v = 0; v < V; ++v) acc[v] = reduction.init();

#if FACULA_OUTER
  // x runs over results, y over the reduction.
  const int64 o = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (o < arguments.kept) {
    gather(reduction, arguments, arguments.in + arguments.kept_in_offset(o), begin + threadIdx.y,
           end, blockDim.y, acc);
  }
  alignas(16) __shared__ unsigned char storage[256 * sizeof(Acc)];
  Acc* shared = reinterpret_cast<Acc*>(storage);
  const int me = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int v = 0; v < V; ++v) {
    Acc total = acc[0];
#pragma unroll
    for (int i = 1; i < V; ++i) {  // a register array cannot be indexed by a variable
      if (i == v) total = acc[i];
    }
    __syncthreads();
    shared[me] = total;
#pragma unroll 1
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.y < half) {
        total = reduction.combine(total, shared[me + half * blockDim.x]);
        shared[me] = total;
      }
    }
    if (threadIdx.y == 0 && o < arguments.kept) deliver(reduction, arguments, o, v, total);
  }
#else
  // x runs over the reduction, y over results.
  const int64 o = int64(blockIdx.x) * blockDim.y + threadIdx.y;
  const int lanes = blockDim.x;
  if (o < arguments.kept) {
    const char* in = arguments.in + arguments.kept_in_offset(o);
    gather(reduction, arguments, in, begin + threadIdx.x, end, lanes, acc);
#if FACULA_STAGE != 2 && FACULA_VECTOR > 1
    if (blockIdx.y == gridDim.y - 1) {
#pragma unroll 1
      for (int64 i = threadIdx.x; i < arguments.rest; i += lanes) {
        const int64 index = arguments.reduced * V + i;
        const stored<FACULA_IN0> element = reinterpret_cast<const stored<FACULA_IN0>*>(in)[index];
        acc[0] = reduction.combine(
            acc[0], reduction.map(convert<T>(as_value<FACULA_IN0>(element)), index));
      }
    }
#endif
  }
  Acc total = acc[0];
#if FACULA_VECTOR > 1
  // Moving up, like the loads: the rule is compiled once for all of them.
#pragma unroll 1
  for (int v = 1; v < V; ++v) {
    total = reduction.combine(total, acc[1]);
#pragma unroll
    for (int i = 2; i < V; ++i) acc[i - 1] = acc[i];
  }
#endif
  // Within warps, then, where one result fills the block, across them.
#pragma unroll 1
  for (int across = 0; across <= int(lanes > 32); ++across) {
    if (across) {
      alignas(16) __shared__ unsigned char storage[32 * sizeof(Acc)];
      Acc* shared = reinterpret_cast<Acc*>(storage);
      if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = total;
      __syncthreads();
      if (threadIdx.x >= 32) return;
      total = threadIdx.x < lanes / 32 ? shared[threadIdx.x] : reduction.init();
    }
#pragma unroll 1
    for (int distance = (lanes < 32 ? lanes : 32) / 2; distance > 0; distance /= 2) {
      total = reduction.combine(total, from_lane(total, distance));
    }
  }
  if (threadIdx.x == 0 && o < arguments.kept) deliver(reduction, arguments, o, 0, total);
#endif
}

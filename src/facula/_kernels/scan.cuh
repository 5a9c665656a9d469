// Running totals along lines, combined in an order that depends on the shape alone. The host defines
// FACULA_NAME, what walk.cuh wants, and
//   FACULA_IN, FACULA_OUT   dtypes
//   FACULA_COMPUTE          type T of the totals
//   FACULA_SCAN             0 sum, 1 product, 2 log of the sum of exponentials, 3 maximum, 4 minimum
//                           (which write positions, too; NaN wins, and of equal ones the last)
//   FACULA_LANES            threads per line: 1, 32, or 256
//   FACULA_STAGE            0: whole lines; 1: totals of chunks of lines; 2: chunks, after the totals
//                           of those before
//   FACULA_VECTOR           1: four neighbouring elements can be read and written at once
// Blocks have 256 threads.
#pragma once
#include "math.cuh"
#include "walk.cuh"

namespace facula {
namespace math {

using T = FACULA_COMPUTE;
constexpr int kThreads = 256;
constexpr int kLanes = FACULA_LANES;
constexpr int kItems = 4;  // neighbours that a thread adds up at once
constexpr int kSteps = FACULA_SCAN < 2 ? 5 : 1;  // of a warp's sum written out: long ones are not

#if FACULA_SCAN >= 3
struct Acc {
  T value;
  int64 index;
};
__device__ __forceinline__ Acc nothing() {
  return {T(0), -1};
}
__device__ __forceinline__ Acc of_element(T value, int64 index) { return {value, index}; }
__device__ __forceinline__ Acc combine(const Acc& a, const Acc& b) {
  const bool better = FACULA_SCAN == 3 ? b.value >= a.value : b.value <= a.value;
  const bool wins = a.index < 0 || b.value != b.value || (a.value == a.value && better);
  return b.index >= 0 && wins ? b : a;
}
#else
using Acc = T;
__device__ __forceinline__ Acc nothing() {
#if FACULA_SCAN == 2
  return lowest_value<T>();
#else
  return T(FACULA_SCAN);
#endif
}
__device__ __forceinline__ Acc of_element(T value, int64) { return value; }

// log(e^a + e^b), from the one with the larger real part. Not inlined: it stands in many places, and
// is long to compile.
template <class R>
__device__ __noinline__ R log_add(R a, R b) {
  const R low = a < b ? a : b, high = a < b ? b : a;
  if (low != low || high != high) return a + b;
  if (low == high && isinf(low)) return low;  // inf - inf would be NaN
  return high + log1p(exp(low - high));
}
template <class R>
__device__ __noinline__ Complex<R> log_add(Complex<R> a, Complex<R> b) {
  const Complex<R> high = a.re < b.re ? b : a, low = a.re < b.re ? a : b;
  if (isnan(a) || isnan(b)) return {a.re + b.re + a.im + b.im, a.re + b.re + a.im + b.im};
  if (low.re == -highest_value<R>()) return high;  // e^low is 0, whatever its angle
  if (isinf(low.re)) return log(exp(low) + exp(high));
  const Complex<R> z = exp(low - high);
  return high + Complex<R>(R(0.5) * log1p(R(2) * z.re + z.re * z.re + z.im * z.im),
                           real_atan2(z.im, R(1) + z.re));
}

__device__ __forceinline__ Acc combine(const Acc& a, const Acc& b) {
#if FACULA_SCAN == 0
  return T(a + b);
#elif FACULA_SCAN == 1
  return T(a * b);
#else
  return log_add(a, b);
#endif
}
#endif

// Written by scan in csrc/cuda/scan.cpp.
struct Arguments {
  int64 lines, n;
  int64 chunk, chunks;  // elements of a chunk; chunks of a line
  const char* in;
  char* out;
  char* indices;
  Acc* totals;  // [line][chunk]
  int64 in_step, out_step, indices_step;  // bytes
  Walk<3> walk;                           // of the lines: in, out, indices
};

__device__ __forceinline__ Acc from_below(const Acc& value, int distance) {
  union Whole {
    Acc value;
    uint32 word[(sizeof(Acc) + 3) / 4];
    __device__ Whole() {}
  } whole;
  whole.value = value;
#pragma unroll
  for (int i = 0; i < int((sizeof(Acc) + 3) / 4); ++i) {
    whole.word[i] = __shfl_up_sync(0xffffffffu, whole.word[i], distance);
  }
  return whole.value;
}

// What the threads of the line before this one have together; `total` is that of all of them.
__device__ __forceinline__ Acc before_me(const Acc& mine, Acc* shared, Acc& total) {
  const int lane = threadIdx.x % 32;
  Acc sum = mine;
#pragma unroll kSteps
  for (int distance = 1; distance < 32; distance *= 2) {
    const Acc other = from_below(sum, distance);
    if (lane >= distance) sum = combine(other, sum);
  }
  Acc before = from_below(sum, 1);
  if (lane == 0) before = nothing();
#if FACULA_LANES > 32
  const int warp = threadIdx.x / 32;
  if (lane == 31) shared[warp] = sum;
  __syncthreads();
  Acc warps = nothing();
  total = nothing();
#pragma unroll
  for (int w = 0; w < kLanes / 32; ++w) {
    if (w == warp) warps = total;
    total = w == 0 ? shared[0] : combine(total, shared[w]);
  }
  __syncthreads();  // before `shared` is written again
  if (warp == 0) return before;
  return lane == 0 ? warps : combine(warps, before);
#else
  union Whole {
    Acc value;
    uint32 word[(sizeof(Acc) + 3) / 4];
    __device__ Whole() {}
  } whole;
  whole.value = sum;
#pragma unroll
  for (int i = 0; i < int((sizeof(Acc) + 3) / 4); ++i) {
    whole.word[i] = __shfl_sync(0xffffffffu, whole.word[i], 31);
  }
  total = whole.value;
  return before;
#endif
}

// One element of the line.
__device__ __forceinline__ Acc read(const Arguments& arguments, const char* in, int64 i) {
  const auto element =
      *reinterpret_cast<const stored<FACULA_IN>*>(in + i * arguments.in_step);
  return of_element(convert<T>(FACULA_IN(element)), i);
}
__device__ __forceinline__ void write(const Arguments& arguments, char* out, char* indices, int64 i,
                                      const Acc& total) {
#if FACULA_SCAN >= 3
  *reinterpret_cast<stored<FACULA_OUT>*>(out + i * arguments.out_step) =
      convert<FACULA_OUT>(total.value);
  *reinterpret_cast<int64*>(indices + i * arguments.indices_step) = total.index;
#else
  *reinterpret_cast<stored<FACULA_OUT>*>(out + i * arguments.out_step) =
      convert<FACULA_OUT>(total);
#endif
}

}  // namespace math
}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::math::Arguments arguments) {
  using namespace facula;
  using namespace facula::math;
  [[maybe_unused]] const int lane = threadIdx.x % kLanes;
  // Blocks of stages 1 and 2 are chunks of one line after the other.
  const int64 line = FACULA_STAGE ? int64(blockIdx.x / uint32(arguments.chunks))
                                  : int64(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
  const bool exists = line < arguments.lines;
  int64 at[3] = {0, 0, 0};
  if (exists) arguments.walk.find(line, at);
  const char* in = arguments.in + at[0];
  [[maybe_unused]] char* out = arguments.out + at[1];
  [[maybe_unused]] char* indices = arguments.indices + at[2];

#if FACULA_LANES == 1
  if (!exists) return;
  Acc total = nothing();
#pragma unroll 4
  for (int64 i = 0; i < arguments.n; ++i) {
    const Acc next = read(arguments, in, i);
    total = i == 0 ? next : combine(total, next);
    write(arguments, out, indices, i, total);
  }
#else
  alignas(16) __shared__ unsigned char storage[(kThreads / 32) * sizeof(Acc)];
  Acc* shared = reinterpret_cast<Acc*>(storage);
  int64 begin = 0, end = arguments.n;
  bool any = false;  // whether something stands before
  Acc carried = nothing();
#if FACULA_STAGE
  const int64 chunk = blockIdx.x % uint32(arguments.chunks);
  begin = chunk * arguments.chunk;
  end = begin + arguments.chunk < end ? begin + arguments.chunk : end;
#endif
#if FACULA_STAGE == 2
  if (chunk > 0) {
    // The totals of the chunks before, in their order: neighbours for each thread.
    const Acc* totals = arguments.totals + line * arguments.chunks;
    const int64 share = (chunk + kThreads - 1) / kThreads;
    Acc mine = nothing();
#pragma unroll 1
    for (int64 i = lane * share; i < (lane + 1) * share && i < chunk; ++i) {
      mine = i == lane * share ? totals[i] : combine(mine, totals[i]);
    }
    before_me(mine, shared, carried);
    any = true;
  }
#endif
#pragma unroll 1
  for (int64 tile = begin; tile < end; tile += kLanes * kItems) {
    const int64 first = tile + lane * kItems;
    Acc item[kItems];
#if FACULA_VECTOR
    if (exists && first + kItems <= end) {
      Vector<FACULA_IN, kItems> vector;
      load(vector, in + first * int64(sizeof(FACULA_IN)));
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        item[j] = of_element(convert<T>(FACULA_IN(vector.at[j])), first + j);
      }
    } else
#endif
    {
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        item[j] = exists && first + j < end ? read(arguments, in, first + j) : nothing();
      }
    }
#pragma unroll
    for (int j = 1; j < kItems; ++j) item[j] = combine(item[j - 1], item[j]);
    Acc total;
    Acc before = before_me(item[kItems - 1], shared, total);
    bool behind = lane > 0;
    if (any) {
      before = behind ? combine(carried, before) : carried;
      behind = true;
    }
    carried = any ? combine(carried, total) : total;
    any = true;
#if FACULA_STAGE != 1
    if (exists) {
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        if (first + j >= end) break;
        write(arguments, out, indices, first + j, behind ? combine(before, item[j]) : item[j]);
      }
    }
#endif
  }
#if FACULA_STAGE == 1
  if (lane == 0) arguments.totals[line * arguments.chunks + chunk] = carried;
#endif
#endif
}

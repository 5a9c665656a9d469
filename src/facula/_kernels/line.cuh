// Lines of a dense (outer, n, inner) tensor, n elements each, with a group of threads working on
// every line: neighbouring threads walk along it where inner is 1 (rows), else across lines
// (columns). The host (csrc/cuda/line.h) defines
//   FACULA_COLUMNS  0: rows; 1: columns
//   FACULA_LANES    threads per line, a power of two
//   FACULA_BESIDE   lines per block; 1 for rows with more than 32 lanes
//   FACULA_VECTOR   V, neighbouring elements loaded at once; 1 for columns
//   FACULA_ITEMS    loads that a thread holds in registers, enough for the line; 0: it reads again
//   FACULA_COMPUTE  the type T of all arithmetic, float or double
#pragma once
#include "division.cuh"
#include "roots.cuh"

namespace facula {

using T = FACULA_COMPUTE;
constexpr int V = FACULA_VECTOR;
constexpr int kItems = FACULA_ITEMS;
constexpr int kLanes = FACULA_LANES;
constexpr int kBeside = FACULA_BESIDE;
constexpr bool kColumns = FACULA_COLUMNS;
constexpr int kAhead = 4;  // loads in flight where lines are read again

__device__ __forceinline__ float exp_of(float x) { return ::expf(x); }
__device__ __forceinline__ double exp_of(double x) { return ::exp(x); }
__device__ __forceinline__ float log_of(float x) { return ::logf(x); }
__device__ __forceinline__ double log_of(double x) { return ::log(x); }
__device__ __forceinline__ float sqrt_of(float x) { return exact_root(x); }
__device__ __forceinline__ double sqrt_of(double x) { return ::sqrt(x); }
// 1 / x for the sums and roots that lines have: see exact_reciprocal.
__device__ __forceinline__ float reciprocal(float x) { return exact_reciprocal(x); }
__device__ __forceinline__ double reciprocal(double x) { return 1.0 / x; }
__device__ __forceinline__ T minus_infinity() { return T(__int_as_float(int(0xff800000u))); }

struct Larger {
  // NaN need not be kept: its exponential makes the whole line NaN.
  __device__ __forceinline__ T operator()(T a, T b) const { return a > b ? a : b; }
};
struct Sum {
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};

// Written by LinePlan::write.
struct LineShape {
  int64 lines, n, inner;
  double inverse;  // 1 / n, with n rounded to float32
};

// x / n. The quotient of floats is that of a division (Markstein, 1990), whose subroutine for
// numbers near the ends of the range would take long to compile; only where x is below 2^-100 can the
// last bit be another one.
__device__ __forceinline__ float over_length(const LineShape& shape, float x) {
  const float inverse = float(shape.inverse), quotient = x * inverse;
  const float better = __fmaf_rn(__fmaf_rn(-float(shape.n), quotient, x), inverse, quotient);
  return better == better ? better : quotient;  // infinities stay
}
__device__ __forceinline__ double over_length(const LineShape& shape, double x) {
  return x / double(shape.n);
}

struct Line {
  int64 number, base, stride, loads;
  int lane;
  bool exists;

  __device__ __forceinline__ explicit Line(const LineShape& shape) {
    lane = kColumns ? threadIdx.y : threadIdx.x;
    number = int64(blockIdx.x) * kBeside + (kColumns ? threadIdx.x : threadIdx.y);
    exists = number < shape.lines;
    stride = kColumns ? shape.inner : 1;
    base = number * shape.n;
    if constexpr (kColumns) {
      const Division place = quotient_and_rest(number, shape.inner);
      base = place.quotient * shape.inner * shape.n + place.rest;
    }
    loads = exists ? int64(uint64(shape.n) / V) : 0;
  }

  // The element's place in the tensor.
  __device__ __forceinline__ int64 at(int64 element) const { return base + element * stride; }

  // Calls f(slot, load) for the thread's loads; slots count them where they are held. Where lines
  // are read again, the next loads of the operands move up instead of being addressed, so that the
  // loop stays a loop and f is compiled once.
  template <class F, class... Operands>
  __device__ __forceinline__ void over(F f, Operands&... operands) const {
    if constexpr (kItems > 0) {
#pragma unroll
      for (int slot = 0; slot < kItems; ++slot) {
        const int load = lane + slot * kLanes;
        if (load < int(loads)) f(slot, load);
      }
    } else {
#pragma unroll 1
      for (int64 first = lane; first < loads; first += kAhead * kLanes) {
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          const int64 load = first + u * kLanes;
          if (load < loads) (operands.read(*this, u, load), ...);
        }
        const int64 last = first + kAhead * kLanes, end = last < loads ? last : loads;
#pragma unroll 1
        for (int64 load = first; load < end; load += kLanes) {
          f(0, load);
          (operands.move_up(), ...);
        }
      }
    }
  }
  // The same for the last time: what is held moves up, too, if it is much, and is gone afterwards.
  template <class F, class... Operands>
  __device__ __forceinline__ void finish(F f, Operands&... operands) const {
    if constexpr (kItems > 2) {
#pragma unroll 1
      for (int64 load = lane; load < loads; load += kLanes) {
        f(0, load);
        (operands.move_up(), ...);
      }
    } else {
      over(f, operands...);
    }
  }
  // N times along the line, with f(pass, slot, load) for the loads and after(pass) between passes.
  // Where lines are read again, all passes are one loop, so that reading is compiled once.
  template <int N, class F, class After, class... Operands>
  __device__ __forceinline__ void passes(F f, After after, Operands&... operands) const {
    constexpr int kLoops = kItems > 0 ? N : 1;
#pragma unroll
    for (int pass = 0; pass + 1 < kLoops; ++pass) {
      over([&](int slot, int64 load) { f(pass, slot, load); });
      after(pass);
    }
    if constexpr (kItems > 0) {
      finish([&](int slot, int64 load) { f(N - 1, slot, load); }, operands...);
    } else {
#pragma unroll 1
      for (int pass = 0; pass < N; ++pass) {
        over([&](int slot, int64 load) { f(pass, slot, load); }, operands...);
        if (pass + 1 < N) after(pass);
      }
    }
  }
};

// The elements of one operand along the line, as T. Where `missing` is given, places behind the
// line's end hold it, so that what is held can be combined without a branch for each load: branches
// take long to compile.
template <class Item>
struct Held {
  const char* data;
  T values[kItems > 0 ? kItems * V : 1];
  Vector<Item, V> next[kItems > 0 ? 1 : kAhead];

  __device__ __forceinline__ Held(const Line& line, const char* from, T missing) : data(from) {
#pragma unroll
    for (int i = 0; i < kItems * V; ++i) values[i] = missing;
    hold(line);
  }
  __device__ __forceinline__ Held(const Line& line, const char* from) : data(from) { hold(line); }
  __device__ __forceinline__ void hold(const Line& line) {
    if constexpr (kItems > 0) {
      line.over([&](int slot, int64 load) {
        Vector<Item, V> vector;
        fetch(line, load, vector);
        convert_all(vector, values + slot * V);
      });
    }
  }
  __device__ __forceinline__ void fetch(const Line& line, int64 load, Vector<Item, V>& to) const {
    facula::load(to, data + line.at(load * V) * int64(sizeof(Item)));
  }
  __device__ __forceinline__ void read(const Line& line, int ahead, int64 load) {
    fetch(line, load, next[ahead]);
  }
  __device__ __forceinline__ void move_up() {
    if constexpr (kItems > 0) {
#pragma unroll
      for (int i = V; i < kItems * V; ++i) values[i - V] = values[i];
    } else {
#pragma unroll
      for (int u = 1; u < kAhead; ++u) next[u - 1] = next[u];
    }
  }
  // The V elements that line.over is at.
  __device__ __forceinline__ void get(int slot, T (&to)[V]) const {
    if constexpr (kItems > 0) {
#pragma unroll
      for (int v = 0; v < V; ++v) to[v] = values[slot * V + v];
    } else {
      convert_all(next[0], to);
    }
  }
  // Puts f(value) in the place of every value that is held.
  template <class F>
  __device__ __forceinline__ void replace(F f) {
    static_assert(kItems > 0, "values are held");
#pragma unroll
    for (int i = 0; i < kItems * V; ++i) values[i] = f(values[i]);
  }
  // Calls f(value, element) for all that the thread has of the line.
  template <class F>
  __device__ __forceinline__ void each(const Line& line, F f) {
    auto of_load = [&](int slot, int64 load) {
      T x[V];
      get(slot, x);
#pragma unroll
      for (int v = 0; v < V; ++v) f(x[v], load * V + v);
    };
    line.over(of_load, *this);
  }
  // The sum of f(value) over all that the thread has of the line.
  template <class F>
  __device__ __forceinline__ T sum_of(const Line& line, F f) {
    T sum = T(0);
    if constexpr (kItems > 0) {
#pragma unroll
      for (int slot = 0; slot < kItems; ++slot) {
        T with = sum;  // chosen afterwards: a branch would take longer to compile
#pragma unroll
        for (int v = 0; v < V; ++v) with += f(values[slot * V + v]);
        sum = line.lane + slot * kLanes < int(line.loads) ? with : sum;
      }
    } else {
      each(line, [&](T value, int64) { sum += f(value); });
    }
    return sum;
  }
  // Calls f(value), for missing ones too.
  template <class F>
  __device__ __forceinline__ void each_or_missing(const Line& line, F f) {
    if constexpr (kItems > 0) {
#pragma unroll
      for (int i = 0; i < kItems * V; ++i) f(values[i]);
    } else {
      each(line, [&](T value, int64) { f(value); });
    }
  }
};

template <class Item>
__device__ __forceinline__ void put(const Line& line, int64 load, const T (&from)[V], char* to) {
  Vector<Item, V> vector;
#pragma unroll
  for (int v = 0; v < V; ++v) vector.at[v] = convert<Item>(from[v]);
  store(vector, to + line.at(load * V) * int64(sizeof(Item)));
}

// The values of all threads of a line combined, for all of them. Every thread of the block calls.
template <class Combine>
__device__ __forceinline__ T across(T value, Combine combine) {
  if constexpr (kColumns) {
    if constexpr (kLanes > 1) {
      __shared__ T parts[kLanes * kBeside];
      __syncthreads();  // an earlier call's parts have been read
      parts[threadIdx.y * kBeside + threadIdx.x] = value;
      __syncthreads();
      value = parts[threadIdx.x];
#pragma unroll 4
      for (int i = 1; i < kLanes; ++i) value = combine(value, parts[i * kBeside + threadIdx.x]);
    }
  } else {
#pragma unroll
    for (int distance = (kLanes < 32 ? kLanes : 32) / 2; distance > 0; distance /= 2) {
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    if constexpr (kLanes > 32) {
      __shared__ T parts[kLanes > 32 ? kLanes / 32 : 1];
      __syncthreads();
      if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
      __syncthreads();
      value = parts[0];
      constexpr int kTogether = kLanes > 256 ? 4 : 8;
#pragma unroll kTogether
      for (int i = 1; i < kLanes / 32; ++i) value = combine(value, parts[i]);
    }
  }
  return value;
}

// The largest value of a line and the sum of e^(x - largest), in one reading of it. What is missing
// of `x` is minus infinity.
struct ExponentialSum {
  T largest = minus_infinity(), sum = T(0);

  template <class Item>
  __device__ __forceinline__ void read(const Line& line, Held<Item>& x) {
    if constexpr (kItems > 0) {
      x.each_or_missing(line, [&](T value) { largest = Larger()(largest, value); });
      largest = across(largest, Larger());
      x.each_or_missing(line, [&](T value) { sum += exp_of(value - largest); });
      sum = across(sum, Sum());
    } else {
      auto of_load = [&](int slot, int64) {
        T value[V];
        x.get(slot, value);
        add(value);
      };
      line.over(of_load, x);
      gather();
    }
  }
  // The next elements that the thread has of the line.
  __device__ __forceinline__ void add(const T (&value)[V]) {
    T top = largest;
#pragma unroll
    for (int v = 0; v < V; ++v) top = Larger()(top, value[v]);
    const T from = top == minus_infinity() ? T(0) : top;  // inf - inf would be NaN
    if (top != largest) sum *= exp_of(largest - from);
#pragma unroll
    for (int v = 0; v < V; ++v) sum += exp_of(value[v] - from);
    largest = top;
  }
  // What all threads of the line have added.
  __device__ __forceinline__ void gather() {
    const T top = across(largest, Larger());
    sum = across(sum == T(0) ? T(0) : sum * exp_of(largest - top), Sum());
    largest = top;
  }
};

}  // namespace facula

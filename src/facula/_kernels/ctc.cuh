// Connectionist temporal classification (csrc/kernels/ctc.cpp). The host defines FACULA_NAME and
//   FACULA_COMPUTE  the type T of everything
//   FACULA_KIND     0: the loss and log probabilities of being in a state after a step, a block for
//                      each sequence
//                   1: log probabilities of what follows a state from a step on, likewise
//                   2: the gradient, a block for each step of each sequence
#pragma once
#include "fault.cuh"

namespace facula {

using T = FACULA_COMPUTE;

// Written by csrc/cuda/sampling.cpp.
struct Arguments {
  FaultSite site;
  const T* log_probs;  // (steps, batch, classes)
  const int64* labels;
  const int64* input_lengths;
  const int64* target_lengths;
  const int64* offsets;
  T* loss;
  T* alpha;  // (batch, steps, states)
  T* beta;   // likewise
  const T* grad;
  T* out;
  int64 steps, batch, classes, blank, states;
  int32 zero_infinity;
};

__device__ __forceinline__ float exp_of(float x) { return ::expf(x); }
__device__ __forceinline__ double exp_of(double x) { return ::exp(x); }
__device__ __forceinline__ float log1p_of(float x) { return ::log1pf(x); }
__device__ __forceinline__ double log1p_of(double x) { return ::log1p(x); }
__device__ __forceinline__ T never() { return T(__int_as_float(int(0xff800000u))); }
// Called from several places, and long to compile.
__device__ __noinline__ T log_add(T a, T b) {
  const T larger = a > b ? a : b, distance = a > b ? a - b : b - a;
  return larger == never() ? larger : larger + log1p_of(exp_of(-distance));
}

struct Sequence {
  int64 n, steps, states;
  const int64* labels;

  __device__ __forceinline__ Sequence(const Arguments& a, int64 number) : n(number) {
    steps = a.input_lengths[n];
    states = 2 * a.target_lengths[n] + 1;
    labels = a.labels + a.offsets[n];
  }
  // The label of a state: blanks are the even ones. Bad ones, noted before, count as blank.
  __device__ __forceinline__ int64 label(const Arguments& a, int64 state) const {
    if (state % 2 == 0) return a.blank;
    const int64 value = labels[state / 2];
    return uint64(value) < uint64(a.classes) ? value : a.blank;
  }
  // Whether the blank between two labels may be left out.
  __device__ __forceinline__ bool skips(const Arguments& a, int64 state) const {
    return state % 2 == 1 && state >= 2 && label(a, state) != label(a, state - 2);
  }
  __device__ __forceinline__ T log_prob(const Arguments& a, int64 t, int64 state) const {
    return a.log_probs[(t * a.batch + n) * a.classes + label(a, state)];
  }
};

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
#if FACULA_KIND == 0
  const Sequence q(a, blockIdx.x);
  T* alpha = a.alpha + q.n * a.steps * a.states;
#pragma unroll 1
  for (int64 s = threadIdx.x; s < a.states; s += blockDim.x) {
    if (s % 2 == 1 && s < q.states) {
      int64 label = q.labels[s / 2];
      good_index(a.site, label, q.labels - a.labels + s / 2);
    }
    if (a.steps > 0) {
      alpha[s] = s < 2 && s < q.states && q.steps > 0 ? q.log_prob(a, 0, s) : never();
    }
  }
#pragma unroll 1
  for (int64 t = 1; t < a.steps; ++t) {
    __syncthreads();  // also makes the step before visible to the block
    const T* before = alpha + (t - 1) * a.states;
#pragma unroll 1
    for (int64 s = threadIdx.x; s < a.states; s += blockDim.x) {
      T sum = never();
      if (t < q.steps && s < q.states) {
        sum = before[s];
        if (s > 0) sum = log_add(sum, before[s - 1]);
        if (q.skips(a, s)) sum = log_add(sum, before[s - 2]);
        sum += q.log_prob(a, t, s);
      }
      alpha[t * a.states + s] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (q.steps == 0) {
    a.loss[q.n] = q.states == 1 ? T(0) : -never();
    return;
  }
  const T* last = alpha + (q.steps - 1) * a.states;
  a.loss[q.n] = -(q.states > 1 ? log_add(last[q.states - 1], last[q.states - 2]) : last[0]);
#elif FACULA_KIND == 1
  const Sequence q(a, blockIdx.x);
  T* beta = a.beta + q.n * a.steps * a.states;
#pragma unroll 1
  for (int64 t = q.steps - 1; t >= 0; --t) {
    const T* next = beta + (t + 1) * a.states;
#pragma unroll 1
    for (int64 s = threadIdx.x; s < q.states; s += blockDim.x) {
      T sum;
      if (t == q.steps - 1) {
        sum = s >= q.states - 2 ? T(0) : never();
      } else {
        sum = next[s];
        if (s + 1 < q.states) sum = log_add(sum, next[s + 1]);
        if (s + 2 < q.states && q.skips(a, s + 2)) sum = log_add(sum, next[s + 2]);
      }
      beta[t * a.states + s] = sum + q.log_prob(a, t, s);
    }
    __syncthreads();
  }
#else
  const uint32 batch = uint32(a.batch), step = blockIdx.x / batch;
  const int64 t = step;
  const Sequence q(a, blockIdx.x - step * batch);
  const T loss = a.loss[q.n], grad = a.grad[q.n];
  const int64 row = (t * a.batch + q.n) * a.classes;
  const bool counts = t < q.steps && !(a.zero_infinity && loss == -never());
  const T* alpha = a.alpha + (q.n * a.steps + t) * a.states;
  const T* beta = a.beta + (q.n * a.steps + t) * a.states;
#pragma unroll 1
  for (int64 c = threadIdx.x; c < a.classes; c += blockDim.x) {
    if (!counts) {
      a.out[row + c] = T(0);
      continue;
    }
    // All states with this label, in order.
    T part = never();
    if (c == a.blank) {
#pragma unroll 1
      for (int64 s = 0; s < q.states; ++s) {
        if (q.label(a, s) == c) part = log_add(part, alpha[s] + beta[s]);
      }
    } else {
#pragma unroll 1
      for (int64 s = 1; s < q.states; s += 2) {
        if (q.labels[s / 2] == c) part = log_add(part, alpha[s] + beta[s]);
      }
    }
    const T lp = a.log_probs[row + c];
    a.out[row + c] = (exp_of(lp) - exp_of(part + loss - lp)) * grad;
  }
#endif
}

// out[i] = body(x), x drawn for every element. The host defines FACULA_NAME, what walk.cuh wants and
//   FACULA_OUT     dtype of the result
//   FACULA_DRAW    what x is: 0 a float on (0, 1], 1 a double on (0, 1], 2 a normal float, 3 a normal
//                  double, 4 a word, 5 two words as one
//   FACULA_BODY    function body over x, p0, p1 (doubles), base and range
//   FACULA_DENSE   1: the elements are neighbours in memory, and no walk is needed
// A grid of fixed size strides over the elements: which numbers an element gets depends on the number
// of multiprocessors, as in PyTorch, whose numbers these are on the same device.
#pragma once
#include "math.cuh"
#include "philox.cuh"
#include "walk.cuh"

namespace facula {
namespace math {

constexpr int kDraws = FACULA_DRAW == 1 || FACULA_DRAW == 3 || FACULA_DRAW == 5 ? 2 : 4;
using Number = choose<FACULA_DRAW == 0 || FACULA_DRAW == 2, float,
                      choose<FACULA_DRAW == 1 || FACULA_DRAW == 3, double,
                             choose<FACULA_DRAW == 4, uint32, uint64>>>;

struct Numbers {
  Number at[kDraws];
};

// Two normals from two uniforms (Box and Muller, 1958).
__device__ __forceinline__ void normal_pair(uint32 x, uint32 y, float& first, float& second) {
  const float radius = ::sqrtf(-2.0f * ::logf(unit_float(x)));
  constexpr float turn = 2.3283064e-10f * 6.2831855f;
  const float angle = float(y) * turn + turn / 2.0f;
  __sincosf(angle, &first, &second);
  first *= radius;
  second *= radius;
}
__device__ __forceinline__ void normal_pair(const RandomWords& w, double& first, double& second) {
  const double radius = ::sqrt(-2.0 * ::log(unit_double(w.word[0], w.word[1])));
  const uint64 bits = uint64(w.word[2]) ^ (uint64(w.word[3]) << 21);
  ::sincospi(double(bits) * 2.2204460492503131e-16 + 1.1102230246251565e-16, &first, &second);
  first *= radius;
  second *= radius;
}

__device__ __forceinline__ Numbers draw(const RandomWords& w) {
  Numbers n;
#if FACULA_DRAW == 0
#pragma unroll
  for (int k = 0; k < 4; ++k) n.at[k] = unit_float(w.word[k]);
#elif FACULA_DRAW == 1
  n.at[0] = unit_double(w.word[0], w.word[1]);
  n.at[1] = unit_double(w.word[2], w.word[3]);
#elif FACULA_DRAW == 2
  normal_pair(w.word[0], w.word[1], n.at[0], n.at[1]);
  normal_pair(w.word[2], w.word[3], n.at[2], n.at[3]);
#elif FACULA_DRAW == 3
  normal_pair(w, n.at[0], n.at[1]);
#elif FACULA_DRAW == 4
#pragma unroll
  for (int k = 0; k < 4; ++k) n.at[k] = w.word[k];
#else
  n.at[0] = uint64(w.word[0]) << 32 | w.word[1];
  n.at[1] = uint64(w.word[2]) << 32 | w.word[3];
#endif
  return n;
}

// Written by draw in csrc/cuda/random.cpp.
struct Arguments {
  RandomPlace place;
  int64 count;
  char* out;
  double p0, p1;
  int64 base;
  uint64 range;
#if !FACULA_DENSE
  Walk<1> walk;
#endif
};

// The type in which samples are computed before they are stored.
using Sample = choose<is_small_float<FACULA_OUT> || same<FACULA_OUT, float>, float, double>;

__device__ __forceinline__ auto sample([[maybe_unused]] const Arguments& arguments, Number x) {
  [[maybe_unused]] const Sample p0 = Sample(arguments.p0), p1 = Sample(arguments.p1);
  [[maybe_unused]] const int64 base = arguments.base;
  [[maybe_unused]] const uint64 range = arguments.range;
  FACULA_BODY
}

}  // namespace math
}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::math::Arguments arguments) {
  using namespace facula;
  using namespace facula::math;
  const int64 thread = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64 threads = int64(gridDim.x) * blockDim.x;
  const uint64 seed = arguments.place.seed_now();
  uint64 block = arguments.place.block_now();
  for (int64 first = thread; first < arguments.count; first += threads * kDraws, ++block) {
    const Numbers numbers = draw(philox(seed, uint64(thread), block));
#pragma unroll
    for (int k = 0; k < kDraws; ++k) {
      const int64 i = first + k * threads;
      if (i >= arguments.count) break;
      Vector<FACULA_OUT, 1> result;
      result.at[0] = convert<FACULA_OUT>(sample(arguments, numbers.at[k]));
#if FACULA_DENSE
      store(result, arguments.out + i * int64(sizeof(FACULA_OUT)));
#else
      int64 at[1];
      arguments.walk.find(i, at);
      store(result, arguments.out + at[0]);
#endif
    }
  }
}

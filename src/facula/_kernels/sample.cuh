// out[i] = a sample of the distribution with parameters first[i] (and second[i]). Each element has
// a Philox sequence of its own. The host defines FACULA_NAME, what walk.cuh wants, FACULA_OUT, and
//   FACULA_FIRST, FACULA_SECOND  dtypes of the parameters
//   FACULA_SAMPLED               0 coins, 1 Poisson, 2 gamma, 3 binomial
#pragma once
#include "fault.cuh"
#include "philox.cuh"
#include "walk.cuh"
#define FACULA_SAMPLER __device__ inline
#define FACULA_CALLED_SAMPLER __device__ __noinline__ inline
#include "samplers.h"

namespace facula {

// Samplers ask for numbers in several places.
__device__ __noinline__ RandomWords next_words(uint64 seed, uint64 subsequence, uint64 block) {
  return philox(seed, subsequence, block);
}

class Stream {
 public:
  __device__ Stream(uint64 seed, uint64 subsequence, uint64 block)
      : seed_(seed), subsequence_(subsequence), block_(block), used_(2) {}

  __device__ double uniform() {  // on [0, 1)
    if (used_ == 2) {
      words_ = next_words(seed_, subsequence_, block_++);
      used_ = 0;
    }
    const uint64 bits = used_ == 0 ? uint64(words_.word[0]) << 32 | words_.word[1]
                                   : uint64(words_.word[2]) << 32 | words_.word[3];
    ++used_;
    return double(bits >> 11) * 1.1102230246251565e-16;
  }
  __device__ double normal() {
    const double u = 1 - uniform(), v = uniform();
    return ::sqrt(-2 * samplers::log_of(u)) * ::cospi(2 * v);
  }

 private:
  uint64 seed_, subsequence_, block_;
  RandomWords words_;
  int used_;
};

// Written by sample in csrc/cuda/random.cpp.
struct Arguments {
  FaultSite site;
  RandomPlace place;
  int64 count;
  double least;  // what gamma samples are raised to
  char* out;
  const char* first;
  const char* second;
  Walk<3> walk;
};

template <class T>
__device__ __forceinline__ double read(const char* address) {
  return convert<double>(*reinterpret_cast<const T*>(address));
}

}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= arguments.count) return;
  int64 at[3];
  arguments.walk.find(i, at);
  const double first = read<FACULA_FIRST>(arguments.first + at[1]);
  [[maybe_unused]] const double second = read<FACULA_SECOND>(arguments.second + at[2]);
  Vector<FACULA_OUT, 1> result;
#if FACULA_SAMPLED == 0
  if (!(first >= 0 && first <= 1)) return note_fault(arguments.site, int64(i), i);
  const RandomWords words =
      philox(arguments.place.seed_now(), uint64(i), arguments.place.block_now());
  const double u =
      double((uint64(words.word[0]) << 32 | words.word[1]) >> 11) * 1.1102230246251565e-16;
  result.at[0] = convert<FACULA_OUT>(u < first);
#else
  Stream stream(arguments.place.seed_now(), uint64(i), arguments.place.block_now());
#if FACULA_SAMPLED == 1
  if (!(first >= 0)) return note_fault(arguments.site, int64(i), i);
  result.at[0] = convert<FACULA_OUT>(samplers::poisson(first, stream));
#elif FACULA_SAMPLED == 2
  const double drawn = samplers::gamma(first, stream);
  result.at[0] = convert<FACULA_OUT>(drawn < arguments.least ? arguments.least : drawn);
#else
  if (first > 1.7976931348623157e308) return note_fault(arguments.site, int64(i), i);
  using T = choose<same<FACULA_OUT, double>, double, float>;
  result.at[0] = convert<FACULA_OUT>(samplers::binomial(T(first), T(second), stream));
#endif
#endif
  store(result, arguments.out + at[0]);
}

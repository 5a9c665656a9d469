// The tables behind the transforms of one length: how it is factored, twiddle factors, roots of
// unity. They are computed once, in extended precision, and kept in a cache of bounded size.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "cpu/fft_loops.h"

namespace facula {

struct Root {
  long double re, im;
};

// exp(-2 pi i k / n) for any k, from two short tables, so that long ones are made quickly.
class RootsOfUnity {
 public:
  explicit RootsOfUnity(int64_t n);
  Root operator()(int64_t k) const;

 private:
  int64_t n_, step_;
  std::vector<Root> low_, high_;
};

// The radices of a length, largest powers of two first; empty for 1. Prime factors above
// kLargestFftRadix come last: a length without them is smooth.
struct Radices {
  explicit Radices(int64_t n);
  std::vector<int64_t> list;
  bool smooth = true;
};

template <class T>
struct ConvolutionPlan;

// Transforms side by side in lanes.
template <class T>
struct LanePlan {
  explicit LanePlan(int64_t n);
  LanePlan(const LanePlan&) = delete;
  size_t bytes() const;

  FftSchedule<T> schedule{};

 private:
  std::vector<std::vector<T>> tables_;
  std::vector<std::shared_ptr<const ConvolutionPlan<T>>> convolutions_;
  std::vector<int32_t> order_;
};

// A radix that is a large prime.
template <class T>
struct ConvolutionPlan {
  explicit ConvolutionPlan(int64_t prime);
  size_t bytes() const;

  FftConvolution<T> tables{};

 private:
  LanePlan<T> lanes_;
  std::vector<int32_t> source_, result_;
  std::vector<T> chirp_, kernel_;
};

// How one length is best transformed: costs are in rows that pass through the registers.
template <class T>
struct LengthPlan {
  explicit LengthPlan(int64_t n);
  size_t bytes() const { return sizeof *this; }

  bool smooth;
  double block_cost;  // V transforms in lanes
  double line_cost;   // one transform: of a smooth length in two steps, infinite where it cannot be
                      // split; of others by the chirp
  int64_t n1, n2;
};

// One long transform in two steps.
template <class T>
struct LongPlan {
  explicit LongPlan(int64_t n);
  size_t bytes() const;

  FftLong<T> tables{};

 private:
  LanePlan<T> first_, second_;
  std::vector<T> lane_roots_, block_roots_;
  LongPlan(const LengthPlan<T>& split);
};

// Real transforms of an even length n.
template <class T>
struct RealBlockPlan {  // in lanes: exp(-2 pi i k / n)
  explicit RealBlockPlan(int64_t n);
  size_t bytes() const { return sizeof *this + roots.size() * sizeof(T); }
  std::vector<T> roots;
};
template <class T>
struct RealLinePlan {  // side by side in memory: the same, as products
  explicit RealLinePlan(int64_t n);
  size_t bytes() const {
    return sizeof *this + (lane_roots.size() + block_roots.size()) * sizeof(T);
  }
  std::vector<T> lane_roots, block_roots;
};

// Bluestein's method: any length as a convolution with a chirp, by transforms of a smooth length.
template <class T>
struct ChirpPlan {
  explicit ChirpPlan(int64_t n);
  size_t bytes() const { return sizeof *this + (chirp.size() + kernel.size()) * sizeof(T); }
  int64_t padded;         // the smooth length, at least 2 n - 1
  std::vector<T> chirp;   // exp(-pi i j**2 / n)
  std::vector<T> kernel;  // the transform of its conjugate, divided by `padded`
};

// The plan of a length from the cache, which threads share.
template <class Plan>
std::shared_ptr<const Plan> fft_plan(int64_t n);

}  // namespace facula

// Sums that become the derivative by the weights: how they lie, and those of several chunks of
// depth added up.
#pragma once
#include "cpu/conv_plan.h"

namespace facula::FACULA_ISA {

// Elements between the sums of two taps and of two channels. Outputs are contiguous.
struct SumStrides {
  int64_t tap, channel;
};

// Of sums of all taps and some channels, `pitch` for each pair: in the order that the weights have,
// so that storing them turns one matrix.
inline SumStrides sum_strides(const Conv& v, int64_t channels, int64_t pitch) {
  const int64_t taps = v.taps();
  if (taps > 1 && dense_taps(v) && v.w_in == taps) return {pitch, taps * pitch};
  return {channels * pitch, pitch};
}

// Sums of some taps and channels become weights.
template <class S, class A>
void store_weights(const Conv& v, const A* sums, SumStrides strides, int64_t group, int64_t tap,
                   int64_t taps, int64_t channel, int64_t channels, int64_t out, int64_t columns) {
  if (taps == v.taps() && taps > 1 && dense_taps(v)) {
    const bool together = v.w_in == taps && strides.channel == taps * strides.tap;
    const int64_t at_once = together ? channels : 1;
    for (int64_t c = 0; c < channels; c += at_once) {
      store_turned(sums + c * strides.channel, strides.tap, at_once * taps, columns,
                   weight_at<S>(v, group, out, channel + c, 0), v.w_out);
    }
    return;
  }
  for (int64_t t = 0; t < taps; ++t, sums += strides.tap) {
    S* to = weight_at<S>(v, group, out, channel, tap + t);
    if (v.w_in == 1) {
      store_turned(sums, strides.channel, channels, columns, to, v.w_out);
      continue;
    }
    for (int64_t c = 0; c < channels; ++c) {
      store_row(sums + c * strides.channel, columns, to + c * v.w_in, v.w_out);
    }
  }
}

// Memory for the sums of every chunk, where there are several, and how they are added up.
template <class A>
void plan_sums(const Conv& v, ConvPlan& p) {
  constexpr int64_t kTaskSums = 1 << 15;  // that are worth a thread
  if (p.depth_chunks == 1) {
    p.finish_tasks = 0;
    return;
  }
  const int64_t channel = p.depth_chunks * v.taps() * v.out;
  p.shared_bytes = sizeof(A) * size_t(v.groups * v.in * channel);
  // Channels may be contiguous in the weights: no two tasks write to the same line of a cache.
  p.finish_block = smaller(v.in, round_up(larger(1, kTaskSums / channel), kLanes<A>));
  p.finish_tasks = v.groups * divide_up(v.in, p.finish_block);
}

// The sums of a chunk.
template <class A>
A* sums_of(const Conv& v, void* shared, int64_t chunk, int64_t group) {
  return static_cast<A*>(shared) + (chunk * v.groups + group) * v.in * v.taps() * v.out;
}

// Some taps, channels and outputs of a task become part of those.
template <class A>
void share_sums(const Conv& v, const A* sums, SumStrides strides, int64_t tap, int64_t taps,
                int64_t channel, int64_t channels, int64_t out, int64_t columns, A* to) {
  const SumStrides all = sum_strides(v, v.in, v.out);
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t c = 0; c < channels; ++c) {
      const A* from = sums + t * strides.tap + c * strides.channel;
      A* const row = to + (tap + t) * all.tap + (channel + c) * all.channel + out;
      for (int64_t j = 0; j < columns; ++j) row[j] = from[j];
    }
  }
}

// Adds the sums of the chunks, in order, of finish_block channels.
template <class S>
void finish_sums(const Conv& v, const ConvPlan& p, int64_t task, void* shared) {
  using A = Accumulator<S>;
  const int64_t blocks = divide_up(v.in, p.finish_block), group = task / blocks;
  const int64_t channel = task % blocks * p.finish_block, taps = v.taps();
  const int64_t channels = smaller(p.finish_block, v.in - channel);
  const SumStrides strides = sum_strides(v, v.in, v.out);
  const bool together = strides.channel == taps * strides.tap;
  const int64_t runs = together ? 1 : taps, length = channels * taps * v.out / runs;
  const int64_t apart = v.groups * v.in * taps * v.out;  // of two chunks
  A* const sums = sums_of<A>(v, shared, 0, group) + channel * strides.channel;
  for (int64_t run = 0; run < runs; ++run) {
    A* const to = sums + run * strides.tap;
    for (int64_t chunk = 1; chunk < p.depth_chunks; ++chunk) {
      for (int64_t i = 0; i < length; ++i) to[i] += to[chunk * apart + i];
    }
  }
  store_weights<S>(v, sums, strides, group, 0, taps, channel, channels, 0, v.out);
}

}  // namespace facula::FACULA_ISA

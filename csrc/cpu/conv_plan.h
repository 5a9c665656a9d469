// How the files on convolutions cut their work into blocks and tasks.
#pragma once
#include "cpu/conv_kernels.h"
#include "cpu/conv_pack.h"

namespace facula::FACULA_ISA {

constexpr int64_t kDepth = 384;  // of a block of a product: what is summed while a tile is held
constexpr int64_t kPanels = 16;  // of columns in a block; with kDepth they fill most of an L2 cache
constexpr double kParallelWork = 1 << 19;  // multiplications that are worth a second thread
constexpr int64_t kTasksPerThread = 4;

// Cuts `size` into equal blocks of at most `most`, each a multiple of `unit`; returns their number.
inline int64_t cut(int64_t size, int64_t most, int64_t unit, int64_t& block) {
  const int64_t blocks = larger(1, divide_up(size, most));
  block = round_up(divide_up(size, blocks), unit);
  return larger(1, divide_up(size, larger(block, 1)));
}

inline bool is_worth_threads(const Conv& v) {
  return double(v.batch * v.pixels()) * double(v.groups * v.out) * double(v.in * v.taps()) >=
         kParallelWork;
}

// The tasks that a problem should be cut into where that is free to choose.
inline int64_t wanted_tasks(const Conv& v, int threads) {
  return threads == 1 || !is_worth_threads(v) ? 1 : threads * kTasksPerThread;
}

// Small problems run in the caller, however many tasks there are.
inline void set_tasks(const Conv& v, int64_t tasks, ConvPlan& p) {
  p.tasks = tasks;
  p.grain = is_worth_threads(v) ? 1 : tasks;
}

}  // namespace facula::FACULA_ISA

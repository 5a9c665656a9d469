// The pool of host threads behind every parallel loop. One pool per process, started on
// first use; BLAS products are split over it too, so nothing else competes for the cores.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace facula {

// Threads that share one parallel_for, the caller included. The first value comes from
// FACULA_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs this process may run on.
int num_threads();
void set_num_threads(int n);  // n >= 1, else std::invalid_argument
bool in_parallel_region();    // true while this thread runs a piece of a parallel_for

namespace detail {
using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
void run_parallel(int64_t begin, int64_t end, int64_t grain, RangeFunction f, void* context);
}  // namespace detail

// Calls f(b, e) on disjoint ranges that cover [begin, end), at the same time on several threads.
// No range but the last one is shorter than grain, of elements (4096 or more) than half of it. Runs
// f(begin, end) in the caller when there is no more than one grain of work, one thread, an
// enclosing parallel_for, or when the pool is busy with another thread's loop. The first exception
// thrown by f is rethrown here, after every running piece has ended; pieces not yet started are
// then dropped.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (begin >= end) return;
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  using Body = std::remove_reference_t<F>;
  detail::run_parallel(
      begin, end, grain,
      [](void* context, int64_t b, int64_t e) { (*static_cast<Body*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace facula

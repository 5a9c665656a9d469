// Iteration over strided operands: dimensions are sorted by the result's strides and merged, the
// innermost one is handed to a 1-d loop, the rest is split over the pool.
#pragma once
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace facula {

constexpr int kMaxOperands = 6;
constexpr int64_t kGrain = 32768;  // elements below which threads cost more than they bring

struct Iteration {
  int ndim = 0;
  int operands = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxDims];                  // those that are not 1
  int from_right[kMaxDims];                 // which dimension of the shape it was, before finish()
  int64_t strides[kMaxOperands][kMaxDims];  // bytes, [operand][dim], dim 0 fastest
  char* data[kMaxOperands];

  // Operand geometry is given on the broadcast shape; call once per operand, result first.
  void begin(IntSpan shape);
  void add(char* data, IntSpan sizes, IntSpan strides, int64_t item_size);
  void finish();  // sorts and merges dimensions

  // Runs body(pointers, inner byte strides, n) over the elements [from, to). The walk is compiled
  // once and calls the body by its address.
  template <class F>
  void run(int64_t from, int64_t to, F&& body) const {
    walk(from, to, address_of(body), context_of(body));
  }
  template <class F>
  void run_parallel(F&& body, int64_t grain = kGrain) const {
    walk_parallel(grain, address_of(body), context_of(body));
  }

 private:
  using Body = void (*)(const void* context, char* const* pointers, const int64_t* strides,
                        int64_t n);
  template <class F>
  static Body address_of(F&) {
    return [](const void* f, char* const* p, const int64_t* s, int64_t n) {
      (*static_cast<F*>(const_cast<void*>(f)))(p, s, n);
    };
  }
  template <class F>
  static const void* context_of(F& f) {
    return std::addressof(f);
  }
  void walk(int64_t from, int64_t to, Body body, const void* context) const;
  void walk_parallel(int64_t grain, Body body, const void* context) const;
};

}  // namespace facula

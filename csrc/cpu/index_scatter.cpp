#include "cpu/index_scatter.h"

#include <algorithm>
#include <atomic>

#include "cpu/index_items.h"
#include "cpu/iterate.h"

namespace facula {
namespace {

[[noreturn]] void bad_index(int64_t index, int64_t dim, int64_t size) {
  runtime_error("index ", index, " is out of bounds for dimension ", dim, " with size ", size,
                "; valid are 0 to ", size - 1);
}

int64_t read_index(const char* p) { return *reinterpret_cast<const int64_t*>(p); }

Dims without(IntSpan all, int64_t dim) {
  Dims d(all);
  d.erase(size_t(dim));
  return d;
}

struct AssignOp {
  template <class T>
  static void run(T& to, const T& from) {
    to = from;
  }
};
struct AddOp {
  template <class T>
  static void run(T& to, const T& from) {
    if constexpr (std::is_same_v<T, bool>) to = to | from;
    else to = T(to + from);
  }
};
struct MultiplyOp {
  template <class T>
  static void run(T& to, const T& from) {
    if constexpr (std::is_same_v<T, bool>) to = to & from;
    else to = T(to * from);
  }
};
struct MaximumOp {  // NaN wins
  template <class T>
  static void run(T& to, const T& from) {
    to = to >= from || to != to ? to : from;
  }
};
struct MinimumOp {
  template <class T>
  static void run(T& to, const T& from) {
    to = to <= from || to != to ? to : from;
  }
};

struct Line {
  int64_t count, out, index, src;  // extent along the dimension and byte strides there
};

// Lines along the dimension are independent; within one the order of the index decides. Of the two
// loops the one along memory goes inside.
template <class Op, class T>
void scatter_lines(const Line& line, char* const* p, const int64_t* s, int64_t n) {
  auto one = [&](int64_t i, int64_t k) {
    int64_t at = read_index(p[1] + i * s[1] + k * line.index);
    Op::run(*reinterpret_cast<T*>(p[0] + i * s[0] + at * line.out),
            *reinterpret_cast<const T*>(p[2] + i * s[2] + k * line.src));
  };
  if (n == 1 || line.index <= s[1]) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < line.count; ++k) one(i, k);
  } else {
    for (int64_t k = 0; k < line.count; ++k)
      for (int64_t i = 0; i < n; ++i) one(i, k);
  }
}

}  // namespace

void cpu_gather(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t item = int64_t(self.item_size()), size = self.sizes()[dim];
  const int64_t step = self.strides()[dim] * item;
  Dims fixed(self.strides());
  fixed[size_t(dim)] = 0;
  Iteration it;
  it.begin(index.sizes());
  it.add(out.data(), index.sizes(), out.strides(), item);
  it.add(index.data(), index.sizes(), index.strides(), 8);
  it.add(self.data(), index.sizes(), fixed, item);
  it.finish();
  with_item_type(item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    it.run_parallel([&](char* const* p, const int64_t* s, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        int64_t at = read_index(p[1] + i * s[1]);
        if (uint64_t(at) >= uint64_t(size)) bad_index(at, dim, size);
        *reinterpret_cast<T*>(p[0] + i * s[0]) =
            *reinterpret_cast<const T*>(p[2] + i * s[2] + at * step);
      }
    });
  });
}

void cpu_check_scatter_index(const Tensor& index, int64_t size, int64_t dim) {
  Iteration it;
  it.begin(index.sizes());
  it.add(index.data(), index.sizes(), index.strides(), 8);
  it.finish();
  it.run_parallel([&](char* const* p, const int64_t* s, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = read_index(p[0] + i * s[0]);
      if (uint64_t(at) >= uint64_t(size)) bad_index(at, dim, size);
    }
  });
}

void cpu_scatter(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src,
                 Combine combine) {
  if (index.numel() == 0) return;
  const int64_t item = int64_t(out.item_size());
  const Line line{index.sizes()[dim], out.strides()[dim] * item, index.strides()[dim] * 8,
                  src.strides()[dim] * item};
  Dims shape = without(index.sizes(), dim);
  Iteration it;
  it.begin(shape);
  it.add(out.data(), shape, without(out.strides(), dim), item);
  it.add(index.data(), shape, without(index.strides(), dim), 8);
  it.add(src.data(), shape, without(src.strides(), dim), item);
  it.finish();
  const int64_t grain = std::max<int64_t>(1, kGrain / line.count);
  auto run = [&]<class Op, class T>(Op, TypeTag<T>) {
    it.run_parallel(
        [&](char* const* p, const int64_t* s, int64_t n) { scatter_lines<Op, T>(line, p, s, n); },
        grain);
  };
  if (combine == Combine::Assign) {
    with_item_type(item, [&](auto tag) { run(AssignOp{}, tag); });
    return;
  }
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_small_float_v<T>) {
      if (combine == Combine::Add) return run(AddOp{}, tag);
      if (combine == Combine::Multiply) return run(MultiplyOp{}, tag);
      if constexpr (!is_complex_v<T>) {
        if (combine == Combine::Maximum) return run(MaximumOp{}, tag);
        if (combine == Combine::Minimum) return run(MinimumOp{}, tag);
      }
    }
    runtime_error("scatter with this reduction is not implemented for ", out.dtype());
  });
}

}  // namespace facula

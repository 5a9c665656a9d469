// The harness of check_cuda: counting, typed device memory, and launches in one line.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/elementwise.h"
#include "cuda/reduce.h"

namespace facula::cuda {

// The groups of checks, one per file.
void check_on_host();
void compile_matrix(const std::string& target);
void check_memory();
void check_elementwise();
void check_reductions();
void check_matmul();

inline int passed = 0, failed = 0;
inline std::string only;  // run the checks whose name contains it

inline void expect(bool condition, const std::string& what) {
  (condition ? passed : failed)++;
  if (!condition) std::printf("FAILED: %s\n", what.c_str());
}

inline void run(const char* name, const std::function<void()>& test) {
  if (!only.empty() && std::string(name).find(only) == std::string::npos) return;
  const int before = failed;
  try {
    test();
  } catch (const std::exception& error) {
    expect(false, std::string(name) + " threw: " + error.what());
  }
  std::printf("%-32s %s\n", name, failed == before ? "ok" : "FAILED");
  std::fflush(stdout);
}

template <class Error>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// ---- device memory with a type

template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count)
      : count_(count), data_(static_cast<T*>(allocate(count * sizeof(T), 0))) {}
  explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) {
    copy_to_device(data_, host.data(), host.size() * sizeof(T), 0, nullptr);
  }
  ~Buffer() { deallocate(data_, 0); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> out(count_);
    copy_to_host(out.data(), data_, count_ * sizeof(T), 0, nullptr);
    return out;
  }

 private:
  size_t count_;
  T* data_;
};
template <>
std::vector<bool> Buffer<bool>::host() const = delete;  // use uint8_t

inline std::mt19937_64 generator(7);

template <class T>
std::vector<T> random_values(size_t count, double low = -3, double high = 3) {
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<T> out(count);
  for (T& value : out) {
    if constexpr (is_complex_v<T>) {
      const double re = uniform(generator), im = uniform(generator);
      value = convert<T>(Complex<double>(re, im));
    } else {
      value = convert<T>(uniform(generator));
    }
  }
  return out;
}

inline bool near(double got, double wanted, double tolerance) {
  if (std::isnan(got) || std::isnan(wanted)) return std::isnan(got) && std::isnan(wanted);
  if (std::isinf(got) || std::isinf(wanted)) return got == wanted;
  return std::fabs(got - wanted) <= tolerance * std::max(1.0, std::fabs(wanted));
}

// Element by element; `wanted(i)` is a double or Complex<double>.
template <class T, class Wanted>
void expect_near(const std::vector<T>& got, Wanted wanted, double tolerance,
                 const std::string& what) {
  for (size_t i = 0; i < got.size(); ++i) {
    bool good;
    char text[160] = "";
    if constexpr (is_complex_v<T>) {
      const Complex<double> g = convert<Complex<double>>(got[i]), w = wanted(i);
      good = near(g.re, w.re, tolerance) && near(g.im, w.im, tolerance);
      std::snprintf(text, sizeof text, ": [%zu] is %g%+gi, should be %g%+gi", i, g.re, g.im, w.re,
                    w.im);
    } else {
      const double g = convert<double>(got[i]), w = wanted(i);
      good = near(g, w, tolerance);
      std::snprintf(text, sizeof text, ": [%zu] is %.9g, should be %.9g", i, g, w);
    }
    if (!good) return expect(false, what + text);
  }
  expect(true, what);
}

// ---- launches in one line

struct View {  // an operand: strides in elements
  void* data;
  DType dtype;
  std::vector<int64_t> strides;
};

inline std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= sizes[d];
  }
  return strides;
}

inline int64_t count_of(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

inline ElementwiseLaunch make_launch(const char* body, DType compute,
                                     const std::vector<int64_t>& sizes,
                                     const std::vector<View>& operands) {
  ElementwiseLaunch launch;
  launch.name = "check";
  launch.body = body;
  launch.compute = compute;
  launch.inputs = int(operands.size()) - 1;
  launch.ndim = int(sizes.size());
  std::copy(sizes.begin(), sizes.end(), launch.sizes);
  for (size_t k = 0; k < operands.size(); ++k) {
    launch.ptrs[k] = operands[k].data;
    launch.dtypes[k] = operands[k].dtype;
    for (size_t d = 0; d < sizes.size(); ++d) {
      launch.strides[k][d] = operands[k].strides[d] * int64_t(item_size(operands[k].dtype));
    }
  }
  return launch;
}

// Element offset of row-major position i.
inline int64_t offset_of(int64_t i, const std::vector<int64_t>& sizes,
                         const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t d = sizes.size(); d-- > 0;) {
    offset += i % sizes[d] * strides[d];
    i /= sizes[d];
  }
  return offset;
}

inline ReduceFormula sum_formula() {
  return {"0", "a", "a + b", "a"};
}

inline ReduceLaunch make_reduce(const ReduceFormula& formula, DType compute, DType in_dtype,
                                DType out_dtype, const void* in, void* out,
                                const std::vector<int64_t>& sizes,
                                const std::vector<int64_t>& strides, uint64_t reduced) {
  ReduceLaunch launch;
  launch.name = "check";
  launch.formula = formula;
  launch.compute = compute;
  launch.in = in;
  launch.out = out;
  launch.in_dtype = in_dtype;
  launch.out_dtype = out_dtype;
  launch.ndim = int(sizes.size());
  launch.reduced = reduced;
  int64_t step = int64_t(item_size(out_dtype));
  for (size_t d = sizes.size(); d-- > 0;) {
    launch.sizes[d] = sizes[d];
    launch.in_strides[d] = strides[d] * int64_t(item_size(in_dtype));
    launch.out_strides[d] = step;
    if (!(reduced >> d & 1)) step *= sizes[d];
  }
  return launch;
}

inline DType compute_of(DType d) {
  return is_reduced_float(d) ? DType::Float32 : d;
}

}  // namespace facula::cuda

// Products at the edges of memory, with a bias, and on different numbers of threads.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "core/dtype.h"
#include "core/thread_pool.h"
#include "cpu/gemm.h"

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      std::printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

namespace facula {

// Operands and result end at a page that cannot be touched, or begin right after one.
class Guarded {
 public:
  Guarded(size_t bytes, bool at_end) : page_(size_t(sysconf(_SC_PAGESIZE))) {
    const size_t inner = (bytes + page_ - 1) / page_ * page_;
    size_ = inner + 2 * page_;
    block_ = static_cast<char*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(block_ != MAP_FAILED);
    CHECK(mprotect(block_, page_, PROT_NONE) == 0);
    CHECK(mprotect(block_ + page_ + inner, page_, PROT_NONE) == 0);
    data_ = at_end ? block_ + page_ + inner - bytes : block_ + page_;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(block_, size_); }
  char* data() { return data_; }

 private:
  size_t page_, size_;
  char *block_, *data_;
};

inline void check_bounds() {
  std::mt19937 random(21);
  const int64_t sizes[] = {1,  3,  6,  7,  8,  13, 14, 15, 17,  24,  29, 31,
                           32, 33, 40, 48, 63, 64, 65, 97, 128, 130, 385};
  for (int i = 0; i < 600; ++i) {
    const DType dtypes[] = {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16};
    const DType dtype = dtypes[random() % 4];
    auto pick = [&] { return sizes[random() % std::size(sizes)]; };
    const int64_t m = pick(), n = pick(), k = pick();
    const int64_t item = int64_t(item_size(dtype));
    Guarded a(size_t(m * k * item), random() % 2), b(size_t(k * n * item), random() % 2),
        c(size_t(m * n * item), random() % 2), bias(size_t(n * item), random() % 2);
    std::memset(a.data(), 0, size_t(m * k * item));
    std::memset(b.data(), 0, size_t(k * n * item));
    std::memset(c.data(), 0, size_t(m * n * item));
    const bool ta = random() % 2, tb = random() % 2, tc = random() % 4 == 0;
    Gemm g{dtype,      1,          m,          n,          k,         a.data(),
           0,          ta ? 1 : k, ta ? m : 1, b.data(),   0,         tb ? 1 : n,
           tb ? k : 1, c.data(),   0,          tc ? 1 : n, tc ? m : 1};
    const int kind = random() % 3;
    if (kind == 1) g.beta_re = 1;
    if (kind == 2) g.bias = bias.data();
    gemm(g);
    for (int64_t at = 0; at < m * n * item; ++at) CHECK(c.data()[at] == 0);
  }
}

template <class T>
void check_bias(std::mt19937& random) {
  struct Shape {
    int64_t m, n, k;
  };
  for (const auto [m, n, k] : {Shape{1, 70, 40},
                               {3, 4, 5},
                               {12, 300, 128},
                               {40, 90, 900},
                               {200, 130, 70},
                               {65, 7, 300},
                               {33, 64, 0}}) {
    std::vector<T> a(m * k + 1), b(k * n + 1), bias(n), c(m * n), expected(m * n);
    for (auto* v : {&a, &b, &bias}) {
      for (T& x : *v) {
        x = convert<T>(double(int(random() % 17) - 8) / (std::is_integral_v<T> ? 1 : 8));
      }
    }
    for (const bool turned : {false, true}) {
      Gemm g{DTypeOf<T>::value, 1,        m, n, k, a.data(), 0, k, 1, b.data(), 0, turned ? 1 : n,
             turned ? k : 1,    c.data(), 0, n, 1};
      g.bias = bias.data();
      gemm(g);
      for (int64_t i = 0; i < m; ++i) std::copy(bias.begin(), bias.end(), &expected[i * n]);
      g.bias = nullptr, g.c = expected.data(), g.beta_re = 1;
      gemm(g);
      CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(T)) == 0);
    }
  }
}

inline void check_biases() {
  std::mt19937 random(31);
  check_bias<float>(random);
  check_bias<double>(random);
  check_bias<BFloat16>(random);
  check_bias<Half>(random);
  check_bias<int32_t>(random);
  check_bias<Complex<float>>(random);
}

template <class T>
void check_thread_count(std::mt19937& random) {
  struct Shape {
    int64_t batch, m, n, k;
  };
  for (const Shape& s : {Shape{1, 300, 300, 300},
                         {1, 257, 1000, 900},
                         {1, 1, 3000, 700},
                         {1, 3, 2501, 400},
                         {1, 7, 1111, 333},
                         {1, 30, 999, 513},
                         {1, 2000, 10, 257},
                         {1, 5, 9, 70000},
                         {12, 65, 130, 70},
                         {3, 200, 170, 410},
                         {40, 8, 50, 300}}) {
    std::vector<T> a(s.batch * s.m * s.k), b(s.batch * s.k * s.n);
    for (auto* v : {&a, &b}) {
      for (T& x : *v) x = convert<T>(double(random()) / 0x1p31 - 1);
    }
    const bool ta = random() % 2, tb = random() % 2;
    std::vector<T> first;
    for (const int threads : {1, 2, 3, 5}) {
      set_num_threads(threads);
      std::vector<T> c(s.batch * s.m * s.n, convert<T>(0.3));
      Gemm g{DTypeOf<T>::value, s.batch,      s.m,          s.n,      s.k,       a.data(),
             s.m * s.k,         ta ? 1 : s.k, ta ? s.m : 1, b.data(), s.k * s.n, tb ? 1 : s.n,
             tb ? s.k : 1,      c.data(),     s.m * s.n,    s.n,      1};
      g.alpha_re = 0.7, g.beta_re = 0.9;
      gemm(g);
      if (threads == 1) first = c;
      CHECK(std::memcmp(c.data(), first.data(), c.size() * sizeof(T)) == 0);
    }
  }
}

// The same bits with any number of threads.
inline void check_thread_counts() {
  std::mt19937 random(41);
  check_thread_count<float>(random);
  check_thread_count<double>(random);
  check_thread_count<BFloat16>(random);
  check_thread_count<Half>(random);
  check_thread_count<Complex<float>>(random);
  check_thread_count<Complex<double>>(random);
  set_num_threads(2);
}

}  // namespace facula

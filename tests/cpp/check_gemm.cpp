// Checks matrix products against a plain triple loop, and the thread pool and the host allocator
// that they stand on. Prints "ok" and returns 0, or prints what differs and returns 1.
// Arguments: the OpenBLAS library, and "nofork" where a sanitizer does not survive fork().
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check_gemm_cuts.h"
#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "core/thread_scratch.h"
#include "cpu/blas.h"
#include "cpu/cast.h"
#include "cpu/gemm.h"

// The library picks the instruction set once; here every one that the machine has takes its turn.
static int current_isa = 0;
namespace facula {
int isa_level() {
  return current_isa;
}
}  // namespace facula

using namespace facula;

static int best_isa() {
#ifdef FACULA_X86
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
  return 0;
}

// Strides in elements, one after the other over (batch, rows, columns), with room for the largest
// offset in either direction.
struct Layout {
  int64_t batch, row, col;
  int64_t origin = 0, size = 0;

  Layout(int kind, int64_t b, int64_t rows, int64_t cols, bool output) {
    switch (kind) {
      case 0: col = 1, row = cols, batch = rows * cols; break;         // row-major
      case 1: row = 1, col = rows, batch = rows * cols; break;         // column-major
      case 2: col = 1, row = cols + 3, batch = rows * row + 5; break;  // padded rows
      case 3: col = 2, row = cols * 2 + 1, batch = rows * row; break;  // neither contiguous
      case 4: col = -1, row = cols, batch = rows * cols; break;        // reversed
      case 5: row = 1, col = rows + 2, batch = cols * col; break;      // padded columns
      case 6: batch = 0, col = 1, row = cols; break;                   // one matrix for all
      case 7: col = 1, row = 0, batch = cols; break;                   // one row for all
      default: col = b, row = cols * b, batch = 1; break;              // batch innermost
    }
    if (output && (kind == 6 || kind == 7)) row = cols, batch = rows * cols;
    int64_t low = 0, high = 0;
    for (auto [n, s] : {std::pair{b, batch}, std::pair{rows, row}, std::pair{cols, col}}) {
      (s < 0 ? low : high) += (n > 0 ? n - 1 : 0) * s;
    }
    origin = -low;
    size = high - low + 1;
  }
};

template <class T>
struct Wide {
  using type = double;
};
template <class R>
struct Wide<Complex<R>> {
  using type = Complex<double>;
};

template <class T>
auto widened(T x) {
  if constexpr (std::is_integral_v<T>) {
    return uint64_t(x);
  } else if constexpr (is_complex_v<T>) {
    return Complex<double>(x.re, x.im);
  } else {
    return double(x);
  }
}

// Unit roundoff, in which differences are measured.
template <class T>
double roundoff() {
  if constexpr (std::is_same_v<T, Half>) return 0x1p-11;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1p-8;
  if constexpr (std::is_same_v<T, Float8E4M3>) return 0x1p-4;
  if constexpr (std::is_same_v<T, Float8E5M2>) return 0x1p-3;
  return sizeof(real_of_t<T>) == 8 ? 0x1p-53 : 0x1p-24;
}

template <class T>
void check_one(const Gemm& shape, int ka, int kb, int kc, std::mt19937& random) {
  using W = decltype(widened(T{}));
  Gemm g = shape;
  g.dtype = DTypeOf<T>::value;
  const Layout la(ka, g.batch, g.m, g.k, false), lb(kb, g.batch, g.k, g.n, false);
  const Layout lc(kc, g.batch, g.m, g.n, true);
  std::vector<T> a(la.size), b(lb.size), c(lc.size);
  auto fill = [&](std::vector<T>& v) {
    for (T& x : v) {
      const int r = int(random() % 257) - 128;
      if constexpr (std::is_integral_v<T>) {
        x = T(random());
      } else if constexpr (is_complex_v<T>) {
        x = T(real_of_t<T>(r / 64.0), real_of_t<T>(int(random() % 257) / 64.0 - 2));
      } else {
        x = T(float(r) / 64.0f);
      }
    }
  };
  fill(a), fill(b), fill(c);
  const bool ignore = g.beta_re == 0 && g.beta_im == 0;
  if constexpr (!std::is_integral_v<T>) {
    if (ignore) std::fill(c.begin(), c.end(), T(std::nanf("")));
  }
  const std::vector<T> before = c;
  g.a = a.data() + la.origin, g.a_batch = la.batch, g.a_row = la.row, g.a_col = la.col;
  g.b = b.data() + lb.origin, g.b_batch = lb.batch, g.b_row = lb.row, g.b_col = lb.col;
  g.c = c.data() + lc.origin, g.c_batch = lc.batch, g.c_row = lc.row, g.c_col = lc.col;
  gemm(g);

  W alpha, beta;
  if constexpr (std::is_same_v<W, uint64_t>) {
    alpha = uint64_t(int64_t(g.alpha_re)), beta = uint64_t(int64_t(g.beta_re));
  } else if constexpr (is_complex_v<T>) {
    alpha = W(g.alpha_re, g.alpha_im), beta = W(g.beta_re, g.beta_im);
  } else {
    alpha = g.alpha_re, beta = g.beta_re;
  }
  std::vector<char> written(c.size());
  for (int64_t i = 0; i < g.batch; ++i) {
    for (int64_t r = 0; r < g.m; ++r) {
      for (int64_t j = 0; j < g.n; ++j) {
        W sum = W(0);
        double size = 0;
        for (int64_t p = 0; p < g.k; ++p) {
          const W x = widened(a[la.origin + i * la.batch + r * la.row + p * la.col]);
          const W y = widened(b[lb.origin + i * lb.batch + p * lb.row + j * lb.col]);
          sum = sum + x * y;
          if constexpr (is_complex_v<T>) {
            size += std::hypot(x.re, x.im) * std::hypot(y.re, y.im);
          } else if constexpr (!std::is_integral_v<T>) {
            size += std::abs(x * y);
          }
        }
        const int64_t at = lc.origin + i * lc.batch + r * lc.row + j * lc.col;
        written[at] = 1;
        W expected = alpha * sum;
        if (!ignore) expected = expected + beta * widened(before[at]);
        bool same;
        if constexpr (std::is_integral_v<T>) {
          same = c[at] == T(expected);
        } else {
          const W got = widened(c[at]);
          double difference, magnitude;
          if constexpr (is_complex_v<T>) {
            difference = std::hypot(got.re - expected.re, got.im - expected.im);
            magnitude = std::hypot(expected.re, expected.im);
          } else {
            difference = std::abs(got - expected), magnitude = std::abs(expected);
            if (g.dtype == DType::Float8E4M3 && magnitude > 448) difference = std::abs(got) - 448;
            if (g.dtype == DType::Float8E5M2 && magnitude > 57344) difference = 0;
          }
          // One rounding of the result, and float (or double) sums before it.
          const double sums = sizeof(real_of_t<T>) == 8 ? 0x1p-53 : 0x1p-24;
          same = difference <= 1.01 * roundoff<T>() * magnitude +
                                   (8 + std::sqrt(double(g.k)) * 2) * sums * (size + 10) +
                                   1e-7 * (roundoff<T>() > 1e-4 ? 1 : 0) +
                                   (roundoff<T>() > 0.01 ? 0.002 : 0);
        }
        if (!same) {
          std::printf("%s batch %ld m %ld n %ld k %ld layouts %d %d %d isa %d at (%ld, %ld, %ld)\n",
                      dtype_name(g.dtype), long(g.batch), long(g.m), long(g.n), long(g.k), ka, kb,
                      kc, current_isa, long(i), long(r), long(j));
          if constexpr (is_complex_v<T>) {
            std::printf("got %g%+gi\n", double(c[at].re), double(c[at].im));
          } else {
            std::printf("got %.17g, expected %.17g\n", double(c[at]), double(expected));
          }
          std::exit(1);
        }
      }
    }
  }
  for (size_t i = 0; i < c.size(); ++i) {  // nothing between the rows is touched
    CHECK(written[i] || std::memcmp(&c[i], &before[i], sizeof(T)) == 0);
  }
}

static void check_products(uint32_t seed, int rounds, bool large) {
  std::mt19937 random(seed);
  const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 12, 13, 16, 17, 31, 32, 33, 48, 65};
  const int64_t large_sizes[] = {1, 2, 24, 37, 64, 100, 130, 257, 300, 520};
  auto pick = [&] {
    return large ? large_sizes[random() % std::size(large_sizes)]
                 : sizes[random() % std::size(sizes)];
  };
  for (int i = 0; i < rounds; ++i) {
    Gemm g{};
    g.batch = large ? 1 + random() % 2 : 1 + random() % 5;
    g.m = pick(), g.n = pick(), g.k = pick();
    if (large && double(g.m) * g.n * g.k > 6e6) g.n = 24;
    if (!large && random() % 16 == 0) g.k = 0;
    const double factors[] = {1, 0, -1, 2, 0.5};
    g.alpha_re = factors[random() % 5], g.beta_re = factors[random() % 5];
    const int ka = random() % 9, kb = random() % 9, kc = random() % 9;
    const DType dtype = DType(1 + random() % (kDTypes - 1));
    if (is_complex(dtype)) g.alpha_im = factors[random() % 5], g.beta_im = factors[random() % 5];
    dispatch_dtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!std::is_same_v<T, bool>) check_one<T>(g, ka, kb, kc, random);
    });
  }
}

static void check_special_cases() {
  float a[4] = {1, 2, 3, 4}, c[4] = {5, 6, 7, 8};
  Gemm g{DType::Float32, 1, 2, 2, 2, a, 0, 2, 1, a, 0, 2, 1, c, 0, 2, 1};
  for (int64_t Gemm::* size : {&Gemm::batch, &Gemm::m, &Gemm::n}) {
    Gemm empty = g;
    empty.*size = 0;
    gemm(empty);
    CHECK(c[0] == 5 && c[3] == 8);
  }
  bool refused = false;
  try {
    g.dtype = DType::Bool;
    gemm(g);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
  // Long dot products are cut into parts whose sums do not depend on the number of threads.
  const int64_t k = 300001;
  std::vector<float> x(k), y(k);
  for (int64_t i = 0; i < k; ++i) x[i] = float(i % 13) - 6, y[i] = 1 / float(i + 1);
  float results[3];
  for (int t = 0; t < 3; ++t) {
    set_num_threads(t + 1);
    gemm({DType::Float32, 1, 1, 1, k, x.data(), 0, 0, 1, y.data(), 0, 1, 0, results + t, 0, 0, 0});
  }
  CHECK(results[0] == results[1] && results[1] == results[2]);
  double expected = 0;
  for (int64_t i = 0; i < k; ++i) expected += double(x[i]) * y[i];
  CHECK(std::abs(results[0] - expected) < 1e-4);
}

// ---- the thread pool

static void check_loop(int64_t n, int64_t grain) {
  std::vector<int> visits(n);
  std::atomic<int64_t> short_pieces{0};
  parallel_for(0, n, grain, [&](int64_t b, int64_t e) {
    if (e - b < grain && e != n) ++short_pieces;
    for (; b < e; ++b) ++visits[b];
  });
  CHECK(short_pieces == 0);
  CHECK(std::all_of(visits.begin(), visits.end(), [](int v) { return v == 1; }));
}

static void check_pool() {
  for (int threads : {2, 4, 1, 3}) {
    set_num_threads(threads);
    CHECK(num_threads() == threads);
    for (int64_t n : {1, 2, 7, 100, 1001}) {
      for (int64_t grain : {1, 3, 50}) check_loop(n, grain);
    }
  }
  bool refused = false;
  try {
    set_num_threads(0);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
  std::atomic<int> inner{0};
  parallel_for(0, 8, 1, [&](int64_t b, int64_t e) {
    CHECK(in_parallel_region());
    for (; b < e; ++b) {
      parallel_for(0, 10, 1, [&](int64_t b2, int64_t e2) { inner += int(e2 - b2); });
    }
  });
  CHECK(inner == 80 && !in_parallel_region());
  for (int i = 0; i < 64; ++i) {
    bool caught = false;
    try {
      parallel_for(0, 64, 1, [&](int64_t b, int64_t e) {
        if (b <= i && i < e) throw std::runtime_error("from a piece");
      });
    } catch (const std::runtime_error&) {
      caught = true;
    }
    CHECK(caught && !in_parallel_region());
  }
  check_loop(1000, 1);
}

// ---- the host allocator

static void churn(uint32_t seed, int rounds) {
  std::mt19937 random(seed);
  std::vector<std::pair<unsigned char*, size_t>> held;
  auto release = [&](size_t i) {
    auto [p, n] = held[i];
    CHECK(p[0] == n % 251 && p[n - 1] == n % 251);
    host_free(p, n);
    held[i] = held.back();
    held.pop_back();
  };
  for (int i = 0; i < rounds; ++i) {
    if (held.size() > 30 || (!held.empty() && random() % 2)) {
      release(random() % held.size());
    } else {
      const size_t limits[] = {64, 1200, 100000, 5000000};
      const size_t n = 1 + random() % limits[std::min(random() % 16, 3 + random() % 13) % 4];
      auto* p = static_cast<unsigned char*>(host_allocate(n));
      CHECK(reinterpret_cast<uintptr_t>(p) % kHostAlignment == 0);
      p[0] = p[n - 1] = static_cast<unsigned char>(n % 251);
      held.push_back({p, n});
    }
  }
  while (!held.empty()) release(held.size() - 1);
}

static void check_allocator() {
  CHECK(host_allocate(0) == nullptr);
  host_free(nullptr, 0);
  const size_t before = host_memory_stats().allocated_bytes;
  for (size_t n : {1ul, 64ul, 1024ul, 1025ul, 65536ul, 3000000ul}) {
    void* p = host_allocate(n);
    const HostMemoryStats held = host_memory_stats();
    CHECK(held.allocated_bytes - before >= n && held.allocated_bytes - before <= n + n / 8 + 64);
    CHECK(held.peak_bytes >= held.allocated_bytes);
    host_free(p, n);
    if (held.cache_limit_bytes != 0) {  // caching is off under AddressSanitizer
      CHECK(host_allocate(n) == p);
      host_free(p, n);
    }
    CHECK(host_memory_stats().allocated_bytes == before);
  }
  host_trim();
  CHECK(host_memory_stats().cached_bytes == 0);
  bool refused = false;
  try {
    host_free(host_allocate(size_t(1) << 62), size_t(1) << 62);
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  CHECK(refused);
  const size_t limit = host_memory_stats().cache_limit_bytes;
  set_host_cache_limit(size_t(4) << 20);
  for (int i = 0; i < 4; ++i) {
    void* blocks[4];
    for (void*& b : blocks) b = host_allocate(size_t(2) << 20);
    for (void* b : blocks) host_free(b, size_t(2) << 20);
    CHECK(host_memory_stats().cached_bytes <= size_t(4) << 20);
  }
  if (limit != 0) set_host_cache_limit(limit);
}

// ---- together

static void check_from_several_threads() {
  set_num_threads(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      check_products(100 + i, 30, false);
      check_products(200 + i, 4, true);
      for (int r = 0; r < 50; ++r) check_loop(500, 7);
      churn(300 + i, 3000);
    });
  }
  for (int i = 0; i < 20; ++i) {
    set_num_threads(1 + i % 4);
    usleep(500);
  }
  for (std::thread& t : threads) t.join();
  set_num_threads(2);
}

static void check_child() {
  check_loop(1000, 1);
  churn(1, 500);
  check_products(2, 10, false);
  check_products(3, 2, true);
  std::thread([] { churn(4, 500); }).join();
}

static void check_fork() {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      check_loop(1000, 1);
      churn(7, 100);
    }
  });
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(20);
      check_child();
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  busy.join();
}

void check_scratch() {
  void* before = nullptr;
  for (const size_t bytes : {size_t(5000), size_t(1), ThreadScratch::kMostBytes}) {
    const ThreadScratch own(bytes), second(bytes), large(2 * ThreadScratch::kMostBytes);
    for (const ThreadScratch* block : {&own, &second, &large}) {
      CHECK(block->data() && uintptr_t(block->data()) % 64 == 0);
    }
    std::memset(own.data(), 1, bytes);
    std::memset(second.data(), 2, bytes);
    std::memset(large.data(), 3, 2 * ThreadScratch::kMostBytes);
    CHECK(static_cast<char*>(own.data())[bytes - 1] == 1);
    CHECK(static_cast<char*>(second.data())[bytes - 1] == 2);
    if (bytes == 1) CHECK(own.data() == before);  // a smaller need has the same block
    before = own.data();
  }
  parallel_for(0, 64, 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) {
      const ThreadScratch own(10000);
      std::memset(own.data(), int(begin), 10000);
      for (int64_t i = 0; i < 10000; i += 999)
        CHECK(static_cast<char*>(own.data())[i] == char(begin));
    }
  });
}

static void check_everything(bool with_fork) {
  check_pool();
  check_allocator();
  check_scratch();
  for (current_isa = 0; current_isa <= best_isa(); ++current_isa) {
    set_num_threads(1 + current_isa);
    check_products(11, 400, false);
    set_num_threads(2);
    check_products(12, 60, true);
    check_bounds();
    check_biases();
    check_thread_counts();
  }
  current_isa = best_isa();
  check_special_cases();
  check_from_several_threads();
  if (with_fork) check_fork();
}

int main(int argc, char** argv) {
  if (argc > 1) set_blas_library(argv[1]);
  try {
    check_everything(argc < 3 || std::strcmp(argv[2], "nofork") != 0);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
  std::puts("ok");
}

// Checks of csrc/cuda against results computed on the CPU. Prints "N passed, M failed".
//
//   check_cuda [--kernels DIR] [--compile-only sm_XX ...] [--bench]
//
// With --compile-only nothing needs a GPU: logic on the host is checked, and a matrix of kernels is
// compiled with NVRTC for the given targets. Build (from the repository's root):
//   g++ -std=c++20 -O2 -Wall -Wextra -Icsrc tests/cpp/check_cuda.cpp csrc/cuda/*.cpp -o check_cuda
//       -ldl -lpthread
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/elementwise.h"
#include "cuda/kernel_cache.h"
#include "cuda/libraries.h"
#include "cuda/matmul.h"
#include "cuda/nvrtc.h"
#include "cuda/reduce.h"

namespace facula::cuda {
namespace {

int passed = 0, failed = 0;

void expect(bool condition, const std::string& what) {
  (condition ? passed : failed)++;
  if (!condition) std::printf("FAILED: %s\n", what.c_str());
}

void run(const char* name, const std::function<void()>& test) {
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

bool contains(const std::string& text, const char* part) {
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

std::mt19937_64 generator(7);

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

bool near(double got, double wanted, double tolerance) {
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

std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= sizes[d];
  }
  return strides;
}

int64_t count_of(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

ElementwiseLaunch make_launch(const char* body, DType compute, const std::vector<int64_t>& sizes,
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
int64_t offset_of(int64_t i, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t d = sizes.size(); d-- > 0;) {
    offset += i % sizes[d] * strides[d];
    i /= sizes[d];
  }
  return offset;
}

constexpr const char* kLogAddExp = "max(a, b) + log1p(exp(-abs(a - b)))";
double log_add_exp(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

const DType kAll[] = {
#define X(e, t, n, c) DType::e,
    FACULA_DTYPES(X)
#undef X
};

// ---- checks without a device

void check_layouts() {
  Layout layout;
  layout.operands = 2;
  layout.ndim = 4;
  const int64_t sizes[] = {2, 1, 3, 4}, dense[] = {48, 48, 16, 4}, other[] = {96, 7, 32, 8};
  std::copy_n(sizes, 4, layout.sizes);
  std::copy_n(dense, 4, layout.strides[0]);
  std::copy_n(other, 4, layout.strides[1]);
  layout.squeeze();
  layout.sort();
  layout.merge();
  expect(layout.ndim == 1 && layout.sizes[0] == 24 && layout.strides[1][0] == 8,
         "dense dimensions merge into one");

  layout.ndim = 2;  // a transposed pair is the same as a dense one
  layout.sizes[0] = 3, layout.sizes[1] = 5;
  layout.strides[0][0] = layout.strides[1][0] = 4;
  layout.strides[0][1] = layout.strides[1][1] = 12;
  layout.sort();
  layout.merge();
  expect(layout.ndim == 1 && layout.sizes[0] == 15, "sorting undoes a common transposition");
}

void check_dividers() {
  bool good = true;
  auto test = [&](uint32_t d, uint32_t n) {
    const Divider32 v = divider(d);
    const uint32_t high = uint32_t(uint64_t(n) * v.magic >> 32);
    good = good && ((high + n) >> v.shift) == n / d;
  };
  for (uint32_t d = 1; d < 300; ++d) {
    for (uint32_t n : {0u, 1u, d - 1, d, d + 1, 1000003u, 0x7ffffffeu, 0x7fffffffu}) test(d, n);
  }
  for (int i = 0; i < 200000; ++i) {
    test(uint32_t(generator() % 0x7fffffff) + 1, uint32_t(generator() & 0x7fffffff));
  }
  test(0x7fffffff, 0x7fffffff);
  expect(good, "division by multiplication is exact below 2^31");
}

void check_formula_text() {
  expect(formula_body("a + 0.5") == "return a + R(0.5);", "literals take the compute type");
  expect(formula_body("log2(a1) * 1e-3 + 2") == "return log2(a1) * R(1e-3) + 2;",
         "identifiers and integers stay as they are");
  expect(formula_body("a * 0x1F + .5f") == "return a * 0x1F + .5f;", "suffixes and hex stay");
  expect(formula_body("if (a > 1.) return b; return 2;") == "if (a > R(1.)) return b; return 2;",
         "statements stay statements");
  expect(kernel_name("aten::add.Tensor") == "facula_aten__add_Tensor", "names are identifiers");
  expect(intern("xyz") == intern(std::string("xy") + "z"), "interned texts are unique");
}

ElementwiseLaunch fake_launch(const char* body, DType dtype, DType compute,
                              const std::vector<int64_t>& sizes,
                              const std::vector<int64_t>& b_strides) {
  void* aligned = reinterpret_cast<void*>(uintptr_t(4096));
  const auto dense = dense_strides(sizes);
  return make_launch(body, compute, sizes,
                     {{aligned, dtype, dense}, {aligned, dtype, dense}, {aligned, dtype, b_strides}});
}

ReduceFormula sum_formula() { return {"0", "a", "a + b", "a"}; }

ReduceLaunch make_reduce(const ReduceFormula& formula, DType compute, DType in_dtype,
                         DType out_dtype, const void* in, void* out,
                         const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                         uint64_t reduced) {
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

DType compute_of(DType d) { return is_reduced_float(d) ? DType::Float32 : d; }

void compile_matrix(const std::string& target) {
  int kernels = 0;
  auto compile = [&](const KernelText& text, const std::string& what) {
    ++kernels;
    try {
      expect(nvrtc_compile(text.entry, assemble(text), target, {"--std=c++17",
                           "--device-as-default-execution-space"}).size() > 100, what);
    } catch (const std::exception& error) {
      expect(false, what + ": " + error.what());
    }
  };
  for (DType d : kAll) {
    const std::string name = dtype_name(d);
    auto launch = fake_launch("a + b", d, d, {1000}, {1});
    compile(elementwise_text(launch), "add, dense, " + name);
    launch = fake_launch("a * b", d, d, {10, 100}, {0, 1});
    compile(elementwise_text(launch), "mul, broadcast rows, " + name);
    launch = fake_launch("a - b", d, d, {3, 5, 7}, {1, 21, 3});
    compile(elementwise_text(launch), "sub, strided, " + name);
    const DType sum = is_integral(d, true) ? DType::Int64 : d;
    for (uint64_t reduced : {uint64_t(1), uint64_t(2), uint64_t(3)}) {
      void* aligned = reinterpret_cast<void*>(uintptr_t(4096));
      auto texts = reduce_texts(make_reduce(sum_formula(), sum, d, sum, aligned, aligned,
                                            {4096, 4096}, {4096, 1}, reduced), 132);
      for (const KernelText& text : texts) compile(text, "sum " + std::to_string(reduced) + name);
    }
  }
  auto wide = fake_launch("a + b", DType::Float32, DType::Float32, {70000, 70000}, {1, 70000});
  compile(elementwise_text(wide), "64-bit offsets");
  std::printf("%s: %d kernels\n", target.c_str(), kernels);
}

void check_compile_errors_and_cache() {
  auto launch = fake_launch("no_such_function(a) + b", DType::Float32, DType::Float32, {8}, {1});
  const std::string target = nvrtc_target(nvrtc_architectures().back());
  const std::string text = message_of<CudaError>(
      [&] { compile_kernel(elementwise_text(launch), target); });
  expect(contains(text, "no_such_function") && contains(text, " > ") &&
             contains(text, "#define FACULA_BODY"),
         "compile errors show log and numbered lines: " + text);

  char directory[] = "/tmp/facula_check_XXXXXX";
  expect(mkdtemp(directory) != nullptr, "a temporary folder");
  const char* before = std::getenv("FACULA_CACHE_DIR");
  const std::string saved = before ? before : "";
  setenv("FACULA_CACHE_DIR", directory, 1);
  expect(kernel_cache_directory() == std::string(directory) + "/kernels", "FACULA_CACHE_DIR rules");
  launch = fake_launch("a + b", DType::Float32, DType::Float32, {8}, {1});
  const std::string image = compile_kernel(elementwise_text(launch), target);
  expect(compile_kernel(elementwise_text(launch), target) == image, "the cache gives the same image");
  const std::string key = kernel_cache_key("some key");
  std::string got;
  write_cached_kernel(key, "an image");
  expect(read_cached_kernel(key, &got) && got == "an image", "images come back from the cache");
  const std::string path = kernel_cache_directory() + "/" + key;
  { std::ofstream(path, std::ios::app) << "x"; }
  expect(!read_cached_kernel(key, &got), "damaged files count as absent");
  write_cached_kernel(key, "an image");
  expect(read_cached_kernel(key, &got), "and are replaced");
  { std::ofstream(path, std::ios::trunc) << "fac"; }
  expect(!read_cached_kernel(key, &got), "truncated files count as absent");
  setenv("FACULA_CACHE_DIR", "/proc/nowhere", 1);
  expect(compile_kernel(elementwise_text(launch), target).size() == image.size(),
         "a cache that cannot be written does not matter");
  if (before) setenv("FACULA_CACHE_DIR", saved.c_str(), 1);
  else unsetenv("FACULA_CACHE_DIR");
  expect(std::system((std::string("rm -r ") + directory).c_str()) == 0, "cleaned up");
}

// ---- checks on a device

void check_device_queries() {
  const DeviceProperties& p = device_properties(0);
  std::printf("%s, compute capability %d.%d, %d multiprocessors, %.1f GiB, driver %d, NVRTC %d.%d\n",
              p.name.c_str(), p.major, p.minor, p.multiprocessors,
              double(p.total_memory) / (1 << 30), driver_version(), nvrtc_version().major,
              nvrtc_version().minor);
  std::printf("NVRTC: %s\n", library_path(Library::Nvrtc).c_str());
  expect(p.multiprocessors > 0 && p.warp_size == 32 && !p.name.empty(), "properties");
  const MemoryInfo info = memory_info(0);
  expect(info.free > 0 && info.free <= info.total, "memory info");
  expect(contains(message_of<NoDevice>([] { set_current_device(99); }), "99"),
         "a device number out of range is named");
  expect(current_device() == 0, "and the current device stays");
}

void check_allocator() {
  empty_cache(0);
  const AllocatorStats start = allocator_stats(0);
  void* first = allocate(1000, 0);
  expect(reinterpret_cast<uintptr_t>(first) % 512 == 0, "blocks are aligned to 512");
  expect(allocator_stats(0).allocated - start.allocated == 1024, "sizes round up to 512");
  void* second = allocate(600, 0);
  expect(static_cast<char*>(second) - static_cast<char*>(first) == 1024, "small blocks share a segment");
  deallocate(first, 0);
  expect(allocate(900, 0) == first, "a freed block is used again");
  deallocate(first, 0);
  deallocate(second, 0);
  void* joined = allocate(1024 + 1024, 0);
  expect(joined == first, "free neighbours are joined");
  deallocate(joined, 0);

  CuStream stream = create_stream(0);
  void* elsewhere = allocate(900, 0, stream);
  expect(elsewhere != first, "streams do not share blocks");
  record_stream(elsewhere, 0, nullptr);
  deallocate(elsewhere, 0);
  synchronize(0);
  expect(allocate(900, 0, stream) == elsewhere, "recorded blocks come back when their work is done");
  deallocate(elsewhere, 0);

  void* large = allocate(size_t(64) << 20, 0);
  void* medium = allocate(size_t(3) << 20, 0);
  expect(allocator_stats(0).peak_allocated >= (size_t(67) << 20), "the peak is kept");
  deallocate(large, 0);
  void* part = allocate(size_t(40) << 20, 0);
  expect(part == large, "large blocks are split");
  deallocate(part, 0);
  deallocate(medium, 0);
  reset_peak_stats(0);
  expect(allocator_stats(0).peak_allocated == allocator_stats(0).allocated, "peaks can be reset");

  const std::string text =
      message_of<OutOfMemory>([] { allocate(size_t(1) << 50, 0); });
  expect(contains(text, "CUDA out of memory. Tried to allocate 1048576.00 GiB") &&
             contains(text, "free") && contains(text, "live tensors"), "out of memory: " + text);
  expect(!message_of<OutOfMemory>([] { allocate(~size_t(0), 0); }).empty(), "absurd sizes");
  void* after = allocate(4096, 0);
  expect(after != nullptr, "the allocator goes on");
  deallocate(after, 0);
  expect(allocate(0, 0) == nullptr, "nothing needs no memory");
  empty_cache(0);
  expect(allocator_stats(0).allocated == start.allocated, "all is given back");
  expect(allocator_stats(0).reserved == start.reserved, "and the cache is empty");
  destroy_stream(0, stream);
}

void check_host_copies() {
  const auto values = random_values<float>(100003);
  Buffer<float> buffer(values);
  expect(std::memcmp(buffer.host().data(), values.data(), values.size() * 4) == 0, "round trip");
  auto* pinned = static_cast<float*>(allocate_pinned(values.size() * 4));
  CuStream stream = create_stream(0);
  copy_to_host(pinned, buffer.get(), values.size() * 4, 0, stream, false);
  synchronize_stream(0, stream);
  expect(std::memcmp(pinned, values.data(), values.size() * 4) == 0, "pinned and asynchronous");
  deallocate_pinned(pinned);
  destroy_stream(0, stream);
  Buffer<float> twin(values.size());
  copy_on_device(twin.get(), buffer.get(), values.size() * 4, 0, nullptr);
  expect(twin.host() == values, "on the device");
  set_bytes(twin.get(), 0, values.size() * 4, 0, nullptr);
  expect(twin.host() == std::vector<float>(values.size()), "cleared");
}

template <class T>
void check_moves() {
  const int64_t rows = 37, cols = 53;
  const auto values = random_values<T>(size_t(rows * cols));
  Buffer<T> in(values), out(values.size());
  StridedCopy copy;
  copy.to = out.get();
  copy.from = in.get();
  copy.to_dtype = copy.from_dtype = DTypeOf<T>::value;
  copy.ndim = 2;
  const int64_t item = sizeof(T);
  copy.sizes[0] = cols, copy.sizes[1] = rows;
  copy.to_strides[0] = rows * item, copy.to_strides[1] = item;
  copy.from_strides[0] = item, copy.from_strides[1] = cols * item;
  copy_strided(copy, 0, nullptr);
  const auto got = out.host();
  bool good = true;
  for (int64_t i = 0; i < rows * cols; ++i) {
    good = good && std::memcmp(&got[size_t(i)], &values[size_t(i % rows * cols + i / rows)],
                               sizeof(T)) == 0;
  }
  expect(good, std::string("transposed copy of ") + dtype_name(DTypeOf<T>::value));

  const T value = convert<T>(2.5);
  const int64_t sizes[] = {rows, cols / 2}, strides[] = {cols * item, 2 * item};
  fill_strided(out.get(), DTypeOf<T>::value, &value, 2, sizes, strides, 0, nullptr);
  auto filled = out.host();
  good = true;
  for (int64_t i = 0; i < rows * cols; ++i) {
    const bool touched = i % cols % 2 == 0 && i % cols / 2 < cols / 2;
    good = good && std::memcmp(&filled[size_t(i)], touched ? &value : &got[size_t(i)],
                               sizeof(T)) == 0;
  }
  expect(good, std::string("strided fill of ") + dtype_name(DTypeOf<T>::value));
}

// Every dtype to every other, bit for bit what the CPU's convert gives. Compiles from several
// threads at once.
void check_casts() {
  std::vector<double> source = {0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.7, 100, 127, 128, 200, 255, 256, 300,
                                -128, -129, 448, 464, 500, 32767, 40000, 57344, 65504, 65519, 65520,
                                70000, 1e-3, 1e-6, 6e-8, 3e-8, 1e-10, 1e10, 3e9, -3e9, 5e9, 1e20, 1e300,
                                2147483647, -2147483648.0, 9.3e18, 1.7e19, 2e19, 16777217, 1e38, 4e38};
  for (double x : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                   std::numeric_limits<double>::quiet_NaN()}) source.push_back(x);
  for (int i = 0; i < 2000; ++i) {
    std::uniform_real_distribution<double> exponent(-30, 30), sign(-1, 1);
    const double e = exponent(generator);
    source.push_back((sign(generator) < 0 ? -1 : 1) * std::exp2(e));
  }
  const size_t count = source.size();
  std::vector<std::string> failures(kDTypes * kDTypes);
  auto cast = [&](DType from, DType to) {
    dispatch_dtype(from, [&](auto from_tag) {
      using From = typename decltype(from_tag)::type;
      std::vector<unsigned char> bytes(count * sizeof(From));
      auto* values = reinterpret_cast<From*>(bytes.data());
      for (size_t i = 0; i < count; ++i) {
        if constexpr (is_complex_v<From>) {
          values[i] = convert<From>(Complex<double>(source[i], source[(i * 7) % count]));
        } else {
          values[i] = convert<From>(source[i]);
        }
      }
      dispatch_dtype(to, [&](auto to_tag) {
        using To = typename decltype(to_tag)::type;
        Buffer<unsigned char> in(bytes), out(count * sizeof(To));
        StridedCopy copy;
        copy.to = out.get();
        copy.from = in.get();
        copy.to_dtype = to;
        copy.from_dtype = from;
        copy.ndim = 1;
        copy.sizes[0] = int64_t(count);
        copy.to_strides[0] = sizeof(To);
        copy.from_strides[0] = sizeof(From);
        copy_strided(copy, 0, nullptr);
        const auto got = out.host();
        const auto* results = reinterpret_cast<const To*>(got.data());
        for (size_t i = 0; i < count; ++i) {
          const To wanted = convert<To>(values[i]);
          auto same = [](auto x, auto y) {
            if constexpr (std::is_integral_v<decltype(x)>) return x == y;
            else {
              const double g = convert<double>(x), w = convert<double>(y);
              return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(g) && std::isnan(w));
            }
          };
          bool good;
          if constexpr (is_complex_v<To>) {
            good = same(results[i].re, wanted.re) && same(results[i].im, wanted.im);
          } else {
            good = same(results[i], wanted);
          }
          if (!good) {
            failures[size_t(from) * kDTypes + size_t(to)] =
                std::string(dtype_name(from)) + " to " + dtype_name(to) + " of " +
                std::to_string(source[i]);
            return;
          }
        }
      });
    });
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int pair = t; pair < kDTypes * kDTypes; pair += 4) {
        try {
          cast(DType(pair / kDTypes), DType(pair % kDTypes));
        } catch (const std::exception& error) {
          failures[size_t(pair)] = error.what();
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const std::string& failure : failures) expect(failure.empty(), "cast " + failure);
}

template <class T>
void check_dense(double tolerance) {
  const DType d = DTypeOf<T>::value;
  for (int64_t n : {1, 3, 4, 5, 1023, 70001}) {
    for (int shift : {0, 1}) {  // elements off an aligned address
      const auto a = random_values<T>(size_t(n + shift)), b = random_values<T>(size_t(n + shift));
      Buffer<T> da(a), db(b), out{size_t(n + shift)};
      launch_elementwise(make_launch(kLogAddExp, d, {n},
                                     {{out.get() + shift, d, {1}}, {da.get() + shift, d, {1}},
                                      {db.get() + shift, d, {1}}}));
      auto got = out.host();
      got.erase(got.begin(), got.begin() + shift);
      expect_near(got, [&](size_t i) {
        return log_add_exp(convert<double>(a[i + shift]), convert<double>(b[i + shift]));
      }, tolerance, std::string("dense ") + dtype_name(d) + " " + std::to_string(n));
    }
  }
}

// out = a - b over one shape, with the given strides (elements) for both inputs.
void check_layout(const std::string& what, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& out_strides, const std::vector<int64_t>& a_strides,
                  const std::vector<int64_t>& b_strides, int64_t room, int64_t a_start = 0) {
  const int64_t n = count_of(sizes);
  const auto a = random_values<float>(size_t(room)), b = random_values<float>(size_t(room));
  Buffer<float> da(a), db(b), out{size_t(room)};
  const DType f = DType::Float32;
  launch_elementwise(make_launch("a - b", f, sizes,
                                 {{out.get(), f, out_strides}, {da.get() + a_start, f, a_strides},
                                  {db.get(), f, b_strides}}));
  const auto raw = out.host();
  std::vector<float> got(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) got[size_t(i)] = raw[size_t(offset_of(i, sizes, out_strides))];
  expect_near(got, [&](size_t i) {
    return double(a[size_t(a_start + offset_of(int64_t(i), sizes, a_strides))]) -
           b[size_t(offset_of(int64_t(i), sizes, b_strides))];
  }, 1e-6, what);
}


void check_layouts_on_device() {
  check_layout("broadcast row", {37, 64}, {64, 1}, {64, 1}, {0, 1}, 37 * 64);
  check_layout("broadcast column", {37, 64}, {64, 1}, {64, 1}, {1, 0}, 37 * 64);
  check_layout("broadcast row, odd width", {37, 63}, {63, 1}, {63, 1}, {0, 1}, 37 * 63);
  check_layout("one number", {37, 63}, {63, 1}, {63, 1}, {0, 0}, 37 * 63);
  check_layout("two numbers", {1001}, {1}, {0}, {0}, 1001);
  check_layout("transposed input", {40, 50}, {50, 1}, {1, 40}, {50, 1}, 2000);
  check_layout("all transposed", {40, 50}, {1, 40}, {1, 40}, {1, 40}, 2000);
  check_layout("every other element", {500}, {1}, {2}, {2}, 1000);
  check_layout("strided result", {500}, {2}, {1}, {1}, 1000);
  check_layout("negative step", {500}, {1}, {-1}, {1}, 500, 499);
  check_layout("padded rows", {20, 32}, {32, 1}, {40, 1}, {36, 1}, 800);
  check_layout("padded rows, odd", {20, 32}, {32, 1}, {41, 1}, {37, 1}, 820);
  check_layout("three permuted dims", {7, 8, 9}, {72, 9, 1}, {1, 7, 56}, {8, 1, 56}, 504);
  check_layout("five permuted dims", {3, 4, 5, 2, 6}, dense_strides({3, 4, 5, 2, 6}),
               {1, 3, 12, 60, 120}, {240, 60, 12, 6, 1}, 720);
  // 18 dimensions that cannot be merged: the second input's are in reverse order.
  std::vector<int64_t> sizes(18, 2), forward = dense_strides(sizes), backward(forward.rbegin(),
                                                                             forward.rend());
  check_layout("18 dims", sizes, forward, forward, backward, 1 << 18);
  check_layout("no dims", {}, {}, {}, {}, 1);
  check_layout("empty", {3, 0, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1);
}

// More than 2^31 elements, dense and through 64-bit offsets.
void check_huge() {
  const int64_t rows = 65537, cols = 32800;  // 2.15e9 bytes
  if (memory_info(0).free < size_t(6) << 30) return;
  const DType u8 = DType::UInt8;
  Buffer<uint8_t> a(size_t(rows * cols)), out(size_t(rows * cols));
  auto launch = make_launch("index % 251", DType::Int64, {rows * cols}, {{a.get(), u8, {1}}});
  launch.uses_index = true;
  launch_elementwise(launch);
  launch_elementwise(make_launch("a + 1", u8, {rows, cols}, {{out.get(), u8, {cols, 1}},
                                                             {a.get(), u8, {1, rows}}}));
  bool good = true;
  for (int i = 0; i < 200; ++i) {
    const int64_t at = i < 100 ? i * 1000003 : rows * cols - 1 - i * 100003;
    uint8_t got;
    copy_to_host(&got, out.get() + at, 1, 0, nullptr);
    const int64_t from = at / cols + at % cols * rows;
    good = good && got == uint8_t(from % 251 + 1);
  }
  expect(good, "a transposition of more than 2^31 elements");
}

void check_params_masks_and_index() {
  const DType f = DType::Float32;
  const auto a = random_values<float>(1000);
  Buffer<float> da(a), out(1000);
  std::vector<uint8_t> mask(1000);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 0 ? 7 : 0;
  Buffer<uint8_t> dmask(mask);
  auto launch = make_launch("where(b, a * alpha, p1 + p2)", f, {1000},
                            {{out.get(), f, {1}}, {da.get(), f, {1}}, {dmask.get(), DType::Bool, {1}}});
  launch.masks = 2;
  launch.params.add(DType::Float64, 2.5, "alpha");
  launch.params.add(DType::Float16, 0.5);
  launch.params.add(DType::Int64, int64_t(40));
  launch_elementwise(launch);
  expect_near(out.host(), [&](size_t i) { return mask[i] ? a[i] * 2.5 : 40.5; }, 1e-6,
              "parameters and a mask");

  launch = make_launch("p0 + index * p1", f, {10, 100}, {{out.get(), f, {1, 10}}});
  launch.uses_index = true;
  launch.params.add(f, 1.0);
  launch.params.add(f, 0.25);
  launch_elementwise(launch);
  expect_near(out.host(), [](size_t i) { return 1 + 0.25 * double(i % 10 * 100 + i / 10); }, 1e-6,
              "index counts in row-major order whatever the strides");

  Buffer<uint8_t> flags(1000);
  launch_elementwise(make_launch("a > 0.5", f, {1000}, {{flags.get(), DType::Bool, {1}},
                                                        {da.get(), f, {1}}}));
  expect_near(flags.host(), [&](size_t i) { return a[i] > 0.5f ? 1.0 : 0.0; }, 0, "comparison");
  launch_elementwise(make_launch("if (isnan(a)) return inf; return a * pi;", f, {1000},
                                 {{out.get(), f, {1}}, {da.get(), f, {1}}}));
  expect_near(out.host(), [&](size_t i) { return a[i] * 3.14159265358979; }, 1e-6, "statements");
  Buffer<int32_t> wide(1000);
  launch_elementwise(make_launch("a * 200", DType::UInt8, {1000},
                                 {{wide.get(), DType::Int32, {1}}, {dmask.get(), DType::UInt8, {1}}}));
  expect_near(wide.host(), [&](size_t i) { return mask[i] * 200 % 256; }, 0,
              "values wrap in the compute type before they are stored wider");
  launch_elementwise(make_launch("a + a", f, {1000}, {{da.get(), f, {1}}, {da.get(), f, {1}}}));
  expect_near(da.host(), [&](size_t i) { return 2.0 * a[i]; }, 0, "in place");
}

template <class T>
void check_integers() {
  const DType d = DTypeOf<T>::value;
  const auto a = random_values<T>(4000, is_unsigned(d) ? 0 : -100, 100);
  auto b = random_values<T>(4000, is_unsigned(d) ? 1 : -9, 9);
  for (T& x : b) x = x == 0 ? T(1) : x;
  Buffer<T> da(a), db(b), out(4000);
  auto apply = [&](const char* body, auto wanted) {
    launch_elementwise(make_launch(body, d, {4000}, {{out.get(), d, {1}}, {da.get(), d, {1}},
                                                     {db.get(), d, {1}}}));
    expect_near(out.host(), [&](size_t i) {
      return double(T(wanted(int64_t(a[i]), int64_t(b[i]))));
    }, 0, std::string(body) + " of " + dtype_name(d));
  };
  auto floor_div = [](int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
  apply("a + b", [](int64_t x, int64_t y) { return x + y; });
  apply("a * b - a", [](int64_t x, int64_t y) { return x * y - x; });
  apply("floor_divide(a, b)", floor_div);
  apply("remainder(a, b)", [&](int64_t x, int64_t y) { return x - floor_div(x, y) * y; });
  apply("fmod(a, b)", [](int64_t x, int64_t y) { return x % y; });
  apply("max(a, b) - min(a, b)", [](int64_t x, int64_t y) { return std::abs(x - y); });
  apply("gcd(a, b) + lcm(b, b)",
        [](int64_t x, int64_t y) { return std::gcd(x, y) + std::abs(y); });
  apply("left_shift(b, T(2)) - right_shift(a, T(1))", [](int64_t x, int64_t y) { return y * 4 - (x >> 1); });
  apply("pow(b, 3)", [](int64_t, int64_t y) { return y * y * y; });
  apply("abs(a) + sign(b)", [](int64_t x, int64_t y) { return std::abs(x) + (y > 0) - (y < 0); });
}

template <class T>
void check_math(double tolerance) {
  using Unary = double (*)(double);
  struct Row {
    const char* body;
    Unary wanted;
    double low, high;
  };
  const Row rows[] = {
      {"exp(a)", std::exp, -5, 5}, {"expm1(a)", std::expm1, -5, 5}, {"log(a)", std::log, 0.01, 9},
      {"log1p(a)", std::log1p, -0.9, 9}, {"log2(a)", std::log2, 0.01, 9},
      {"log10(a)", std::log10, 0.01, 9}, {"exp2(a)", std::exp2, -5, 5}, {"sqrt(a)", std::sqrt, 0, 9},
      {"rsqrt(a)", [](double x) { return 1 / std::sqrt(x); }, 0.1, 9},
      {"sin(a)", std::sin, -9, 9}, {"cos(a)", std::cos, -9, 9}, {"tan(a)", std::tan, -1.5, 1.5},
      {"asin(a)", std::asin, -1, 1}, {"acos(a)", std::acos, -1, 1}, {"atan(a)", std::atan, -9, 9},
      {"sinh(a)", std::sinh, -3, 3}, {"cosh(a)", std::cosh, -3, 3}, {"tanh(a)", std::tanh, -5, 5},
      {"asinh(a)", std::asinh, -5, 5}, {"acosh(a)", std::acosh, 1, 9},
      {"atanh(a)", std::atanh, -0.9, 0.9}, {"erf(a)", std::erf, -3, 3},
      {"erfc(a)", std::erfc, -3, 3}, {"lgamma(a)", [](double x) { return std::lgamma(x); }, 0.1, 9},
      {"erfinv(erf(a))", [](double x) { return x; }, -1, 1},
      {"sigmoid(a)", [](double x) { return 1 / (1 + std::exp(-x)); }, -9, 9},
      {"floor(a)", std::floor, -9, 9}, {"ceil(a)", std::ceil, -9, 9}, {"trunc(a)", std::trunc, -9, 9},
      {"round(a)", std::nearbyint, -9, 9}, {"abs(a)", std::fabs, -9, 9},
      {"sign(a)", [](double x) { return double((x > 0) - (x < 0)); }, -9, 9},
      {"relu(a)", [](double x) { return std::max(x, 0.0); }, -9, 9},
      {"square(a) + reciprocal(a)", [](double x) { return x * x + 1 / x; }, 0.1, 9},
      {"clamp(a, -1, 0.5)", [](double x) { return std::min(std::max(x, -1.0), 0.5); }, -3, 3},
      {"pow(a, 2.5)", [](double x) { return std::pow(x, 2.5); }, 0, 9},
      {"hypot(a, 2) + atan2(a, 3)", [](double x) { return std::hypot(x, 2) + std::atan2(x, 3); }, -3, 3},
      {"remainder(a, -0.75)",
       [](double x) { return x - std::floor(x / -0.75) * -0.75; }, -9, 9},
      {"floor_divide(a, 0.75)", [](double x) { return std::floor(x / 0.75); }, -9, 9},
      {"fmod(a, 0.75)", [](double x) { return std::fmod(x, 0.75); }, -9, 9},
      {"digamma(a)", [](double x) {  // by the recurrence from far out
         double r = 0;
         for (; x < 40; ++x) r -= 1 / x;
         return r + std::log(x) - 0.5 / x - 1 / (12 * x * x) + 1 / (120 * x * x * x * x);
       }, 0.5, 9},
      {"frac(a) + sgn(a)", [](double x) { return x - std::trunc(x) + (x > 0) - (x < 0); }, -9, 9},
      {"logaddexp(a, 1.5)", [](double x) { return log_add_exp(x, 1.5); }, -9, 9},
      {"xlogy(a, 2.0) + entr(a)", [](double x) { return x * std::log(2) - x * std::log(x); }, 0.1, 9},
      {"gelu(a) + silu(a)", [](double x) {
         return 0.5 * x * std::erfc(-x * std::sqrt(0.5)) + x / (1 + std::exp(-x));
       }, -5, 5},
      {"softplus(a) - log_sigmoid(a) + gelu_tanh(a)", [](double x) {
         return std::log1p(std::exp(x)) + std::log1p(std::exp(-x)) +
                0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
       }, -5, 5},
      {"sinc(a) + lerp(a, 2.0, 0.75)", [](double x) {
         return std::sin(3.14159265358979 * x) / (3.14159265358979 * x) + 0.25 * x + 1.5;
       }, 0.1, 5},
      {"i0(a)", [](double x) { return std::cyl_bessel_i(0, x); }, 0, 5},
      {"copysign(a, -1) + where(isfinite(a), 0, nan)", [](double x) { return -std::fabs(x); }, -9, 9},
  };
  const DType d = DTypeOf<T>::value;
  for (const Row& row : rows) {
    const auto a = random_values<T>(2000, row.low, row.high);
    Buffer<T> da(a), out(a.size());
    launch_elementwise(make_launch(row.body, d, {2000}, {{out.get(), d, {1}}, {da.get(), d, {1}}}));
    expect_near(out.host(), [&](size_t i) { return row.wanted(convert<double>(a[i])); }, tolerance,
                std::string(row.body) + " of " + dtype_name(d));
  }
}

template <class T>
void check_complex(double tolerance) {
  using C = std::complex<double>;
  struct Row {
    const char* body;
    C (*wanted)(C, C);
  };
  const Row rows[] = {
      {"a * b + 1", [](C a, C b) { return a * b + 1.0; }},
      {"a / b", [](C a, C b) { return a / b; }},
      {"2 / b - a", [](C a, C b) { return 2.0 / b - a; }},
      {"exp(a) + conj(b)", [](C a, C b) { return std::exp(a) + std::conj(b); }},
      {"log(a) * sqrt(b)", [](C a, C b) { return std::log(a) * std::sqrt(b); }},
      {"sin(a) + cos(b)", [](C a, C b) { return std::sin(a) + std::cos(b); }},
      {"tanh(a) + tan(b)", [](C a, C b) { return std::tanh(a) + std::tan(b); }},
      {"asin(a) + acosh(b)", [](C a, C b) { return std::asin(a) + std::acosh(b); }},
      {"acos(a) * asinh(b)", [](C a, C b) { return std::acos(a) * std::asinh(b); }},
      {"atan(a) - atanh(b)", [](C a, C b) { return std::atan(a) - std::atanh(b); }},
      {"log1p(a) + expm1(b) + sgn(a)", [](C a, C b) {
         return std::log(1.0 + a) + std::exp(b) - 1.0 + a / std::abs(a);
       }},
      {"pow(a, b)", [](C a, C b) { return std::pow(a, b); }},
      {"sign(a) * abs(b)", [](C a, C b) { return a / std::abs(a) * std::abs(b); }},
      {"where(a == b, a, sigmoid(b))", [](C, C b) { return 1.0 / (1.0 + std::exp(-b)); }},
  };
  const DType d = DTypeOf<T>::value;
  const auto a = random_values<T>(500), b = random_values<T>(500);
  Buffer<T> da(a), db(b), out(a.size());
  auto wide = [](T z) { return C(double(z.re), double(z.im)); };
  for (const Row& row : rows) {
    launch_elementwise(make_launch(row.body, d, {500}, {{out.get(), d, {1}}, {da.get(), d, {1}},
                                                        {db.get(), d, {1}}}));
    expect_near(out.host(), [&](size_t i) {
      const C w = row.wanted(wide(a[i]), wide(b[i]));
      return Complex<double>(w.real(), w.imag());
    }, tolerance, std::string(row.body) + " of " + dtype_name(d));
  }
}

// ---- reductions

// Reference: values of every result's elements in row-major order, folded by `fold`.
template <class In, class Out>
void check_reduce(const std::string& what, const ReduceFormula& formula, DType compute,
                  const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                  uint64_t reduced, double tolerance,
                  const std::function<double(const std::vector<double>&)>& fold,
                  double low = -3, double high = 3, double p0 = 0, int64_t start = 0,
                  bool uses_index = false) {
  int64_t room = 1 + start, kept = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    room += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
    if (!(reduced >> d & 1)) kept *= sizes[d];
  }
  const auto values = random_values<In>(size_t(room), low, high);
  Buffer<In> in(values);
  Buffer<Out> out{size_t(kept)};
  auto launch = make_reduce(formula, compute, DTypeOf<In>::value, DTypeOf<Out>::value,
                            in.get() + start, out.get(), sizes, strides, reduced);
  launch.uses_index = uses_index;
  launch.params.add(compute_of(compute), p0);
  launch_reduce(launch);
  const auto got = out.host();
  std::vector<std::vector<double>> groups(static_cast<size_t>(kept));
  for (int64_t i = 0; i < count_of(sizes); ++i) {
    int64_t rest = i, o = 0, step = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      if (!(reduced >> d & 1)) o += rest % sizes[d] * step, step *= sizes[d];
      rest /= sizes[d];
    }
    groups[size_t(o)].push_back(
        convert<double>(values[size_t(start + offset_of(i, sizes, strides))]));
  }
  expect_near(got, [&](size_t o) { return fold(groups[o]); }, tolerance, what);
  launch_reduce(launch);
  const auto again = out.host();
  expect(std::memcmp(again.data(), got.data(), got.size() * sizeof(Out)) == 0, what + ", repeated");
}

double sum_of(const std::vector<double>& values) {
  double total = 0;
  for (double x : values) total += x;
  return total;
}

void check_sum_layouts() {
  const ReduceFormula sum = sum_formula();
  const DType f = DType::Float32;
  auto check = [&](const std::string& what, const std::vector<int64_t>& sizes,
                   const std::vector<int64_t>& strides, uint64_t reduced, int64_t start = 0) {
    check_reduce<float, float>("sum, " + what, sum, f, sizes, strides, reduced, 2e-4, sum_of, -1, 2,
                               0, start);
  };
  for (uint64_t reduced = 0; reduced < 8; ++reduced) {
    const std::string name = "dims " + std::to_string(reduced);
    check(name, {17, 12, 40}, {480, 40, 1}, reduced);
    check(name + " permuted", {17, 12, 40}, {1, 680, 17}, reduced);
    check(name + " padded", {17, 12, 40}, {13 * 44, 44, 1}, reduced);
    check(name + " misaligned", {17, 12, 41}, {492, 41, 1}, reduced, 1);
  }
  for (int64_t n : {1, 2, 3, 5, 7, 31, 33, 1000, 65537, 5000003}) {
    check("all of " + std::to_string(n), {n}, {1}, 1);
  }
  check("tall, 3 columns", {100000, 3}, {3, 1}, 1);
  check("tall, 257 columns", {50000, 257}, {257, 1}, 1);
  check("few long rows", {3, 700000}, {700000, 1}, 2);
  check("many short rows", {50000, 7}, {7, 1}, 2);
  check("rows of 100", {5000, 100}, {100, 1}, 2);
  check("every third element", {1000, 300}, {900, 3}, 2);
  check("broadcast", {100, 50}, {0, 1}, 1);
  check("five dims", {3, 4, 5, 6, 7}, {1, 3, 12, 60, 360}, 0b10101);
  check("nothing to reduce", {30, 0}, {1, 1}, 2);
  check("no results", {0, 30}, {30, 1}, 2);
  check("no dims", {}, {}, 0);
}

void check_reduce_kinds() {
  const std::vector<int64_t> shapes[] = {{60, 333}, {2, 300000}, {200000, 6}};
  for (const auto& sizes : shapes) {
    const std::vector<int64_t> strides = dense_strides(sizes);
    for (uint64_t reduced : {uint64_t(1), uint64_t(2), uint64_t(3)}) {
      const std::string where = " " + std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) +
                                " dims " + std::to_string(reduced);
      auto check = [&]<class In, class Out>(TypeTag<In>, TypeTag<Out>, const char* name,
                                            const ReduceFormula& formula, DType compute,
                                            double tolerance, auto fold, double low, double high,
                                            double p0 = 0, bool index = false) {
        check_reduce<In, Out>(name + where, formula, compute, sizes, strides, reduced, tolerance,
                              fold, low, high, p0, 0, index);
      };
      auto largest = [](const std::vector<double>& v) {
        double m = -INFINITY;
        for (double x : v) m = std::max(m, x);
        return m;
      };
      check(TypeTag<Half>{}, TypeTag<float>{}, "sum of float16", sum_formula(), DType::Float16, 1e-4,
            sum_of, -1, 2);
      check(TypeTag<double>{}, TypeTag<double>{}, "sum of float64", sum_formula(), DType::Float64,
            1e-9, sum_of, -1, 2);
      check(TypeTag<int8_t>{}, TypeTag<int64_t>{}, "sum of int8", sum_formula(), DType::Int64, 0,
            sum_of, -100, 100);
      check(TypeTag<float>{}, TypeTag<float>{}, "amax", {"lowest", "a", "maximum(a, b)", "a"},
            DType::Float32, 0, largest, -3, 3);
      check(TypeTag<int16_t>{}, TypeTag<int16_t>{}, "amax of int16",
            {"lowest", "a", "maximum(a, b)", "a"}, DType::Int16, 0, largest, -3000, 3000);
      check(TypeTag<uint8_t>{}, TypeTag<uint8_t>{}, "any", {"False", "a", "a | b", "a"},
            DType::Bool, 0, [](const std::vector<double>& v) {
              for (double x : v) if (x != 0) return 1.0;
              return 0.0;
            }, 0, 1.002);
      check(TypeTag<float>{}, TypeTag<float>{}, "mean", {"0", "a", "a + b", "a / p0"},
            DType::Float32, 1e-4, sum_of, -1, 2, 1);
      check(TypeTag<float>{}, TypeTag<int64_t>{}, "argmax",
            {"return {lowest, 0x7fffffffffffffff};", "indexed(a, index)", "larger(a, b)",
             "a.index", "Indexed<T>", 16},
            DType::Float32, 0, [](const std::vector<double>& v) {
              size_t best = 0;
              for (size_t i = 1; i < v.size(); ++i) if (v[i] > v[best]) best = i;
              return double(best);
            }, -3, 3, 0, true);
      check(TypeTag<float>{}, TypeTag<float>{}, "var",
            {"return {0, 0, 0};", "moments(a)", "merge(a, b)", "a.squares / (a.count - p0)",
             "Moments<T>", 12},
            DType::Float32, 1e-4, [](const std::vector<double>& v) {
              double mean = sum_of(v) / double(v.size()), total = 0;
              for (double x : v) total += (x - mean) * (x - mean);
              return total / double(v.size() - 1);
            }, -1, 2, 1);
    }
  }
  // NaN wins in max, wherever it is.
  std::vector<float> values(10000, 1.0f);
  values[7777] = NAN;
  Buffer<float> in(values), out(1);
  launch_reduce(make_reduce({"lowest", "a", "maximum(a, b)", "a"}, DType::Float32, DType::Float32,
                            DType::Float32, in.get(), out.get(), {10000}, {1}, 1));
  expect(std::isnan(out.host()[0]), "amax gives NaN if there is one");
}

// ---- matrix products

template <class T>
void check_gemm(double tolerance) {
  const DType d = DTypeOf<T>::value;
  struct Shape { int64_t batch, m, n, k; };
  const Shape shapes[] = {{1, 1, 1, 1}, {1, 17, 33, 9}, {3, 16, 24, 8}, {2, 1, 20, 7}, {2, 20, 1, 7},
                          {1, 5, 6, 0}};
  auto wide = [](T x) { return convert<Complex<double>>(x); };
  for (const Shape& s : shapes) {
    for (int form = 0; form < 6; ++form) {
      // Stride forms: 0 row-major, 1 a transposed, 2 b transposed, 3 c transposed, 4 all with
      // steps of two elements, 5 one matrix a for the batch.
      const int64_t x = form == 4 ? 2 : 1;
      const auto a = random_values<T>(size_t(s.batch * s.m * s.k * x * x) + 1, -1, 1);
      const auto b = random_values<T>(size_t(s.batch * s.k * s.n * x * x) + 1, -1, 1);
      const auto c = random_values<T>(size_t(s.batch * s.m * s.n * x * x) + 1, -1, 1);
      Buffer<T> da(a), db(b), dc(c);
      Gemm g;
      g.dtype = d;
      g.batch = s.batch, g.m = s.m, g.n = s.n, g.k = s.k;
      g.a = da.get(), g.b = db.get(), g.c = dc.get();
      g.a_batch = form == 5 ? 0 : s.m * s.k * x * x;
      g.b_batch = s.k * s.n * x * x;
      g.c_batch = s.m * s.n * x * x;
      g.a_row = s.k * x * x, g.a_col = x;
      g.b_row = s.n * x * x, g.b_col = x;
      g.c_row = s.n * x * x, g.c_col = x;
      if (form == 1) g.a_row = 1, g.a_col = s.m;
      if (form == 2) g.b_row = 1, g.b_col = s.k;
      if (form == 3) g.c_row = 1, g.c_col = s.m;
      if (form >= 3) g.alpha = 0.5, g.beta = -2.0;
      gemm(g, 0, nullptr);
      const auto got = dc.host();
      std::vector<T> results;
      std::vector<Complex<double>> wanted;
      for (int64_t i = 0; i < s.batch; ++i) {
        for (int64_t r = 0; r < s.m; ++r) {
          for (int64_t q = 0; q < s.n; ++q) {
            Complex<double> total(0.0);
            for (int64_t p = 0; p < s.k; ++p) {
              total += wide(a[size_t(i * g.a_batch + r * g.a_row + p * g.a_col)]) *
                       wide(b[size_t(i * g.b_batch + p * g.b_row + q * g.b_col)]);
            }
            const size_t at = size_t(i * g.c_batch + r * g.c_row + q * g.c_col);
            results.push_back(got[at]);
            wanted.push_back(g.alpha * total + g.beta * wide(c[at]));
          }
        }
      }
      const std::string what = std::string("gemm ") + dtype_name(d) + " " + std::to_string(s.batch) +
                               "x" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
                               std::to_string(s.k) + " form " + std::to_string(form);
      expect_near(results, [&](size_t i) {
        if constexpr (is_complex_v<T>) return wanted[i];
        else return wanted[i].re;
      }, tolerance, what);
    }
  }
}

void check_gemm_errors() {
  Gemm g;
  g.dtype = DType::Int32;
  expect(contains(message_of<CudaError>([&] { gemm(g, 0, nullptr); }), "int32"),
         "unsupported dtypes are named");
}

void check_streams() {
  CuStream stream = create_stream(0);
  CuEvent start = create_event(0, true), end = create_event(0, true);
  const size_t n = 1 << 22;
  Buffer<float> x(std::vector<float>(n, 1.0f));
  record_event(0, start, stream);
  const DType f = DType::Float32;
  for (int i = 0; i < 10; ++i) {
    launch_elementwise(make_launch("a + 1", f, {int64_t(n)}, {{x.get(), f, {1}}, {x.get(), f, {1}}}),
                       0, stream);
  }
  record_event(0, end, stream);
  wait_event(0, nullptr, end);
  std::vector<float> last(1);
  copy_to_host(last.data(), x.get() + n - 1, 4, 0, nullptr);
  expect(last[0] == 11.0f, "the default stream waits for the event");
  expect(elapsed_milliseconds(0, start, end) > 0, "events measure time");
  expect(event_is_done(0, end) && stream_is_idle(0, stream), "and are done");
  set_current_stream(0, stream);
  expect(current_stream(0) == stream, "the current stream is the thread's");
  std::thread([] { expect(current_stream(0) == nullptr, "and not another thread's"); }).join();
  set_current_stream(0, nullptr);
  destroy_event(0, start);
  destroy_event(0, end);
  destroy_stream(0, stream);
}

// ---- speed

double milliseconds_of(int repeats, const std::function<void()>& work) {
  CuEvent start = create_event(0, true), end = create_event(0, true);
  work();
  record_event(0, start, nullptr);
  for (int i = 0; i < repeats; ++i) work();
  record_event(0, end, nullptr);
  synchronize_event(0, end);
  const double result = elapsed_milliseconds(0, start, end) / repeats;
  destroy_event(0, start);
  destroy_event(0, end);
  return result;
}

void bench() {
  const int64_t n = int64_t(1) << 28;
  const DType f = DType::Float32, h = DType::BFloat16;
  Buffer<float> a(static_cast<size_t>(n)), b(static_cast<size_t>(n)), c(static_cast<size_t>(n));
  auto report = [](const char* name, double ms, double bytes) {
    std::printf("%-28s %8.3f ms  %7.0f GB/s\n", name, ms, bytes / ms / 1e6);
  };
  auto time = [&](const char* name, const ElementwiseLaunch& launch, double bytes) {
    report(name, milliseconds_of(10, [&] { launch_elementwise(launch); }), bytes);
  };
  const double size = double(n) * 4;
  report("memcpy", milliseconds_of(10, [&] { copy_on_device(c.get(), a.get(), size_t(size), 0, nullptr); }),
         2 * size);
  time("a + b", make_launch("a + b", f, {n}, {{c.get(), f, {1}}, {a.get(), f, {1}}, {b.get(), f, {1}}}),
       3 * size);
  time("exp(a)", make_launch("exp(a)", f, {n}, {{c.get(), f, {1}}, {a.get(), f, {1}}}), 2 * size);
  time("a + b, bfloat16", make_launch("a + b", h, {n}, {{c.get(), h, {1}}, {a.get(), h, {1}},
                                                         {b.get(), h, {1}}}), 1.5 * size);
  time("a + row", make_launch("a + b", f, {n / 4096, 4096}, {{c.get(), f, {4096, 1}},
                                                              {a.get(), f, {4096, 1}},
                                                              {b.get(), f, {0, 1}}}), 2 * size);
  time("a + transposed b", make_launch("a + b", f, {16384, 16384},
                                       {{c.get(), f, {16384, 1}}, {a.get(), f, {16384, 1}},
                                        {b.get(), f, {1, 16384}}}), 3 * size);
  for (uint64_t reduced : {uint64_t(1), uint64_t(2), uint64_t(3)}) {
    auto launch = make_reduce(sum_formula(), f, f, f, a.get(), c.get(), {65536, 4096}, {4096, 1},
                              reduced);
    const std::string name = "sum, dims " + std::to_string(reduced);
    report(name.c_str(), milliseconds_of(10, [&] { launch_reduce(launch); }), size);
  }
  auto tiny = make_launch("a + b", f, {4}, {{c.get(), f, {1}}, {a.get(), f, {1}}, {b.get(), f, {1}}});
  std::printf("%-28s %8.2f us\n", "a + b on 4 floats",
              1000 * milliseconds_of(20000, [&] { launch_elementwise(tiny); }));
  std::printf("%-28s %8.2f us\n", "with its allocation", 1000 * milliseconds_of(20000, [&] {
    tiny.ptrs[0] = allocate(16, 0);
    launch_elementwise(tiny);
    deallocate(tiny.ptrs[0], 0);
  }));
  Gemm g;
  g.dtype = h;
  g.m = g.n = g.k = 8192;
  g.a = a.get(), g.b = b.get(), g.c = c.get();
  g.a_row = g.b_row = g.c_row = 8192;
  const double ms = milliseconds_of(10, [&] { gemm(g, 0, nullptr); });
  std::printf("%-28s %8.3f ms  %7.0f TFLOP/s\n", "bfloat16 matmul 8192", ms,
              2 * std::pow(8192, 3) / ms / 1e9);
}

void check_on_device() {
  run("device", check_device_queries);
  run("allocator", check_allocator);
  run("host copies", check_host_copies);
  run("moves", [] {
    check_moves<uint8_t>();
    check_moves<Half>();
    check_moves<float>();
    check_moves<int64_t>();
    check_moves<Complex<double>>();
  });
  run("dense", [] {
    check_dense<float>(1e-5);
    check_dense<double>(1e-13);
    check_dense<Half>(2e-3);
    check_dense<BFloat16>(2e-2);
    check_dense<Float8E5M2>(0.4);
  });
  run("layouts", check_layouts_on_device);
  run("parameters, masks, index", check_params_masks_and_index);
  run("integers", [] {
    check_integers<uint8_t>();
    check_integers<int8_t>();
    check_integers<int16_t>();
    check_integers<uint32_t>();
    check_integers<int32_t>();
    check_integers<int64_t>();
    check_integers<uint64_t>();
  });
  run("math, float32", [] { check_math<float>(1e-5); });
  run("math, float64", [] { check_math<double>(1e-12); });
  run("complex64", [] { check_complex<Complex<float>>(2e-4); });
  run("complex128", [] { check_complex<Complex<double>>(1e-11); });
  run("casts", check_casts);
  run("sums over layouts", check_sum_layouts);
  run("kinds of reduction", check_reduce_kinds);
  run("matmul", [] {
    check_gemm<float>(1e-5);
    check_gemm<double>(1e-12);
    check_gemm<Half>(1e-2);
    check_gemm<BFloat16>(6e-2);
    check_gemm<Complex<float>>(1e-5);
    check_gemm<Complex<double>>(1e-12);
    check_gemm_errors();
  });
  run("streams and events", check_streams);
  run("more than 2^31 elements", check_huge);
}

int run_all(int argc, char** argv) {
  bool compile_only = false, benchmark = false;
  std::string kernels = "src/facula/_kernels";
  std::vector<std::string> targets;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--kernels" && i + 1 < argc) kernels = argv[++i];
    else if (argument == "--compile-only") compile_only = true;
    else if (argument == "--bench") benchmark = true;
    else targets.push_back(argument);
  }
  set_kernel_directory(kernels);
  run("layouts on the host", check_layouts);
  run("division", check_dividers);
  run("formula text", check_formula_text);
  run("compile errors and cache", check_compile_errors_and_cache);
  for (const std::string& target : targets) run("compile", [&] { compile_matrix(target); });
  if (!compile_only) {
    if (is_available()) check_on_device();
    else expect(false, std::string("no device: ") + unavailable_reason());
    if (benchmark && is_available()) run("bench", bench);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}

}  // namespace
}  // namespace facula::cuda

int main(int argc, char** argv) { return facula::cuda::run_all(argc, argv); }

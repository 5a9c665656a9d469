// Checks of csrc/cuda against results computed on the CPU. Prints "N passed, M failed".
//
//   check_cuda [--kernels DIR] [--compile-only] [--bench] [--only NAME] [sm_XX ...]
//
// Targets (sm_90) compile a matrix of kernels for them. With --compile-only nothing needs a GPU.
// Build, from the repository's root:
//   g++ -std=c++20 -O2 -Wall -Wextra -Icsrc tests/cpp/check_cuda*.cpp csrc/cuda/*.cpp
//       -o check_cuda -ldl -lpthread
#include "check_cuda.h"

#include "cuda/matmul.h"

namespace facula::cuda {
namespace {

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
  report("memcpy",
         milliseconds_of(10, [&] { copy_on_device(c.get(), a.get(), size_t(size), 0, nullptr); }),
         2 * size);
  time("a + b",
       make_launch("a + b", f, {n}, {{c.get(), f, {1}}, {a.get(), f, {1}}, {b.get(), f, {1}}}),
       3 * size);
  time("exp(a)", make_launch("exp(a)", f, {n}, {{c.get(), f, {1}}, {a.get(), f, {1}}}), 2 * size);
  time("a + b, bfloat16",
       make_launch("a + b", h, {n}, {{c.get(), h, {1}}, {a.get(), h, {1}}, {b.get(), h, {1}}}),
       1.5 * size);
  time("a + row",
       make_launch("a + b", f, {n / 4096, 4096},
                   {{c.get(), f, {4096, 1}}, {a.get(), f, {4096, 1}}, {b.get(), f, {0, 1}}}),
       2 * size);
  time("a + transposed b",
       make_launch("a + b", f, {16384, 16384},
                   {{c.get(), f, {16384, 1}}, {a.get(), f, {16384, 1}}, {b.get(), f, {1, 16384}}}),
       3 * size);
  for (uint64_t reduced : {uint64_t(1), uint64_t(2), uint64_t(3)}) {
    auto launch =
        make_reduce(sum_formula(), f, f, f, a.get(), c.get(), {65536, 4096}, {4096, 1}, reduced);
    const std::string name = "sum, dims " + std::to_string(reduced);
    report(name.c_str(), milliseconds_of(10, [&] { launch_reduce(launch); }), size);
  }
  auto tiny =
      make_launch("a + b", f, {4}, {{c.get(), f, {1}}, {a.get(), f, {1}}, {b.get(), f, {1}}});
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

int run_all(int argc, char** argv) {
  bool compile_only = false, benchmark = false;
  std::string kernels = "src/facula/_kernels";
  std::vector<std::string> targets;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--kernels" && i + 1 < argc) kernels = argv[++i];
    else if (argument == "--only" && i + 1 < argc) only = argv[++i];
    else if (argument == "--compile-only") compile_only = true;
    else if (argument == "--bench") benchmark = true;
    else targets.push_back(argument);
  }
  set_kernel_directory(kernels);
  check_on_host();
  for (const std::string& target : targets) run("compile", [&] { compile_matrix(target); });
  if (!compile_only && !is_available()) {
    expect(false, std::string("no device: ") + unavailable_reason());
  } else if (!compile_only) {
    check_memory();
    check_elementwise();
    check_reductions();
    check_matmul();
    if (benchmark) run("bench", bench);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}

}  // namespace
}  // namespace facula::cuda

int main(int argc, char** argv) {
  return facula::cuda::run_all(argc, argv);
}

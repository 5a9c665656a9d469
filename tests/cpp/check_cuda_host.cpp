// Checks that need no GPU: layouts, texts, compiling, the cache on disk.
#include <cstdlib>
#include <fstream>

#include "check_cuda.h"
#include "cuda/kernel_cache.h"
#include "cuda/nvrtc.h"

namespace facula::cuda {
namespace {

const DType kAll[] = {
#define X(e, t, n, c) DType::e,
    FACULA_DTYPES(X)
#undef X
};

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
  return make_launch(
      body, compute, sizes,
      {{aligned, dtype, dense}, {aligned, dtype, dense}, {aligned, dtype, b_strides}});
}

void check_compile_errors_and_cache() {
  auto launch = fake_launch("no_such_function(a) + b", DType::Float32, DType::Float32, {8}, {1});
  const std::string target = nvrtc_target(nvrtc_architectures().back());
  const std::string text =
      message_of<CudaError>([&] { compile_kernel(elementwise_text(launch), target); });
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
  expect(compile_kernel(elementwise_text(launch), target) == image,
         "the cache gives the same image");
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

}  // namespace

void check_on_host() {
  run("layouts on the host", check_layouts);
  run("division", check_dividers);
  run("formula text", check_formula_text);
  run("compile errors and cache", check_compile_errors_and_cache);
}

void compile_matrix(const std::string& target) {
  int kernels = 0;
  auto compile = [&](const KernelText& text, const std::string& what) {
    ++kernels;
    try {
      expect(nvrtc_compile(text.entry, assemble(text), target,
                           {"--std=c++17", "--device-as-default-execution-space"})
                     .size() > 100,
             what);
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
                                            {4096, 4096}, {4096, 1}, reduced),
                                132);
      for (const KernelText& text : texts) compile(text, "sum " + std::to_string(reduced) + name);
    }
  }
  auto wide = fake_launch("a + b", DType::Float32, DType::Float32, {70000, 70000}, {1, 70000});
  compile(elementwise_text(wide), "64-bit offsets");
  std::printf("%s: %d kernels\n", target.c_str(), kernels);
}

}  // namespace facula::cuda

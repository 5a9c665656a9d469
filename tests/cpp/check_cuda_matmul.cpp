// Checks of matrix products.
#include "check_cuda.h"
#include "cuda/matmul.h"

namespace facula::cuda {
namespace {

template <class T>
void check_gemm(double tolerance) {
  const DType d = DTypeOf<T>::value;
  struct Shape {
    int64_t batch, m, n, k;
  };
  const Shape shapes[] = {{1, 1, 1, 1},  {1, 17, 33, 9}, {3, 16, 24, 8},
                          {2, 1, 20, 7}, {2, 20, 1, 7},  {1, 5, 6, 0}};
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
      const std::string what = std::string("gemm ") + dtype_name(d) + " " +
                               std::to_string(s.batch) + "x" + std::to_string(s.m) + "x" +
                               std::to_string(s.n) + "x" + std::to_string(s.k) + " form " +
                               std::to_string(form);
      expect_near(
          results,
          [&](size_t i) {
            if constexpr (is_complex_v<T>) return wanted[i];
            else return wanted[i].re;
          },
          tolerance, what);
    }
  }
}

void check_gemm_errors() {
  Gemm g;
  g.dtype = DType::Int32;
  expect(contains(message_of<CudaError>([&] { gemm(g, 0, nullptr); }), "int32"),
         "unsupported dtypes are named");
}

}  // namespace

void check_matmul() {
  run("matmul", [] {
    check_gemm<float>(1e-5);
    check_gemm<double>(1e-12);
    check_gemm<Half>(1e-2);
    check_gemm<BFloat16>(6e-2);
    check_gemm<Complex<float>>(1e-5);
    check_gemm<Complex<double>>(1e-12);
    check_gemm_errors();
  });
}

}  // namespace facula::cuda

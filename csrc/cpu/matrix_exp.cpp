// The matrix exponential by Pade approximants with scaling and squaring (N. J. Higham, "The scaling
// and squaring method for the matrix exponential revisited", 2005).
#include <cmath>
#include <limits>

#include "cpu/gemm.h"
#include "cpu/small_matrix.h"
#include "cpu/spectral.h"
#include "kernels/linalg_matrices.h"

namespace facula {
namespace {

// A degree and the largest 1-norm for which it is exact to the precision of the type.
struct Approximant {
  int degree;
  double largest_norm;
};
constexpr Approximant kSingle[] = {
    {3, 4.258730016922831e-1}, {5, 1.880152677804762}, {7, 3.925724783138660}};
constexpr Approximant kDouble[] = {{3, 1.495585217958292e-2},
                                   {5, 2.539398330063230e-1},
                                   {7, 9.504178996162932e-1},
                                   {9, 2.097847961257068},
                                   {13, 5.371920351148152}};

constexpr int64_t kLarge = 256;

// Of one n x n matrix. The order of memory does not matter: exp(A^T) = exp(A)^T.
template <class T>
class MatrixExp {
 public:
  explicit MatrixExp(int64_t n) : n_(n), size_(n * n), memory_(8 * n * n), pivots_(n) {}

  void run(const T* a, T* out) {
    const double norm = one_norm(a);
    if (!std::isfinite(norm)) {
      for (int64_t i = 0; i < size_; ++i) out[i] = T(std::numeric_limits<R>::quiet_NaN());
      return;
    }
    const Approximant best = choose(norm);
    const int halvings =
        norm > best.largest_norm ? int(std::ceil(std::log2(norm / best.largest_norm))) : 0;
    T* scaled = buffer(0);
    for (int64_t i = 0; i < size_; ++i) scaled[i] = a[i] * T(R(std::ldexp(1.0, -halvings)));
    approximate(scaled, best.degree, out);
    for (int k = 0; k < halvings; ++k) {
      multiply(out, out, buffer(1));
      std::copy(buffer(1), buffer(1) + size_, out);
    }
  }

 private:
  using R = real_of_t<T>;
  T* buffer(int64_t i) { return memory_.data() + i * size_; }

  static double magnitude(const T& x) {
    if constexpr (is_complex_v<T>) return std::hypot(double(x.re), double(x.im));
    else return std::fabs(double(x));
  }

  double one_norm(const T* a) const {
    double largest = 0;
    for (int64_t i = 0; i < n_; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n_; ++j) sum += magnitude(a[i * n_ + j]);
      if (!(sum <= largest)) largest = sum;  // NaN too
      if (std::isnan(largest)) break;
    }
    return largest;
  }

  static Approximant choose(double norm) {
    if constexpr (sizeof(R) == 4) return first_that_fits(kSingle, norm);
    else return first_that_fits(kDouble, norm);
  }
  template <size_t N>
  static Approximant first_that_fits(const Approximant (&list)[N], double norm) {
    for (const Approximant& a : list)
      if (norm <= a.largest_norm) return a;
    return list[N - 1];
  }

  void multiply(const T* a, const T* b, T* c) const {
    Gemm g;
    g.dtype = DTypeOf<T>::value;
    g.batch = 1;
    g.m = g.n = g.k = n_;
    g.a = a, g.b = b, g.c = c;
    g.a_batch = g.b_batch = g.c_batch = 0;
    g.a_row = g.b_row = g.c_row = n_;
    g.a_col = g.b_col = g.c_col = 1;
    gemm(g);
  }

  // out = identity * first + the given multiples of matrices
  void combine(T* out, double first, std::initializer_list<std::pair<double, const T*>> terms) {
    std::fill(out, out + size_, T(0));
    for (int64_t i = 0; i < n_; ++i) out[i * n_ + i] = T(R(first));
    for (const auto& [factor, matrix] : terms) {
      const T f = T(R(factor));
      for (int64_t i = 0; i < size_; ++i) out[i] = out[i] + f * matrix[i];
    }
  }

  // out = (v - u)^-1 (v + u), where u and v are the odd and the even terms of the numerator.
  void approximate(const T* a, int degree, T* out) {
    double c[14];
    c[0] = 1;
    for (int k = 0; k < degree; ++k)
      c[k + 1] = c[k] * double(degree - k) / (double(2 * degree - k) * double(k + 1));
    T *a2 = buffer(1), *a4 = buffer(2), *a6 = buffer(3), *odd = buffer(4), *u = buffer(5),
      *v = buffer(6), *scratch = buffer(7);
    multiply(a, a, a2);
    if (degree >= 5) multiply(a2, a2, a4);
    if (degree >= 7) multiply(a4, a2, a6);
    if (degree == 13) {
      combine(scratch, 0, {{c[13], a6}, {c[11], a4}, {c[9], a2}});
      multiply(a6, scratch, u);
      combine(odd, c[1], {{1, u}, {c[7], a6}, {c[5], a4}, {c[3], a2}});
      combine(scratch, 0, {{c[12], a6}, {c[10], a4}, {c[8], a2}});
      multiply(a6, scratch, u);
      combine(v, c[0], {{1, u}, {c[6], a6}, {c[4], a4}, {c[2], a2}});
    } else if (degree == 9) {
      T* a8 = scratch;
      multiply(a4, a4, a8);
      combine(odd, c[1], {{c[9], a8}, {c[7], a6}, {c[5], a4}, {c[3], a2}});
      combine(v, c[0], {{c[8], a8}, {c[6], a6}, {c[4], a4}, {c[2], a2}});
    } else if (degree == 7) {
      combine(odd, c[1], {{c[7], a6}, {c[5], a4}, {c[3], a2}});
      combine(v, c[0], {{c[6], a6}, {c[4], a4}, {c[2], a2}});
    } else if (degree == 5) {
      combine(odd, c[1], {{c[5], a4}, {c[3], a2}});
      combine(v, c[0], {{c[4], a4}, {c[2], a2}});
    } else {
      combine(odd, c[1], {{c[3], a2}});
      combine(v, c[0], {{c[2], a2}});
    }
    multiply(a, odd, u);
    T* denominator = odd;
    for (int64_t i = 0; i < size_; ++i) denominator[i] = v[i] - u[i];
    for (int64_t i = 0; i < size_; ++i) out[i] = v[i] + u[i];
    // Memory read column-major is the transpose, and polynomials of one matrix commute.
    const int n = int(n_);
    factor_lu(n, n, denominator, n, pivots_.data());
    solve_lu('N', n, n, denominator, n, pivots_.data(), out, n);
  }

  int64_t n_;
  int64_t size_;
  HostArray<T> memory_;
  HostArray<int> pivots_;
};

}  // namespace

void cpu_matrix_exp(const Tensor& a, const Tensor& out) {
  const int64_t n = a.size(-1), size = n * n;
  dispatch_lapack(a.dtype(), [&]<class T> {
    auto run = [&](int64_t begin, int64_t end) {
      MatrixExp<T> exponential(n);
      for (int64_t i = begin; i < end; ++i)
        exponential.run(a.data_as<T>() + i * size, out.data_as<T>() + i * size);
    };
    // The products of large matrices go over the pool themselves.
    if (n >= kLarge) run(0, a.numel() / size);
    else for_matrices(a.numel() / size, 16.0 * double(size) * double(n), run);
  });
}

}  // namespace facula

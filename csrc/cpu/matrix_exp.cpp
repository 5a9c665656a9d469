// The matrix exponential by Taylor polynomials with scaling and squaring. The polynomials are
// factored so that degree 18 takes five products (P. Bader, S. Blanes, F. Casas, "Computing the
// matrix exponential with an optimized Taylor polynomial approximation", 2019), and nothing is
// inverted.
#include <cmath>
#include <limits>
#include <utility>

#include "cpu/gemm.h"
#include "cpu/spectral.h"
#include "kernels/linalg_matrices.h"

namespace facula {
namespace {

// A degree and the largest 1-norms for which its backward error is below the unit roundoff.
struct Polynomial {
  int degree;
  double single_norm, double_norm;
};
constexpr Polynomial kPolynomials[] = {
    {2, 5.978858893805233e-4, 2.580956802971767e-8},
    {4, 5.116619363445086e-2, 3.397168839976962e-4},
    {8, 5.800524627688768e-1, 4.991228871115323e-2},
    {12, 1.461661507209034, 2.996158913811580e-1},
    {18, 3.010066362817634, 1.090863719290036},
};

// Factors of the identity and of powers of A.
using Factors = double[5];
// Degree 12: (b1 + s) s + b0 with s = b3 b3 + b2, over A, A^2, A^3.
constexpr Factors kDegree12[] = {
    {0, 0.46932117595418786031, -0.20099424927047156207, -0.046239461340630845337},
    {5.3159789575987081003, 1.1992679041713244357, 0.011792962409929810311,
     0.011088445285191647477},
    {0.18188869982170465169, 0.05502798439930792559, 0.093515907705362690433,
     0.0061070052889834187641},
    {0, -0.13181061013830184016, -0.020278555405892590793, -0.0067595184686308635978},
};
// Degree 18: (b2 + s) s + b1 with s = b0 b4 + b3, over A, A^2, A^3, A^6.
constexpr Factors kDegree18[] = {
    {0, -0.10036558103014462087, -0.0080292464824115696693, -0.00089213849804572996325, 0},
    {0, 0.39784974949964507615, 1.3678377846041171992, 0.49828962252538267756,
     -0.00063789819459472330924},
    {-10.967639605296206259, 1.6801581387890619718, 0.05717798464788655127,
     -0.0069821012248805208429, 0.000033497501708607053831},
    {-0.090431683239081056197, -0.067640451907138190756, 0.067596130177045964608,
     0.029555257042931552743, -0.000013918025751606070112},
    {0, 0, -0.092336461936711858493, -0.016936493900208171575, -0.000014008679818203615861},
};

constexpr int64_t kLarge = 256;

// Of one n x n matrix. The order of memory does not matter: exp(A^T) = exp(A)^T.
template <class T>
class MatrixExp {
 public:
  explicit MatrixExp(int64_t n) : n_(n), size_(n * n), memory_(kBuffers * n * n) {}

  void run(const T* a, T* out) {
    const double norm = one_norm(a);
    if (!std::isfinite(norm)) {
      for (int64_t i = 0; i < size_; ++i) out[i] = T(std::numeric_limits<R>::quiet_NaN());
      return;
    }
    const Polynomial best = choose(norm);
    const int halvings = norm > largest(best) ? int(std::ceil(std::log2(norm / largest(best)))) : 0;
    T *scaled = buffer(0), *spare = buffer(7), *result = halvings % 2 ? spare : out,
      *next = halvings % 2 ? out : spare;
    const R factor = R(std::ldexp(1.0, -halvings));
    for_elements([&](int64_t i) { scaled[i] = factor * a[i]; });
    approximate(best.degree, result);
    for (int k = 0; k < halvings; ++k) {
      multiply(result, result, next);
      std::swap(result, next);
    }
  }

 private:
  using R = real_of_t<T>;
  static constexpr int kBuffers = 8;
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

  static double largest(const Polynomial& p) {
    return sizeof(R) == 4 ? p.single_norm : p.double_norm;
  }
  static Polynomial choose(double norm) {
    for (const Polynomial& p : kPolynomials)
      if (norm <= largest(p)) return p;
    return kPolynomials[std::size(kPolynomials) - 1];
  }

  // c = a @ b, or c += a @ b
  void multiply(const T* a, const T* b, T* c, bool add = false) const {
    Gemm g;
    g.dtype = DTypeOf<T>::value;
    g.batch = 1;
    g.m = g.n = g.k = n_;
    g.a = a, g.b = b, g.c = c;
    g.a_batch = g.b_batch = g.c_batch = 0;
    g.a_row = g.b_row = g.c_row = n_;
    g.a_col = g.b_col = g.c_col = 1;
    g.beta_re = add;
    gemm(g);
  }

  template <class F>
  void for_elements(F&& f) const {
    parallel_for(0, size_, 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i);
    });
  }
  void add_identity(T* out, double factor) const {
    for (int64_t i = 0; i < n_; ++i) out[i * n_ + i] += T(R(factor));
  }
  // out = f[0] + f[1] a + f[2] a^2 + f[3] a^3 + f[4] a^6, and `more` added.
  void combine(const Factors& f, T* out, const T* more = nullptr) {
    const T *a = buffer(0), *a2 = buffer(1), *a3 = buffer(2), *a6 = buffer(3);
    const R f1 = R(f[1]), f2 = R(f[2]), f3 = R(f[3]), f4 = R(f[4]);
    const auto sum = [=](int64_t i) { return f1 * a[i] + f2 * a2[i] + f3 * a3[i]; };
    if (f4 == 0 && !more) for_elements([&](int64_t i) { out[i] = sum(i); });
    else if (f4 == 0) for_elements([&](int64_t i) { out[i] = sum(i) + more[i]; });
    else if (!more) for_elements([&](int64_t i) { out[i] = sum(i) + f4 * a6[i]; });
    else for_elements([&](int64_t i) { out[i] = sum(i) + f4 * a6[i] + more[i]; });
    if (f[0] != 0) add_identity(out, f[0]);
  }

  // The polynomial of the matrix in the first buffer.
  void approximate(int degree, T* out) {
    T *a = buffer(0), *a2 = buffer(1), *left = buffer(4), *right = buffer(5), *s = buffer(6);
    multiply(a, a, a2);
    if (degree == 2) {
      for_elements([&](int64_t i) { out[i] = a[i] + R(0.5) * a2[i]; });
      add_identity(out, 1);
    } else if (degree == 4) {
      for_elements([&](int64_t i) {
        left[i] = R(1.0 / 6) * a[i] + R(1.0 / 24) * a2[i];
        out[i] = a[i];
      });
      add_identity(left, 0.5);
      multiply(left, a2, out, true);
      add_identity(out, 1);
    } else if (degree == 8) {
      approximate_8(out);
    } else {
      const bool higher = degree == 18;
      const Factors* b = higher ? kDegree18 : kDegree12;
      multiply(a2, a, buffer(2));
      if (higher) multiply(buffer(2), buffer(2), buffer(3));
      combine(b[higher ? 0 : 3], left);
      if (higher) combine(b[4], right);
      combine(b[higher ? 3 : 2], s);
      multiply(left, higher ? right : left, s, true);
      combine(b[higher ? 2 : 1], left, s);
      combine(b[higher ? 1 : 0], out);
      multiply(left, s, out, true);
    }
  }

  // 1 + A + y A^2 + (x3 A^2 + A4) (x4 + x5 A + x6 A^2 + x7 A4) with A4 = A^2 (x1 A + x2 A^2)
  void approximate_8(T* out) {
    const double root = std::sqrt(177.0), x3 = 2.0 / 3;
    const R x1 = R(x3 * (1 + root) / 88), x2 = R(x3 * (1 + root) / 352),
            x5 = R(11 * (root - 1) / (1260 * x3)), x6 = R(11 * (root - 9) / (5040 * x3)),
            x7 = R((89 - root) / (5040 * x3 * x3)), y = R((857 - 58 * root) / 630);
    T *a = buffer(0), *a2 = buffer(1), *left = buffer(4), *right = buffer(5), *a4 = buffer(6);
    for_elements([&](int64_t i) { left[i] = x1 * a[i] + x2 * a2[i]; });
    multiply(left, a2, a4);
    for_elements([&](int64_t i) {
      left[i] = R(x3) * a2[i] + a4[i];
      right[i] = x5 * a[i] + x6 * a2[i] + x7 * a4[i];
      out[i] = a[i] + y * a2[i];
    });
    add_identity(right, (29 * root - 271) / (315 * x3));
    multiply(left, right, out, true);
    add_identity(out, 1);
  }

  int64_t n_;
  int64_t size_;
  HostArray<T> memory_;
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

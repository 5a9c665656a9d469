// How gamma and beta samples move with their parameters while the value of their distribution
// function stays what it is: dx/da = -(dF/da) / (dF/dx) (Figurnov, Mohamed and Mnih 2018).
// The distribution functions are summed as series or continued fractions together with their
// derivatives, to about 1e-12; PyTorch's approximations are good to about 1e-3.
#include <cmath>
#include <limits>

#include "core/thread_pool.h"
#include "cpu/vector_math.h"
#include "kernels/host_only.h"
#include "op/elementwise.h"
#include "op/kernels/sampling.h"
#include "op/ops/copying.h"
#include "op/ops/reductions.h"
#include "op/ops/sampling.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

constexpr double kPrecision = 1e-16;
constexpr int kMostTerms = 100'000;

// A value with its derivative by one parameter.
struct Dual {
  double v, d;
};
Dual operator+(Dual a, Dual b) {
  return {a.v + b.v, a.d + b.d};
}
Dual operator*(Dual a, Dual b) {
  return {a.v * b.v, a.d * b.v + a.v * b.d};
}
Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}

// A continued fraction b0 + a1 / (b1 + a2 / (b2 + ...)) by Lentz's method. term(i, a, b) gives the
// i-th pair, i >= 1.
template <class Term>
Dual continued_fraction(Dual b0, Term&& term) {
  Dual f = b0, c = b0, d = {0, 0};
  for (int i = 1; i < kMostTerms; ++i) {
    Dual a, b;
    term(i, a, b);
    d = Dual{1, 0} / (b + a * d);
    c = b + a / c;
    const Dual step = c * d;
    f = f * step;
    if (std::fabs(step.v - 1) < kPrecision && std::fabs(step.d) < kPrecision * (1 + std::fabs(f.d)))
      break;
  }
  return f;
}

// log(1 + t) / t
double log1p_ratio(double t) {
  return t == 0 ? 1 : std::log1p(t) / t;
}

// Large shapes: the signed root of twice the exponent is nearly normal, which ties x to the shape.
// The last term is the first correction, at the centre. Relative error below 1e-6 from 1e5 on.
double large_gamma_gradient(double shape, double x) {
  const double ratio = x / shape;
  return ratio * log1p_ratio(ratio - 1) + 1 / (6 * shape);
}

double gamma_gradient(double shape, double x) {
  if (std::isnan(shape) || std::isnan(x) || !(shape > 0) || !(x >= 0))
    return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (shape > 1e5) return large_gamma_gradient(shape, x);
  const double log_x = std::log(x);
  if (x <= shape + 1) {
    // F / F' = x sum t_n with t_n = x^n / (shape ... (shape + n)), and the derivative of log t_n
    // times the rest of F by the shape is log x - psi(shape + n + 1).
    double term = 1 / shape, psi = math::digamma(shape + 1), sum = 0;
    for (int n = 0; n < kMostTerms; ++n) {
      const double add = term * (psi - log_x);
      sum += add;
      const double next = shape + n + 1;
      psi += 1 / next;
      term *= x / next;
      if (n > 2 && std::fabs(term * (psi - log_x)) < kPrecision * std::fabs(sum)) break;
    }
    return x * sum;
  }
  // (1 - F) / F' = x C with Legendre's fraction 1 / C = x + 1 - a - 1 (1 - a) / (x + 3 - a - ...).
  const Dual inverse = continued_fraction({x + 1 - shape, -1}, [&](int i, Dual& a, Dual& b) {
    a = {-i * (i - shape), double(i)};
    b = {x + 1 + 2 * i - shape, -1};
  });
  const Dual fraction = Dual{1, 0} / inverse;
  return x * (fraction.v * (log_x - math::digamma(shape)) + fraction.d);
}

// The fraction of the incomplete beta function: F = x^a (1 - x)^b / (a B(a, b)) / fraction. The
// derivative is by the first parameter or by the second.
Dual beta_fraction(double first, double second, double x, bool by_first) {
  const Dual p{first, by_first ? 1.0 : 0.0}, q{second, by_first ? 0.0 : 1.0};
  return continued_fraction({1, 0}, [&](int i, Dual& a, Dual& b) {
    b = {1, 0};
    const int m = i / 2;
    const Dual k{double(m), 0}, one{1, 0}, by_x{x, 0}, minus{-1, 0};
    const Dual end = p + Dual{double(i), 0};
    if (i % 2 == 1) a = minus * (p + k) * (p + q + k) * by_x / (end * (end + minus * one));
    else a = k * (q + minus * k) * by_x / (end * (end + minus * one));
  });
}

// Both parameters large: likewise. Relative error below 1e-5 from 1e5 on.
double large_beta_gradient(double a, double b, double x) {
  const double mean = a / (a + b);
  return x / a * log1p_ratio((x - mean) / mean);
}

// For x from Beta(a, b): dx/da / (1 - x).
double beta_gradient(double x, double a, double b) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || std::isinf(a) || std::isinf(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (a > 1e5 && b > 1e5) return large_beta_gradient(a, b, x);
  const double psi_sum = math::digamma(a + b);
  if (x < (a + 1) / (a + b + 2)) {
    // F / F' = x (1 - x) / a / fraction
    const Dual part = Dual{1, 0} / beta_fraction(a, b, x, true);
    return -x / a * (part.v * (std::log(x) + psi_sum - math::digamma(a + 1)) + part.d);
  }
  // 1 - F is the distribution function of 1 - x with the parameters exchanged.
  const double y = 1 - x;
  const Dual part = Dual{1, 0} / beta_fraction(b, a, y, false);
  return x / b * (part.v * (std::log1p(-y) + psi_sum - math::digamma(a)) + part.d);
}

// f of every element of operands of one shape, computed in double.
template <class F>
Tensor compute_in_double(DType result, IntSpan shape, std::initializer_list<const Tensor*> operands,
                         F&& f) {
  GradGuard off(false);
  Tensor held[3];
  const double* p[3] = {};
  int count = 0;
  for (const Tensor* t : operands) {
    held[count] = op::contiguous(op::_to_copy(op::expand(*t, shape), DType::Float64));
    p[count] = held[count].data_as<double>();
    ++count;
  }
  Tensor out = empty_tensor(shape, DType::Float64, Device{});
  double* to = out.data_as<double>();
  parallel_for(0, out.numel(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = f(p, i);
  });
  return result == DType::Float64 ? out : op::_to_copy(out, result);
}

DType common_float(const char* what, std::initializer_list<const Tensor*> operands) {
  Promotion promotion;
  for (const Tensor* t : operands) {
    require_host(*t, what);
    promotion.add(*t);
  }
  const DType d = promotion.result();
  if (!is_floating(d) || item_size(d) < 2) dtype_error(d, "float16, bfloat16, float32, float64");
  return d;
}

}  // namespace

Tensor _standard_gamma_grad(const Tensor& self, const Tensor& output) {
  const DType d = common_float("_standard_gamma_grad", {&self, &output});
  const Dims shape = broadcast_shapes(self.sizes(), output.sizes());
  if (self.is_meta() || output.is_meta()) return empty_tensor(shape, d, Device{DeviceType::Meta});
  return compute_in_double(d, shape, {&self, &output}, [](const double* const* p, int64_t i) {
    return gamma_gradient(p[0][i], p[1][i]);
  });
}

Tensor _dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  const DType d = common_float("_dirichlet_grad", {&x, &alpha, &total});
  const Dims shape = broadcast_shapes(broadcast_shapes(x.sizes(), alpha.sizes()), total.sizes());
  if (x.is_meta() || alpha.is_meta() || total.is_meta())
    return empty_tensor(shape, d, Device{DeviceType::Meta});
  return compute_in_double(d, shape, {&x, &alpha, &total}, [](const double* const* p, int64_t i) {
    return beta_gradient(p[0][i], p[1][i], p[2][i] - p[1][i]);
  });
}

// A Dirichlet sample is beta distributed in each component; what the component gains the others
// lose in proportion to their size.
Tensor _sample_dirichlet_grad(const Tensor& grad, const Tensor& concentration,
                              const Tensor& sample) {
  const Dims last{-1};
  const Tensor total = op::expand(op::sum_dim(concentration, last, true), concentration.sizes());
  const Tensor mean = op::sum_dim(grad * sample, last, true);
  return op::_dirichlet_grad(sample, concentration, total) * (grad - mean);
}

}  // namespace facula::kernels

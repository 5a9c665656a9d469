#include "cpu/index_scan.h"

#include <cmath>
#include <complex>
#include <limits>

#include "cpu/along_dim.h"
#include "cpu/math_complex.h"

namespace facula {
namespace {

// The type in which a running value is kept: wider than the elements where rounding would add up.
template <class T>
using Running =
    std::conditional_t<std::is_same_v<T, float>, double,
                       std::conditional_t<std::is_same_v<T, Complex<float>>, Complex<double>,
                                          std::conditional_t<is_small_float_v<T>, float, T>>>;

int64_t byte_stride(const Tensor& t, int64_t dim) {
  return t.strides()[dim] * int64_t(t.item_size());
}

// out = running values of combine(so far, next); both have the same dtype.
template <class T, class Combine>
void scan_lines(const Tensor& in, int64_t dim, const Tensor& out, Combine&& combine) {
  using R = Running<T>;
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim), os = byte_stride(out, dim);
  for_each_line<2>({&in, &out}, dim, 2 * n, [&](const int64_t* at) {
    const char* from = in.data() + at[0];
    char* to = out.data() + at[1];
    R so_far = convert<R>(*reinterpret_cast<const T*>(from));
    *reinterpret_cast<T*>(to) = *reinterpret_cast<const T*>(from);
    for (int64_t i = 1; i < n; ++i) {
      from += is;
      to += os;
      so_far = R(combine(so_far, convert<R>(*reinterpret_cast<const T*>(from))));
      *reinterpret_cast<T*>(to) = convert<T>(so_far);
    }
  });
}

}  // namespace

void cpu_cumprod(const Tensor& in, int64_t dim, const Tensor& out) {
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    scan_lines<T>(in, dim, out, [](auto a, auto b) {
      if constexpr (std::is_same_v<decltype(a), bool>) return a && b;
      else return a * b;
    });
  });
}

// log(e^a + e^b) from the one with the larger real part.
static Complex<double> log_add_exp(Complex<double> a, Complex<double> b) {
  using C = std::complex<double>;
  const C high = a.re < b.re ? C(b.re, b.im) : C(a.re, a.im);
  const C low = a.re < b.re ? C(a.re, a.im) : C(b.re, b.im);
  C sum;
  if (std::isnan(a.re) || std::isnan(a.im) || std::isnan(b.re) || std::isnan(b.im)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    sum = C(nan, nan);
  } else if (low.real() == -std::numeric_limits<double>::infinity()) {
    sum = high;  // e^low is 0, whatever its angle
  } else if (std::isinf(low.real())) {
    sum = std::log(std::exp(low) + std::exp(high));
  } else {
    const C z = std::exp(low - high);
    // log(1 + z) without losing a small z
    const double x = z.real(), y = z.imag();
    sum = high + C(0.5 * std::log1p(2 * x + x * x + y * y), std::atan2(y, 1 + x));
  }
  return {sum.real(), sum.imag()};
}

void cpu_logcumsumexp(const Tensor& in, int64_t dim, const Tensor& out) {
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_small_float_v<T> || std::is_floating_point_v<T>)
      scan_lines<T>(in, dim, out, [](auto a, auto b) {
        const auto low = a < b ? a : b, high = a < b ? b : a;
        if (low != low || high != high) return low + high;
        if (low == high && std::isinf(low)) return low;  // inf - inf would be NaN
        return high + std::log1p(std::exp(low - high));
      });
    else if constexpr (is_complex_v<T>)
      scan_lines<T>(in, dim, out,
                    [](Complex<double> a, Complex<double> b) { return log_add_exp(a, b); });
  });
}

void cpu_cumulative_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                            const Tensor& indices) {
  const int64_t n = in.sizes()[dim];
  const int64_t is = byte_stride(in, dim), vs = byte_stride(values, dim),
                xs = byte_stride(indices, dim);
  dispatch_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) {
      using C = std::conditional_t<is_small_float_v<T>, float, T>;
      for_each_line<3>({&in, &values, &indices}, dim, n, [&](const int64_t* at) {
        const char* line = in.data() + at[0];
        T best = *reinterpret_cast<const T*>(line);
        int64_t where = 0;
        for (int64_t i = 0; i < n; ++i) {
          const T next = *reinterpret_cast<const T*>(line + i * is);
          const C a = C(best), b = C(next);
          if (b != b || (a == a && (largest ? b >= a : b <= a))) {
            best = next;
            where = i;
          }
          *reinterpret_cast<T*>(values.data() + at[1] + i * vs) = best;
          *reinterpret_cast<int64_t*>(indices.data() + at[2] + i * xs) = where;
        }
      });
    }
  });
}

}  // namespace facula

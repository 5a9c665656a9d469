#include "cpu/index_scan.h"

#include <cmath>
#include <complex>
#include <limits>

#include "cpu/along_dim.h"
#include "cpu/line_loops.h"
#include "cpu/math_complex.h"
#include "cpu/scan_rows.h"

namespace facula {
namespace {

int64_t byte_stride(const Tensor& t, int64_t dim) {
  return t.strides()[dim] * int64_t(t.item_size());
}

// W lines at once: their chains of operations do not wait for each other.
template <class T, int W, bool kDense, class Combine>
void scan_together(const int64_t (*at)[2], const char* in, char* out, int64_t in_step,
                   int64_t out_step, int64_t n, float none, Combine&& combine) {
  if constexpr (kDense && is_small_float_v<T>) {
    const T* x[W];
    T* y[W];
    for (int w = 0; w < W; ++w) {
      x[w] = reinterpret_cast<const T*>(in + at[w][0]);
      y[w] = reinterpret_cast<T*>(out + at[w][1]);
    }
    return scan_half_rows<W>(x, y, n, none, combine);
  }
  const int64_t is = kDense ? int64_t(sizeof(T)) : in_step;
  const int64_t os = kDense ? int64_t(sizeof(T)) : out_step;
  using R = Running<T>;
  const char* from[W];
  char* to[W];
  R so_far[W];
  for (int w = 0; w < W; ++w) {
    from[w] = in + at[w][0];
    to[w] = out + at[w][1];
    const T first = *reinterpret_cast<const T*>(from[w]);
    so_far[w] = convert<R>(first);
    *reinterpret_cast<T*>(to[w]) = first;
  }
  for (int64_t i = 1; i < n; ++i) {
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      so_far[w] = R(combine(so_far[w], convert<R>(*reinterpret_cast<const T*>(from[w] + i * is))));
      *reinterpret_cast<T*>(to[w] + i * os) = convert<T>(so_far[w]);
    }
  }
}

// out = running values of combine(so far, next), where `none` changes nothing; both have the same
// dtype. `columns`, if there is one, takes lines that lie beside each other.
template <class T, class Combine>
void scan_lines(const Tensor& in, int64_t dim, const Tensor& out, float none, Combine&& combine,
                LineLoops::ScanColumns columns = nullptr) {
  constexpr int kBundle = int(LineLoops::kColumns), kRows = 4;
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim), os = byte_stride(out, dim);
  const char* from = in.data();
  char* to = out.data();
  auto rows = [&]<bool kDense>(std::bool_constant<kDense>, const auto& at, int count) {
    int w = 0;
    for (; w + kRows <= count; w += kRows)
      scan_together<T, kRows, kDense>(at + w, from, to, is, os, n, none, combine);
    for (; w < count; ++w) scan_together<T, 1, kDense>(at + w, from, to, is, os, n, none, combine);
  };
  if (is == int64_t(sizeof(T)) && os == is)
    return for_each_bundle<2, kRows>({&in, &out}, dim, 2 * n, [&](const auto& at, int count) {
      rows(std::true_type{}, at, count);
    });
  for_each_bundle<2, kBundle>({&in, &out}, dim, 2 * n, [&](const auto& at, int count) {
    if (columns && count > 1 && are_neighbours(at, count, {int64_t(sizeof(T)), int64_t(sizeof(T))}))
      columns(from + at[0][0], to + at[0][1], is, os, n, count);
    else rows(std::false_type{}, at, count);
  });
}

// The last position of the extremum so far; NaN wins and stays.
template <class T, bool kLargest>
bool takes_over(T next, T best) {
  using C = std::conditional_t<is_small_float_v<T>, float, T>;
  const C a = C(best), b = C(next);
  return b != b || (a == a && (kLargest ? b >= a : b <= a));
}

template <class T, bool kLargest>
void extreme_lines(const Tensor& in, int64_t dim, const Tensor& values, const Tensor& indices) {
  constexpr int kBundle = 64;
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim), vs = byte_stride(values, dim),
                xs = byte_stride(indices, dim);
  const char* const source = in.data();
  char* const value_data = values.data();
  char* const index_data = indices.data();
  auto line = [&]<bool kDense>(std::bool_constant<kDense>, const int64_t* at) {
    const int64_t x_step = kDense ? int64_t(sizeof(T)) : is, v_step = kDense ? x_step : vs,
                  p_step = kDense ? 8 : xs;
    const char* x = source + at[0];
    char* v = value_data + at[1];
    char* p = index_data + at[2];
    T best = *reinterpret_cast<const T*>(x);
    int64_t where = 0;
    for (int64_t i = 0; i < n; ++i, x += x_step, v += v_step, p += p_step) {
      const T next = *reinterpret_cast<const T*>(x);
      if (takes_over<T, kLargest>(next, best)) {
        best = next;
        where = i;
      }
      *reinterpret_cast<T*>(v) = best;
      *reinterpret_cast<int64_t*>(p) = where;
    }
  };
  auto columns = [&](const int64_t* at, int count) {
    T best[kBundle];
    int64_t where[kBundle] = {};
    const char* x = source + at[0];
    char* v = value_data + at[1];
    char* p = index_data + at[2];
    for (int w = 0; w < count; ++w) best[w] = reinterpret_cast<const T*>(x)[w];
    for (int64_t i = 0; i < n; ++i, x += is, v += vs, p += xs)
      for (int w = 0; w < count; ++w) {
        const T next = reinterpret_cast<const T*>(x)[w];
        if (takes_over<T, kLargest>(next, best[w])) {
          best[w] = next;
          where[w] = i;
        }
        reinterpret_cast<T*>(v)[w] = best[w];
        reinterpret_cast<int64_t*>(p)[w] = where[w];
      }
  };
  if (is == int64_t(sizeof(T)) && vs == is && xs == 8) {
    const auto& loops = kLargest ? line_loops().running_maximum : line_loops().running_minimum;
    const LineLoops::RunningExtreme run = loops[int(in.dtype())];
    return for_each_line<3>({&in, &values, &indices}, dim, n, [&](const int64_t* at) {
      if (!run) return line(std::true_type{}, at);
      run(source + at[0], value_data + at[1], reinterpret_cast<int64_t*>(index_data + at[2]), n);
    });
  }
  for_each_bundle<3, kBundle>({&in, &values, &indices}, dim, n, [&](const auto& at, int count) {
    if (count > 1 && are_neighbours(at, count, {int64_t(sizeof(T)), int64_t(sizeof(T)), 8}))
      return columns(at[0], count);
    for (int w = 0; w < count; ++w) line(std::false_type{}, at[w]);
  });
}

template <class T>
void scan_products(const Tensor& in, int64_t dim, const Tensor& out) {
  scan_lines<T>(
      in, dim, out, 1, [](auto a, auto b) { return a * b; },
      line_loops().running_product[int(out.dtype())]);
}

}  // namespace

void cpu_cumprod(const Tensor& in, int64_t dim, const Tensor& out) {
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>)
      scan_lines<bool>(in, dim, out, 1, [](bool a, bool b) { return a && b; });
    else if constexpr (std::is_integral_v<T>)  // the sign makes no difference
      scan_products<std::make_unsigned_t<T>>(in, dim, out);
    else scan_products<T>(in, dim, out);
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
  constexpr float none = -std::numeric_limits<float>::infinity();
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_small_float_v<T> || std::is_floating_point_v<T>)
      scan_lines<T>(in, dim, out, none, [](auto a, auto b) {
        const auto low = a < b ? a : b, high = a < b ? b : a;
        if (low != low || high != high) return low + high;
        if (low == high && std::isinf(low)) return low;  // inf - inf would be NaN
        return high + std::log1p(std::exp(low - high));
      });
    else if constexpr (is_complex_v<T>)
      scan_lines<T>(in, dim, out, none,
                    [](Complex<double> a, Complex<double> b) { return log_add_exp(a, b); });
  });
}

void cpu_cumulative_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                            const Tensor& indices) {
  dispatch_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) {
      if (largest) extreme_lines<T, true>(in, dim, values, indices);
      else extreme_lines<T, false>(in, dim, values, indices);
    }
  });
}

}  // namespace facula

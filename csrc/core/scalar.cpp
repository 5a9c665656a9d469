#include "core/scalar.h"

#include <cmath>
#include <limits>

#include "core/error.h"

namespace facula {

namespace {

bool integer_fits(int64_t v, DType d) {
  const int bits = int(8 * item_size(d));
  if (is_unsigned(d)) {
    if (v >= 0) return bits == 64 || v < int64_t(1) << bits;
    return bits == 64 || v > -(int64_t(1) << bits);
  }
  return bits == 64 || (v >= -(int64_t(1) << (bits - 1)) && v < int64_t(1) << (bits - 1));
}

bool real_fits(double v, DType d) {
  if (is_integral(d)) {
    if (!std::isfinite(v)) return false;
    // Unlike negative integers, negative fractions do not wrap around.
    if (is_unsigned(d)) return v >= 0 && v < std::ldexp(1.0, int(8 * item_size(d)));
    const double limit = std::ldexp(1.0, int(8 * item_size(d)) - 1);
    v = std::trunc(v);
    return v < limit && v >= -limit;
  }
  if (!std::isfinite(v)) return true;
  return dispatch_dtype(d, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Complex<float>>) return std::isfinite(float(v));
    else if constexpr (std::is_same_v<T, Complex<double>> || std::is_same_v<T, bool>) return true;
    else return std::isfinite(convert<double>(convert<T>(v)));
  });
}

}  // namespace

double Scalar::to_double() const {
  return to<double>();
}
int64_t Scalar::to_int() const {
  return to<int64_t>();
}
Complex<double> Scalar::to_complex() const {
  return to<Complex<double>>();
}

void Scalar::store(DType d, void* p) const {
  dispatch_dtype(d, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *static_cast<T*>(p) = to<T>();
  });
}

Scalar Scalar::load(DType d, const void* p) {
  return dispatch_dtype(d, [&](auto tag) -> Scalar {
    using T = typename decltype(tag)::type;
    // A byte that was written as another type may be neither 0 nor 1.
    if constexpr (std::is_same_v<T, bool>) {
      return Scalar(*static_cast<const uint8_t*>(p) != 0);
    } else {
      const T v = *static_cast<const T*>(p);
      if constexpr (std::is_same_v<T, uint64_t>) return Scalar(v);
      else if constexpr (std::is_integral_v<T>) return Scalar(int64_t(v));
      else if constexpr (is_complex_v<T>) return Scalar(convert<Complex<double>>(v));
      else return Scalar(convert<double>(v));
    }
  });
}

bool Scalar::fits(DType d) const {
  if (d == DType::Bool) return true;
  switch (kind_) {
    case Kind::Bool: return true;
    case Kind::Int: return facula::is_integral(d) ? integer_fits(i_, d) : real_fits(double(i_), d);
    case Kind::UInt:
      return facula::is_integral(d) ? d == DType::UInt64 : real_fits(double(uint64_t(i_)), d);
    case Kind::Float: return real_fits(c_.re, d);
    default:
      if (!facula::is_complex(d)) return c_.im == 0 && real_fits(c_.re, d);
      return real_fits(c_.re, d) && real_fits(c_.im, d);
  }
}

void Scalar::check_fits(DType d) const {
  if (fits(d)) return;
  switch (kind_) {
    case Kind::Int: overflow_error(text(i_), d);
    case Kind::UInt: overflow_error(text(uint64_t(i_)), d);
    case Kind::Complex: overflow_error(text(c_.re, c_.im < 0 ? "" : "+", c_.im, "j"), d);
    default: overflow_error(text(to_double()), d);
  }
}

}  // namespace facula

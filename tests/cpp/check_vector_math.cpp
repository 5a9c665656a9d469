// Evaluates one function of the vector math on a file of numbers, for tests/test_vector_math.py.
//
//   check_vector_math list                      prints "name type inputs" per function
//   check_vector_math name type input output    type: f32, f64, i16, i64, c64, c128
//
// The input holds all first arguments, then all second ones; the output holds as many results.
#include <cstdio>
#include <cstring>
#include <vector>

#include "cpu/vector_math.h"

namespace {

namespace math = facula::math;

template <class T>
struct Function {
  const char* name;
  int inputs;
  void (*loop)(const T* a, const T* b, T* y, size_t n);
};

#define UNARY(f)                                             \
  {#f, 1, [](const T* a, const T*, T* y, size_t n) {         \
     for (size_t i = 0; i < n; ++i) y[i] = T(math::f(a[i])); \
   }}
#define BINARY(f)                                                  \
  {#f, 2, [](const T* a, const T* b, T* y, size_t n) {             \
     for (size_t i = 0; i < n; ++i) y[i] = T(math::f(a[i], b[i])); \
   }}

template <class T>
struct RealTable {
  static constexpr Function<T> functions[] = {
      UNARY(abs),
      UNARY(sign),
      UNARY(square),
      UNARY(sqrt),
      UNARY(rsqrt),
      UNARY(reciprocal),
      UNARY(floor),
      UNARY(ceil),
      UNARY(trunc),
      UNARY(round),
      UNARY(frac),
      UNARY(exp),
      UNARY(exp2),
      UNARY(expm1),
      UNARY(log),
      UNARY(log2),
      UNARY(log10),
      UNARY(log1p),
      UNARY(sin),
      UNARY(cos),
      UNARY(tan),
      UNARY(asin),
      UNARY(acos),
      UNARY(atan),
      UNARY(sinh),
      UNARY(cosh),
      UNARY(tanh),
      UNARY(asinh),
      UNARY(acosh),
      UNARY(atanh),
      UNARY(sigmoid),
      UNARY(silu),
      UNARY(softplus),
      UNARY(log_sigmoid),
      UNARY(erf),
      UNARY(erfc),
      UNARY(erfinv),
      UNARY(ndtr),
      UNARY(gelu),
      UNARY(gelu_tanh),
      UNARY(sinc),
      UNARY(entr),
      UNARY(lgamma),
      UNARY(digamma),
      UNARY(erfcx),
      UNARY(log_ndtr),
      UNARY(ndtri),
      UNARY(i0),
      UNARY(i0e),
      UNARY(i1),
      UNARY(i1e),
      UNARY(modified_bessel_k0),
      UNARY(modified_bessel_k1),
      UNARY(scaled_modified_bessel_k0),
      UNARY(scaled_modified_bessel_k1),
      UNARY(bessel_j0),
      UNARY(bessel_j1),
      UNARY(bessel_y0),
      UNARY(bessel_y1),
      UNARY(bessel_j0_full_range),
      UNARY(spherical_bessel_j0),
      UNARY(airy_ai),
      UNARY(frexp_mantissa),
      UNARY(frexp_exponent),
      UNARY(isnan),
      UNARY(isinf),
      UNARY(isfinite),
      UNARY(signbit),
      UNARY(angle),
      UNARY(angle_in_range),
      UNARY(sin_full_range),
      UNARY(cos_full_range),
      UNARY(tan_full_range),
      BINARY(pow),
      BINARY(atan2),
      BINARY(hypot),
      BINARY(logaddexp),
      BINARY(logaddexp2),
      BINARY(copysign),
      BINARY(maximum),
      BINARY(minimum),
      BINARY(fmax),
      BINARY(fmin),
      BINARY(xlogy),
      BINARY(xlog1py),
      BINARY(heaviside),
      BINARY(fmod_full_range),
      BINARY(remainder_full_range),
      BINARY(floor_divide_full_range),
      BINARY(trunc_divide),
      BINARY(nextafter),
      BINARY(logit),
      BINARY(zeta),
      BINARY(igamma),
      BINARY(igammac),
      BINARY(chebyshev_polynomial_t),
      BINARY(chebyshev_polynomial_u),
      BINARY(chebyshev_polynomial_v),
      BINARY(chebyshev_polynomial_w),
      BINARY(hermite_polynomial_h),
      BINARY(hermite_polynomial_he),
      BINARY(laguerre_polynomial_l),
      BINARY(legendre_polynomial_p),
      {"polygamma", 2,
       [](const T* a, const T* b, T* y, size_t n) {
         for (size_t i = 0; i < n; ++i) y[i] = math::polygamma(int64_t(b[i]), a[i]);
       }},
      {"sinc_derivative", 2,
       [](const T* a, const T* b, T* y, size_t n) {
         for (size_t i = 0; i < n; ++i) y[i] = math::sinc_derivative(a[i], int64_t(b[i]));
       }},
      {"ldexp", 2, [](const T* a, const T* b, T* y, size_t n) {
         using N = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
         for (size_t i = 0; i < n; ++i) y[i] = math::ldexp(a[i], facula::convert<N>(b[i]));
       }}};
};

template <class T>
struct IntegerTable {
  static constexpr Function<T> functions[] = {UNARY(abs),
                                              UNARY(sign),
                                              UNARY(square),
                                              BINARY(pow),
                                              BINARY(gcd),
                                              BINARY(lcm),
                                              BINARY(maximum),
                                              BINARY(minimum),
                                              BINARY(fmod),
                                              BINARY(remainder),
                                              BINARY(floor_divide),
                                              BINARY(trunc_divide),
                                              BINARY(fmod_full_range),
                                              BINARY(remainder_full_range),
                                              BINARY(floor_divide_full_range)};
};

template <class T>
struct ComplexTable {
  static constexpr Function<T> functions[] = {
      UNARY(abs),
      UNARY(angle),
      UNARY(conj),
      UNARY(exp),
      UNARY(exp2),
      UNARY(expm1),
      UNARY(log),
      UNARY(log2),
      UNARY(log10),
      UNARY(log1p),
      UNARY(sqrt),
      UNARY(rsqrt),
      UNARY(reciprocal),
      UNARY(square),
      UNARY(sgn),
      UNARY(sigmoid),
      UNARY(sin),
      UNARY(cos),
      UNARY(tan),
      UNARY(asin),
      UNARY(acos),
      UNARY(atan),
      UNARY(sinh),
      UNARY(cosh),
      UNARY(tanh),
      UNARY(asinh),
      UNARY(acosh),
      UNARY(atanh),
      UNARY(sinc),
      BINARY(pow),
      BINARY(logaddexp),
      {"multiply", 2,
       [](const T* a, const T* b, T* y, size_t n) {
         for (size_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
       }},
      {"divide", 2, [](const T* a, const T* b, T* y, size_t n) {
         for (size_t i = 0; i < n; ++i) y[i] = a[i] / b[i];
       }}};
};

template <class Table, class T>
int evaluate(const char* name, const char* input, const char* output) {
  for (const auto& f : Table::functions) {
    if (std::strcmp(f.name, name) != 0) continue;
    FILE* in = std::fopen(input, "rb");
    FILE* out = std::fopen(output, "wb");
    if (in == nullptr || out == nullptr) return 2;
    std::fseek(in, 0, SEEK_END);
    const size_t total = size_t(std::ftell(in)) / sizeof(T), n = total / size_t(f.inputs);
    std::rewind(in);
    std::vector<T> x(total), y(n);
    if (std::fread(x.data(), sizeof(T), total, in) != total) return 2;
    f.loop(x.data(), x.data() + (f.inputs == 2 ? n : 0), y.data(), n);
    if (std::fwrite(y.data(), sizeof(T), n, out) != n) return 2;
    std::fclose(in);
    return std::fclose(out) == 0 ? 0 : 2;
  }
  return 3;
}

template <class Table>
void list(const char* type) {
  for (const auto& f : Table::functions) std::printf("%s %s %d\n", f.name, type, f.inputs);
}

}  // namespace

int main(int argc, char** argv) {
#define TYPES(X)                                                         \
  X("f32", RealTable<float>, float)                                      \
  X("f64", RealTable<double>, double)                                    \
  X("i16", IntegerTable<int16_t>, int16_t)                               \
  X("i64", IntegerTable<int64_t>, int64_t)                               \
  X("c64", ComplexTable<facula::Complex<float>>, facula::Complex<float>) \
  X("c128", ComplexTable<facula::Complex<double>>, facula::Complex<double>)
  if (argc == 2 && std::strcmp(argv[1], "list") == 0) {
#define X(type, table, element) list<table>(type);
    TYPES(X)
#undef X
    return 0;
  }
  if (argc != 5) return 1;
#define X(type, table, element) \
  if (std::strcmp(argv[2], type) == 0) return evaluate<table, element>(argv[1], argv[3], argv[4]);
  TYPES(X)
#undef X
  return 1;
}

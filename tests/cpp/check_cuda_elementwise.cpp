// Checks of the elementwise launch: layouts, dtypes, functions.
#include <complex>
#include <numeric>

#include "check_cuda.h"

namespace facula::cuda {
namespace {

constexpr const char* kLogAddExp = "max(a, b) + log1p(exp(-abs(a - b)))";
double log_add_exp(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

template <class T>
void check_dense(double tolerance) {
  const DType d = DTypeOf<T>::value;
  for (int64_t n : {1, 3, 4, 5, 1023, 70001}) {
    for (int shift : {0, 1}) {  // elements off an aligned address
      const auto a = random_values<T>(size_t(n + shift)), b = random_values<T>(size_t(n + shift));
      Buffer<T> da(a), db(b), out{size_t(n + shift)};
      launch_elementwise(make_launch(
          kLogAddExp, d, {n},
          {{out.get() + shift, d, {1}}, {da.get() + shift, d, {1}}, {db.get() + shift, d, {1}}}));
      auto got = out.host();
      got.erase(got.begin(), got.begin() + shift);
      expect_near(
          got,
          [&](size_t i) {
            return log_add_exp(convert<double>(a[i + shift]), convert<double>(b[i + shift]));
          },
          tolerance, std::string("dense ") + dtype_name(d) + " " + std::to_string(n));
    }
  }
}

// out = a - b over one shape, with the given strides (elements) for both inputs.
void check_layout(const std::string& what, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& out_strides, const std::vector<int64_t>& a_strides,
                  const std::vector<int64_t>& b_strides, int64_t room, int64_t a_start = 0) {
  const int64_t n = count_of(sizes);
  const auto a = random_values<float>(size_t(room)), b = random_values<float>(size_t(room));
  Buffer<float> da(a), db(b), out{size_t(room)};
  const DType f = DType::Float32;
  launch_elementwise(make_launch(
      "a - b", f, sizes,
      {{out.get(), f, out_strides}, {da.get() + a_start, f, a_strides}, {db.get(), f, b_strides}}));
  const auto raw = out.host();
  std::vector<float> got(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) got[size_t(i)] = raw[size_t(offset_of(i, sizes, out_strides))];
  expect_near(
      got,
      [&](size_t i) {
        return double(a[size_t(a_start + offset_of(int64_t(i), sizes, a_strides))]) -
               b[size_t(offset_of(int64_t(i), sizes, b_strides))];
      },
      1e-6, what);
}

void check_layouts_on_device() {
  check_layout("broadcast row", {37, 64}, {64, 1}, {64, 1}, {0, 1}, 37 * 64);
  check_layout("broadcast column", {37, 64}, {64, 1}, {64, 1}, {1, 0}, 37 * 64);
  check_layout("broadcast row, odd width", {37, 63}, {63, 1}, {63, 1}, {0, 1}, 37 * 63);
  check_layout("one number", {37, 63}, {63, 1}, {63, 1}, {0, 0}, 37 * 63);
  check_layout("two numbers", {1001}, {1}, {0}, {0}, 1001);
  check_layout("transposed input", {40, 50}, {50, 1}, {1, 40}, {50, 1}, 2000);
  check_layout("all transposed", {40, 50}, {1, 40}, {1, 40}, {1, 40}, 2000);
  check_layout("every other element", {500}, {1}, {2}, {2}, 1000);
  check_layout("strided result", {500}, {2}, {1}, {1}, 1000);
  check_layout("negative step", {500}, {1}, {-1}, {1}, 500, 499);
  check_layout("padded rows", {20, 32}, {32, 1}, {40, 1}, {36, 1}, 800);
  check_layout("padded rows, odd", {20, 32}, {32, 1}, {41, 1}, {37, 1}, 820);
  check_layout("three permuted dims", {7, 8, 9}, {72, 9, 1}, {1, 7, 56}, {8, 1, 56}, 504);
  check_layout("five permuted dims", {3, 4, 5, 2, 6}, dense_strides({3, 4, 5, 2, 6}),
               {1, 3, 12, 60, 120}, {240, 60, 12, 6, 1}, 720);
  // 18 dimensions that cannot be merged: the second input's are in reverse order.
  std::vector<int64_t> sizes(18, 2), forward = dense_strides(sizes),
                                     backward(forward.rbegin(), forward.rend());
  check_layout("18 dims", sizes, forward, forward, backward, 1 << 18);
  check_layout("no dims", {}, {}, {}, {}, 1);
  check_layout("empty", {3, 0, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1);
}

// More than 2^31 elements, dense and through 64-bit offsets.
void check_huge() {
  const int64_t rows = 65537, cols = 32800;  // 2.15e9 bytes
  if (memory_info(0).free < size_t(6) << 30) return;
  const DType u8 = DType::UInt8;
  Buffer<uint8_t> a(size_t(rows * cols)), out(size_t(rows * cols));
  auto launch = make_launch("index % 251", DType::Int64, {rows * cols}, {{a.get(), u8, {1}}});
  launch.uses_index = true;
  launch_elementwise(launch);
  launch_elementwise(make_launch("a + 1", u8, {rows, cols},
                                 {{out.get(), u8, {cols, 1}}, {a.get(), u8, {1, rows}}}));
  bool good = true;
  for (int i = 0; i < 200; ++i) {
    const int64_t at = i < 100 ? i * 1000003 : rows * cols - 1 - i * 100003;
    uint8_t got;
    copy_to_host(&got, out.get() + at, 1, 0, nullptr);
    const int64_t from = at / cols + at % cols * rows;
    good = good && got == uint8_t(from % 251 + 1);
  }
  expect(good, "a transposition of more than 2^31 elements");
}

void check_params_masks_and_index() {
  const DType f = DType::Float32;
  const auto a = random_values<float>(1000);
  Buffer<float> da(a), out(1000);
  std::vector<uint8_t> mask(1000);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 0 ? 7 : 0;
  Buffer<uint8_t> dmask(mask);
  auto launch =
      make_launch("where(b, a * alpha, p1 + p2)", f, {1000},
                  {{out.get(), f, {1}}, {da.get(), f, {1}}, {dmask.get(), DType::Bool, {1}}});
  launch.masks = 2;
  launch.params.add(DType::Float64, 2.5, "alpha");
  launch.params.add(DType::Float16, 0.5);
  launch.params.add(DType::Int64, int64_t(40));
  launch_elementwise(launch);
  expect_near(
      out.host(), [&](size_t i) { return mask[i] ? a[i] * 2.5 : 40.5; }, 1e-6,
      "parameters and a mask");

  launch = make_launch("p0 + index * p1", f, {10, 100}, {{out.get(), f, {1, 10}}});
  launch.uses_index = true;
  launch.params.add(f, 1.0);
  launch.params.add(f, 0.25);
  launch_elementwise(launch);
  expect_near(
      out.host(), [](size_t i) { return 1 + 0.25 * double(i % 10 * 100 + i / 10); }, 1e-6,
      "index counts in row-major order whatever the strides");

  Buffer<uint8_t> flags(1000);
  launch_elementwise(
      make_launch("a > 0.5", f, {1000}, {{flags.get(), DType::Bool, {1}}, {da.get(), f, {1}}}));
  expect_near(flags.host(), [&](size_t i) { return a[i] > 0.5f ? 1.0 : 0.0; }, 0, "comparison");
  launch_elementwise(make_launch("if (isnan(a)) return inf; return a * pi;", f, {1000},
                                 {{out.get(), f, {1}}, {da.get(), f, {1}}}));
  expect_near(out.host(), [&](size_t i) { return a[i] * 3.14159265358979; }, 1e-6, "statements");
  Buffer<int32_t> wide(1000);
  launch_elementwise(
      make_launch("a * 200", DType::UInt8, {1000},
                  {{wide.get(), DType::Int32, {1}}, {dmask.get(), DType::UInt8, {1}}}));
  expect_near(
      wide.host(), [&](size_t i) { return mask[i] * 200 % 256; }, 0,
      "values wrap in the compute type before they are stored wider");
  launch_elementwise(make_launch("a + a", f, {1000}, {{da.get(), f, {1}}, {da.get(), f, {1}}}));
  expect_near(da.host(), [&](size_t i) { return 2.0 * a[i]; }, 0, "in place");
}

template <class T>
void check_integers() {
  const DType d = DTypeOf<T>::value;
  const auto a = random_values<T>(4000, is_unsigned(d) ? 0 : -100, 100);
  auto b = random_values<T>(4000, is_unsigned(d) ? 1 : -9, 9);
  for (T& x : b) x = x == 0 ? T(1) : x;
  Buffer<T> da(a), db(b), out(4000);
  auto apply = [&](const char* body, auto wanted) {
    launch_elementwise(make_launch(body, d, {4000},
                                   {{out.get(), d, {1}}, {da.get(), d, {1}}, {db.get(), d, {1}}}));
    expect_near(
        out.host(), [&](size_t i) { return double(T(wanted(int64_t(a[i]), int64_t(b[i])))); }, 0,
        std::string(body) + " of " + dtype_name(d));
  };
  auto floor_div = [](int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
  apply("a + b", [](int64_t x, int64_t y) { return x + y; });
  apply("a * b - a", [](int64_t x, int64_t y) { return x * y - x; });
  apply("floor_divide(a, b)", floor_div);
  apply("remainder(a, b)", [&](int64_t x, int64_t y) { return x - floor_div(x, y) * y; });
  apply("fmod(a, b)", [](int64_t x, int64_t y) { return x % y; });
  apply("max(a, b) - min(a, b)", [](int64_t x, int64_t y) { return std::abs(x - y); });
  apply("gcd(a, b) + lcm(b, b)", [](int64_t x, int64_t y) { return std::gcd(x, y) + std::abs(y); });
  apply("left_shift(b, T(2)) - right_shift(a, T(1))",
        [](int64_t x, int64_t y) { return y * 4 - (x >> 1); });
  apply("pow(b, 3)", [](int64_t, int64_t y) { return y * y * y; });
  apply("abs(a) + sign(b)", [](int64_t x, int64_t y) { return std::abs(x) + (y > 0) - (y < 0); });
}

template <class T>
void check_math(double tolerance) {
  using Unary = double (*)(double);
  struct Row {
    const char* body;
    Unary wanted;
    double low, high;
  };
  const Row rows[] = {
      {"exp(a)", std::exp, -5, 5},
      {"expm1(a)", std::expm1, -5, 5},
      {"log(a)", std::log, 0.01, 9},
      {"log1p(a)", std::log1p, -0.9, 9},
      {"log2(a)", std::log2, 0.01, 9},
      {"log10(a)", std::log10, 0.01, 9},
      {"exp2(a)", std::exp2, -5, 5},
      {"sqrt(a)", std::sqrt, 0, 9},
      {"rsqrt(a)", [](double x) { return 1 / std::sqrt(x); }, 0.1, 9},
      {"sin(a)", std::sin, -9, 9},
      {"cos(a)", std::cos, -9, 9},
      {"tan(a)", std::tan, -1.5, 1.5},
      {"asin(a)", std::asin, -1, 1},
      {"acos(a)", std::acos, -1, 1},
      {"atan(a)", std::atan, -9, 9},
      {"sinh(a)", std::sinh, -3, 3},
      {"cosh(a)", std::cosh, -3, 3},
      {"tanh(a)", std::tanh, -5, 5},
      {"asinh(a)", std::asinh, -5, 5},
      {"acosh(a)", std::acosh, 1, 9},
      {"atanh(a)", std::atanh, -0.9, 0.9},
      {"erf(a)", std::erf, -3, 3},
      {"erfc(a)", std::erfc, -3, 3},
      {"lgamma(a)", [](double x) { return std::lgamma(x); }, 0.1, 9},
      {"erfinv(erf(a))", [](double x) { return x; }, -1, 1},
      {"sigmoid(a)", [](double x) { return 1 / (1 + std::exp(-x)); }, -9, 9},
      {"floor(a)", std::floor, -9, 9},
      {"ceil(a)", std::ceil, -9, 9},
      {"trunc(a)", std::trunc, -9, 9},
      {"round(a)", std::nearbyint, -9, 9},
      {"abs(a)", std::fabs, -9, 9},
      {"sign(a)", [](double x) { return double((x > 0) - (x < 0)); }, -9, 9},
      {"relu(a)", [](double x) { return std::max(x, 0.0); }, -9, 9},
      {"square(a) + reciprocal(a)", [](double x) { return x * x + 1 / x; }, 0.1, 9},
      {"clamp(a, -1, 0.5)", [](double x) { return std::min(std::max(x, -1.0), 0.5); }, -3, 3},
      {"pow(a, 2.5)", [](double x) { return std::pow(x, 2.5); }, 0, 9},
      {"hypot(a, 2) + atan2(a, 3)", [](double x) { return std::hypot(x, 2) + std::atan2(x, 3); },
       -3, 3},
      {"remainder(a, -0.75)", [](double x) { return x - std::floor(x / -0.75) * -0.75; }, -9, 9},
      {"floor_divide(a, 0.75)", [](double x) { return std::floor(x / 0.75); }, -9, 9},
      {"fmod(a, 0.75)", [](double x) { return std::fmod(x, 0.75); }, -9, 9},
      {"digamma(a)",
       [](double x) {  // by the recurrence from far out
         double r = 0;
         for (; x < 40; ++x) r -= 1 / x;
         return r + std::log(x) - 0.5 / x - 1 / (12 * x * x) + 1 / (120 * x * x * x * x);
       },
       0.5, 9},
      {"frac(a) + sgn(a)", [](double x) { return x - std::trunc(x) + (x > 0) - (x < 0); }, -9, 9},
      {"logaddexp(a, 1.5)", [](double x) { return log_add_exp(x, 1.5); }, -9, 9},
      {"xlogy(a, 2.0) + entr(a)", [](double x) { return x * std::log(2) - x * std::log(x); }, 0.1,
       9},
      {"gelu(a) + silu(a)",
       [](double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)) + x / (1 + std::exp(-x)); },
       -5, 5},
      {"softplus(a) - log_sigmoid(a) + gelu_tanh(a)",
       [](double x) {
         return std::log1p(std::exp(x)) + std::log1p(std::exp(-x)) +
                0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
       },
       -5, 5},
      {"sinc(a) + lerp(a, 2.0, 0.75)",
       [](double x) {
         return std::sin(3.14159265358979 * x) / (3.14159265358979 * x) + 0.25 * x + 1.5;
       },
       0.1, 5},
      {"i0(a)", [](double x) { return std::cyl_bessel_i(0, x); }, 0, 5},
      {"copysign(a, -1) + where(isfinite(a), 0, nan)", [](double x) { return -std::fabs(x); }, -9,
       9},
  };
  const DType d = DTypeOf<T>::value;
  for (const Row& row : rows) {
    const auto a = random_values<T>(2000, row.low, row.high);
    Buffer<T> da(a), out(a.size());
    launch_elementwise(make_launch(row.body, d, {2000}, {{out.get(), d, {1}}, {da.get(), d, {1}}}));
    expect_near(
        out.host(), [&](size_t i) { return row.wanted(convert<double>(a[i])); }, tolerance,
        std::string(row.body) + " of " + dtype_name(d));
  }
}

template <class T>
void check_complex(double tolerance) {
  using C = std::complex<double>;
  struct Row {
    const char* body;
    C (*wanted)(C, C);
  };
  const Row rows[] = {
      {"a * b + 1", [](C a, C b) { return a * b + 1.0; }},
      {"a / b", [](C a, C b) { return a / b; }},
      {"2 / b - a", [](C a, C b) { return 2.0 / b - a; }},
      {"exp(a) + conj(b)", [](C a, C b) { return std::exp(a) + std::conj(b); }},
      {"log(a) * sqrt(b)", [](C a, C b) { return std::log(a) * std::sqrt(b); }},
      {"sin(a) + cos(b)", [](C a, C b) { return std::sin(a) + std::cos(b); }},
      {"tanh(a) + tan(b)", [](C a, C b) { return std::tanh(a) + std::tan(b); }},
      {"asin(a) + acosh(b)", [](C a, C b) { return std::asin(a) + std::acosh(b); }},
      {"acos(a) * asinh(b)", [](C a, C b) { return std::acos(a) * std::asinh(b); }},
      {"atan(a) - atanh(b)", [](C a, C b) { return std::atan(a) - std::atanh(b); }},
      {"log1p(a) + expm1(b) + sgn(a)",
       [](C a, C b) { return std::log(1.0 + a) + std::exp(b) - 1.0 + a / std::abs(a); }},
      {"pow(a, b)", [](C a, C b) { return std::pow(a, b); }},
      {"sign(a) * abs(b)", [](C a, C b) { return a / std::abs(a) * std::abs(b); }},
      {"where(a == b, a, sigmoid(b))", [](C, C b) { return 1.0 / (1.0 + std::exp(-b)); }},
  };
  const DType d = DTypeOf<T>::value;
  const auto a = random_values<T>(500), b = random_values<T>(500);
  Buffer<T> da(a), db(b), out(a.size());
  auto wide = [](T z) { return C(double(z.re), double(z.im)); };
  for (const Row& row : rows) {
    launch_elementwise(make_launch(row.body, d, {500},
                                   {{out.get(), d, {1}}, {da.get(), d, {1}}, {db.get(), d, {1}}}));
    expect_near(
        out.host(),
        [&](size_t i) {
          const C w = row.wanted(wide(a[i]), wide(b[i]));
          return Complex<double>(w.real(), w.imag());
        },
        tolerance, std::string(row.body) + " of " + dtype_name(d));
  }
}

}  // namespace

void check_elementwise() {
  run("dense", [] {
    check_dense<float>(1e-5);
    check_dense<double>(1e-13);
    check_dense<Half>(2e-3);
    check_dense<BFloat16>(2e-2);
    check_dense<Float8E5M2>(0.4);
  });
  run("layouts", check_layouts_on_device);
  run("parameters, masks, index", check_params_masks_and_index);
  run("integers", [] {
    check_integers<uint8_t>();
    check_integers<int8_t>();
    check_integers<int16_t>();
    check_integers<uint32_t>();
    check_integers<int32_t>();
    check_integers<int64_t>();
    check_integers<uint64_t>();
  });
  run("math, float32", [] { check_math<float>(1e-5); });
  run("math, float64", [] { check_math<double>(1e-12); });
  run("complex64", [] { check_complex<Complex<float>>(2e-4); });
  run("complex128", [] { check_complex<Complex<double>>(1e-11); });
  run("more than 2^31 elements", check_huge);
}

}  // namespace facula::cuda

// Trigonometric and hyperbolic functions and their inverses.
//
// An angle is reduced to [-pi/4, pi/4] by subtracting n pi/2 in more precision than it has, up to
// kMaxAngle: for sin and cos of float in three steps of float where these are fused, else in
// double. Beyond, where a number's neighbours lie many periods apart, the only way is to
// multiply by hundreds of bits of 2/pi (Payne and Hanek), too much to do for every element just in
// case: sin, cos and tan answer NaN there. A loop therefore asks `angle_in_range` for a block of
// elements and takes sin_full_range and its like, which hold everywhere, when one is out.
#pragma once
#include "cpu/math_exp.h"

namespace facula::math {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
inline constexpr bool kFusedAngles = true;
#else
inline constexpr bool kFusedAngles = false;
#endif
template <Real T>
inline constexpr T kMaxAngle = T(sizeof(T) == 4 && kFusedAngles ? 0x1p16 : 0x1p45);

// Whether sin, cos and tan hold at x. Infinities and NaN are in range: NaN is their right answer.
template <Real T>
FACULA_INLINE bool angle_in_range(T x) {
  const bool beyond = abs(x) > kMaxAngle<T>, finite = abs(x) < kInf<T>;
  return !(beyond & finite);
}

namespace detail {

constexpr double kPiOver2High = 0x1.921fb54442d18p+0;
constexpr double kPiOver2Low = 0x1.1a62633145c07p-54;
constexpr double kPiOver2Third = -0x1.f1976b7ed8fbcp-110;

// x = quadrant * pi/2 + r, the quadrant modulo 4.
struct FloatAngle {
  double r;
  uint32_t quadrant;
};
FACULA_INLINE FloatAngle reduce_angle(float x) {
  const double a = abs(x) <= kMaxAngle<float> ? double(x) : kNaN<double>;
  const double shifted = a * 0.6366197723675814 + kRoundMagic<double>;
  const double n = shifted - kRoundMagic<double>;
  const auto p = two_product(n, kPiOver2High);
  // a - p.hi is exact, and so is the difference to p.lo: both are multiples of 2^-52 below 2.
  return {madd(n, -kPiOver2Low, (a - p.hi) - p.lo), uint32_t(bits_of(shifted)) & 3u};
}
// The same for |x| and any float, in fixed point: 2/pi is kept to 224 bits, and the 96 that matter
// for the exponent of x are multiplied by its 24-bit mantissa. r is good to 2^-33 of itself even
// for the float closest to a multiple of pi/2.
FACULA_INLINE FloatAngle reduce_any_angle(float x) {
  const uint32_t a = bits_of(abs(x));
  const uint32_t e = a >> 23;
  uint32_t mantissa = (a & 0x7fffffu) | 0x800000u;
  // Below 1/2 the angle is its own remainder; at the top, a doubled mantissa saves a table word.
  uint32_t offset = e < 126u ? 0u : e - 126u;
  mantissa = offset > 127u ? mantissa << 1 : mantissa;
  offset = offset > 127u ? 127u : offset;
  // 2/pi from the weight 2^25 down.
  constexpr uint32_t w[7] = {0x00000028u, 0xbe60db93u, 0x91054a7fu, 0x09d5f47du,
                             0x4d377036u, 0xd8a5664fu, 0x10e4107fu};
  const bool by64 = (offset & 64u) != 0, by32 = (offset & 32u) != 0;
  const uint32_t b0 = by64 ? w[2] : w[0], b1 = by64 ? w[3] : w[1], b2 = by64 ? w[4] : w[2],
                 b3 = by64 ? w[5] : w[3], b4 = by64 ? w[6] : w[4];
  const uint32_t d0 = by32 ? b1 : b0, d1 = by32 ? b2 : b1, d2 = by32 ? b3 : b2, d3 = by32 ? b4 : b3;
  const uint32_t s = offset & 31u, t = 31u - s;
  const uint32_t high = (d0 << s) | ((d1 >> 1) >> t);
  const uint32_t middle = (d1 << s) | ((d2 >> 1) >> t);
  const uint32_t low = (d2 << s) | ((d3 >> 1) >> t);
  // |x| * 2/pi mod 4, 2 bits before the point and 62 after.
  const uint64_t p = uint64_t(mantissa) * middle + ((uint64_t(mantissa) * low) >> 32);
  const uint32_t whole = mantissa * high + uint32_t(p >> 32);
  const uint32_t quadrant = (whole + 0x20000000u) >> 30;
  const double fraction = double(int32_t(whole - (quadrant << 30))) * 0x1p-30 +
                          double(int32_t(uint32_t(p) >> 1)) * 0x1p-61;
  const bool small = e < 126u;
  double r = small ? double(abs(x)) : fraction * kPiOver2High;
  r = e == 255u ? kNaN<double> : r;
  return {r, small ? 0u : quadrant & 3u};
}

struct DoubleAngle {
  double r, r_lo;
  uint64_t quadrant;
};
FACULA_INLINE DoubleAngle reduce_angle(double x) {
  const double safe = abs(x) <= kMaxAngle<double> ? x : kNaN<double>;
  const double shifted = safe * 0.6366197723675814 + kRoundMagic<double>;
  const double n = shifted - kRoundMagic<double>;
  const auto p = two_product(n, kPiOver2High);
  const auto b = two_sum(safe - p.hi, -p.lo);
  const auto q = two_product(n, kPiOver2Low);
  const auto c = two_sum(b.hi, -q.hi);
  const double lo = (b.lo + c.lo) - madd(n, kPiOver2Third, q.lo);
  const auto r = quick_two_sum(c.hi, lo);
  return {r.hi, r.lo, bits_of(shifted) & 3u};
}

FACULA_INLINE float sin_kernel(float r) {
  const float z = r * r;
  return madd(r * z, polynomial(z, -0.166666642f, 0.00833274703f, -0.00019587639f), r);
}
FACULA_INLINE float cos_kernel(float r) {
  const float z = r * r;
  const float c = polynomial(z, 0.0416666642f, -0.00138883013f, 2.45476895e-05f);
  return madd(z * z, c, madd(z, -0.5f, 1.0f));
}
// sin and cos of r + lo.
FACULA_INLINE double sin_kernel(double r, double lo) {
  const double z = r * r;
  const double p =
      polynomial(z, 0.008333333333330936, -0.00019841269836740527, 2.7557316093196066e-06,
                 -2.5051129895962807e-08, 1.5917988944318716e-10);
  const double v = z * r;
  return r - ((z * (0.5 * lo - v * p) - lo) + v * 0.16666666666666666);
}
FACULA_INLINE double cos_kernel(double r, double lo) {
  const double z = r * r;
  const double p =
      polynomial(z, 0.041666666666666664, -0.0013888888888887389, 2.48015872987544e-05,
                 -2.7557317265876615e-07, 2.087614504910828e-09, -1.1382544623404291e-11);
  const double half = 0.5 * z, w = 1.0 - half;
  return w + (((1.0 - w) - half) + (z * z * p - r * lo));
}

// The function of an angle whose sine and cosine kernels and quadrant (0 to 3) are known.
template <Real T, class Q>
FACULA_INLINE T pick_quadrant(T s, T c, Q quadrant) {
  const T v = (quadrant & 1) != 0 ? c : s;
  return std::bit_cast<T>(BitsOf<T>(bits_of(v) ^ (BitsOf<T>(quadrant & 2) << (8 * sizeof(T) - 2))));
}

// (atan(t) - t) / t for t^2 = z, |t| <= tan(pi / 8)
FACULA_INLINE double atan_tail(double z) {
  return z * polynomial(z, -0.3333333333333333, 0.199999999999998, -0.14285714285659326,
                        0.11111111105106705, -0.09090908751076636, 0.0769229630497447,
                        -0.06666423628069258, 0.058789145444006215, -0.052303478730160745,
                        0.04551108126325172, -0.034558092551413795, 0.01627194475162406);
}
// (asin(s) - s) / s for s^2 = z <= 1/4
FACULA_INLINE double asin_tail(double z) {
  return z * polynomial(z, 0.16666666666666666, 0.07500000000000118, 0.044642857142551895,
                        0.03038194447553234, 0.02237215744350722, 0.017352816540325496,
                        0.01396378001220357, 0.011566459612121669, 0.009621842970100282,
                        0.009319560794767446, 0.0030448799094556773, 0.019554513336123378,
                        -0.01924167174674304, 0.02961201126495512);
}

}  // namespace detail

// ---- sine, cosine, tangent ------------------------------------------------------------------

namespace detail {
FACULA_INLINE float sin_of(FloatAngle a) {
  const float r = float(a.r);
  return pick_quadrant(sin_kernel(r), cos_kernel(r), a.quadrant);
}
FACULA_INLINE float tan_of(FloatAngle a) {
  const double s = sin_kernel(a.r, 0.0), c = cos_kernel(a.r, 0.0);
  const bool odd = (a.quadrant & 1u) != 0;
  return float((odd ? -c : s) / (odd ? s : c));
}
FACULA_INLINE float flip_sign(float v, float sign) {
  return std::bit_cast<float>(bits_of(v) ^ (bits_of(sign) & kSignBit<float>));
}
}  // namespace detail

namespace detail {
// sin(x + turns pi/2)
FACULA_INLINE float turned_sin(float x, uint32_t turns) {
  if constexpr (kFusedAngles) {
    // The first difference is exact, the others are rounded once each: n has 16 bits at most, and
    // no float in range lies so close to a multiple of pi/2 that more would be needed.
    const float a = abs(x) <= kMaxAngle<float> ? x : kNaN<float>;
    const float shifted = madd(a, 0.636619747f, kRoundMagic<float>);
    const float n = shifted - kRoundMagic<float>;
    const float r = madd(n, 0x1.ee59dap-50f, madd(n, 0x1.777a5cp-25f, madd(n, -0x1.921fb6p+0f, a)));
    return pick_quadrant(sin_kernel(r), cos_kernel(r), bits_of(shifted) + turns);
  } else {
    auto angle = reduce_angle(x);
    angle.quadrant += turns;
    return sin_of(angle);
  }
}
}  // namespace detail

FACULA_INLINE float sin(float x) {
  const float v = detail::turned_sin(x, 0u);
  return x == 0.0f ? x : v;
}
FACULA_INLINE float cos(float x) {
  return detail::turned_sin(x, 1u);
}
FACULA_INLINE float tan(float x) {
  const float v = detail::tan_of(detail::reduce_angle(x));
  return x == 0.0f ? x : v;
}
FACULA_INLINE float sin_full_range(float x) {
  return detail::flip_sign(detail::sin_of(detail::reduce_any_angle(x)), x);
}
FACULA_INLINE float cos_full_range(float x) {
  auto a = detail::reduce_any_angle(x);
  a.quadrant += 1u;
  return detail::sin_of(a);
}
FACULA_INLINE float tan_full_range(float x) {
  return detail::flip_sign(detail::tan_of(detail::reduce_any_angle(x)), x);
}
static inline double sin_full_range(double x) {
  return std::sin(x);
}
static inline double cos_full_range(double x) {
  return std::cos(x);
}
static inline double tan_full_range(double x) {
  return std::tan(x);
}

FACULA_INLINE double sin(double x) {
  const auto a = detail::reduce_angle(x);
  const double v = detail::pick_quadrant(detail::sin_kernel(a.r, a.r_lo),
                                         detail::cos_kernel(a.r, a.r_lo), a.quadrant);
  return x == 0.0 ? x : v;
}
FACULA_INLINE double cos(double x) {
  const auto a = detail::reduce_angle(x);
  return detail::pick_quadrant(detail::sin_kernel(a.r, a.r_lo), detail::cos_kernel(a.r, a.r_lo),
                               a.quadrant + 1u);
}
FACULA_INLINE double tan(double x) {
  const auto a = detail::reduce_angle(x);
  const double s = detail::sin_kernel(a.r, a.r_lo), c = detail::cos_kernel(a.r, a.r_lo);
  const bool odd = (a.quadrant & 1u) != 0;
  const double v = (odd ? -c : s) / (odd ? s : c);
  return x == 0.0 ? x : v;
}

// sin(pi x) / (pi x), by the distance to the nearest integer: exact zeros, and every x in range.
template <Real T>
FACULA_INLINE T sinc(T x) {
  constexpr T pi = T(3.14159265358979323846);
  const T whole = round(x);
  const T s = sin(pi * (x - whole));
  const T v = (T(2) * round(T(0.5) * whole) == whole ? s : -s) / (pi * x);
  return x == T(0) ? T(1) : v;
}

// ---- inverses -------------------------------------------------------------------------------

FACULA_INLINE double atan(double x) {
  const double a = abs(x);
  // -1/a from tan(3 pi/8), (a - 1) / (a + 1) from tan(pi/8), a itself below
  const bool far = a > 2.414213562373095, near = a <= 0.41421356237309503;
  const double t = (far ? -1.0 : (near ? a : a - 1.0)) / (far ? a : (near ? 1.0 : a + 1.0));
  const double base = far ? 0x1.921fb54442d18p+0 : (near ? 0.0 : 0x1.921fb54442d18p-1);
  const double base_lo = far ? 0x1.1a62633145c07p-54 : (near ? 0.0 : 0x1.1a62633145c07p-55);
  return copysign(base + (t + madd(t, detail::atan_tail(t * t), base_lo)), x);
}

FACULA_INLINE double atan2(double y, double x) {
  double ay = abs(y), ax = abs(x);
  const bool swap = ay > ax;
  double num = swap ? ax : ay, den = swap ? ay : ax;
  // Keep num + den finite; equal infinities count as 1 / 1.
  const bool large = den > 0x1p1000;
  const bool infinite = den == kInf<double>;
  num = infinite ? (num == den ? 1.0 : 0.0) : (large ? num * 0.0625 : num);
  den = infinite ? 1.0 : (large ? den * 0.0625 : den);
  const bool near = num <= 0.41421356237309503 * den;
  const double t = (near ? num : num - den) / (near ? (den == 0.0 ? 1.0 : den) : num + den);
  const double base = near ? 0.0 : 0x1.921fb54442d18p-1;
  const double base_lo = near ? 0.0 : 0x1.1a62633145c07p-55;
  // |angle| to the nearer x axis is base + t + rest; then reflect on the diagonal and on the y
  // axis.
  double hi = base, lo = t + madd(t, detail::atan_tail(t * t), base_lo);
  hi = swap ? 0x1.921fb54442d18p+0 - hi : hi;
  lo = swap ? 0x1.1a62633145c07p-54 - lo : lo;
  const bool left = signbit(x);
  hi = left ? 0x1.921fb54442d18p+1 - hi : hi;
  lo = left ? 0x1.1a62633145c07p-53 - lo : lo;
  const double v = copysign(hi + lo, y);
  return (isnan(x) | isnan(y)) ? x + y : v;
}

FACULA_INLINE double asin(double x) {
  const double a = abs(x);
  const bool near = a <= 0.5;
  const double z = near ? a * a : 0.5 * (1.0 - a);
  const double s = near ? a : sqrt(z);
  const double p = detail::asin_tail(z);
  // pi/2 - 2 (s + s p), with s split so that pi/4 - 2 s_high is exact
  const double high = std::bit_cast<double>(bits_of(s) & 0xffffffff00000000ull);
  const double c = (z - high * high) / (s + high);
  const double far = 0x1.921fb54442d18p-1 - ((2.0 * s * p - (0x1.1a62633145c07p-54 - 2.0 * c)) -
                                             (0x1.921fb54442d18p-1 - 2.0 * high));
  return copysign(near ? madd(a, p, a) : (a == 1.0 ? 0x1.921fb54442d18p+0 : far), x);
}
FACULA_INLINE double acos(double x) {
  const double a = abs(x);
  const bool near = a <= 0.5;
  const double z = near ? a * a : 0.5 * (1.0 - a);
  const double s = near ? x : sqrt(z);
  const double p = detail::asin_tail(z);
  const double high = std::bit_cast<double>(bits_of(s) & 0xffffffff00000000ull);
  const double c = s == 0.0 ? 0.0 : (z - high * high) / (s + high);
  const double middle = 0x1.921fb54442d18p+0 - (x - (0x1.1a62633145c07p-54 - x * p));
  const double right = 2.0 * (high + madd(s, p, c));
  const double left = 0x1.921fb54442d18p+1 - 2.0 * (s + (s * p - 0x1.1a62633145c07p-54));
  return near ? middle : (x < 0.0 ? left : right);
}

// ---- hyperbolic -----------------------------------------------------------------------------

FACULA_INLINE double sinh(double x) {
  const double a = abs(x), z = x * x;
  const double near =
      madd(a * z,
           polynomial(z, 0.16666666666666666, 0.008333333333333333, 0.00019841269841269773,
                      2.755731922404034e-06, 2.505210836405804e-08, 1.6059048396350562e-10,
                      7.646625361656657e-13, 2.8445264169895285e-15),
           a);
  const double h = detail::exp_shifted(a, -1);  // e^a / 2
  return copysign(a < 1.0 ? near : h - 0.25 / h, x);
}
FACULA_INLINE double cosh(double x) {
  const double h = detail::exp_shifted(abs(x), -1);
  return h + 0.25 / h;
}
FACULA_INLINE float tanh(float x) {
  const float a = abs(x), z = x * x;
  const float near = madd(
      a * z,
      polynomial(z, -0.333333284f, 0.133327693f, -0.0538509078f, 0.0209971797f, -0.00609671418f),
      a);
  const float far = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return copysign(a < 0.625f ? near : far, x);
}
FACULA_INLINE double tanh(double x) {
  const double a = abs(x), z = x * x;
  const double near =
      madd(a * z,
           polynomial(z, -0.3333333333333333, 0.13333333333333042, -0.05396825396789699,
                      0.021869488519008305, -0.008863235103240878, 0.0035921217511549622,
                      -0.0014557754120478055, 0.0005896606577757043, -0.0002375906496055562,
                      9.257116129556769e-05, -3.12011014257974e-05, 6.485163482793113e-06),
           a);
  const double far = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
  return copysign(a < 0.625 ? near : far, x);
}
FACULA_INLINE double asinh(double x) {
  const double a = abs(x);
  const bool large = a > 0x1p28;
  const double b = large ? 1.0 : a;  // keeps the square finite
  const double t = large ? a - 1.0 : b + b * b / (1.0 + sqrt(madd(b, b, 1.0)));
  return copysign(log1p(t) + (large ? 0.6931471805599453 : 0.0), x);
}
FACULA_INLINE double acosh(double x) {
  const bool large = x > 0x1p28;
  const double b = large ? 1.0 : x - 1.0;
  const double t = large ? x - 1.0 : b + sqrt(madd(b, b, 2.0 * b));
  const double v = log1p(t) + (large ? 0.6931471805599453 : 0.0);
  return x < 1.0 ? kNaN<double> : v;
}
FACULA_INLINE double atanh(double x) {
  const double a = abs(x);
  const double t = (a < 0.5 ? madd(a, a / (1.0 - a), a) : a / (1.0 - a)) * 2.0;
  return copysign(0.5 * log1p(t), x);
}

// In float, the ones that networks seldom call go through double, with polynomials of a float's
// precision where there is one.
namespace detail {
FACULA_INLINE double atan_tail_for_float(double z) {
  return z * polynomial(z, -0.3333333333144073, 0.1999999891728858, -0.14285612511387008,
                        0.11107495135714324, -0.09028983500349023, 0.07135325122323992,
                        -0.040432248258752024);
}
FACULA_INLINE double asin_tail_for_float(double z) {
  return z * polynomial(z, 0.16666666665495086, 0.07500000598829049, 0.044642358484883155,
                        0.03039763413058142, 0.022132443623419724, 0.019306260869405265,
                        0.005443185102648374, 0.029305239705442607);
}
// The same within float: (atan(t) - t) / t for |t| <= tan(pi / 8).
FACULA_INLINE float atan_tail(float z) {
  return z *
         polynomial(z, -0.333333318f, 0.199995405f, -0.142639556f, 0.107437315f, -0.0645192821f);
}
}  // namespace detail

FACULA_INLINE float atan(float x) {
  const double a = abs(x);
  const bool far = a > 2.414213562373095, near = a <= 0.41421356237309503;
  const double t = (far ? -1.0 : (near ? a : a - 1.0)) / (far ? a : (near ? 1.0 : a + 1.0));
  const double base = far ? 0x1.921fb54442d18p+0 : (near ? 0.0 : 0x1.921fb54442d18p-1);
  return copysign(float(base + madd(t, detail::atan_tail_for_float(t * t), t)), x);
}
// As in double, with two words for the multiples of pi / 4.
FACULA_INLINE float atan2(float y, float x) {
  const float ay = abs(y), ax = abs(x);
  const bool swap = ay > ax;
  float num = swap ? ax : ay, den = swap ? ay : ax;
  const bool infinite = den == kInf<float>;
  // Towards 1: num + den stays finite, and neither is subnormal while that matters.
  const float scale = den > 0x1p60f ? 0x1p-60f : 0x1p60f;
  num = infinite ? (num == den ? 1.0f : 0.0f) : num * scale;
  den = infinite ? 1.0f : den * scale;
  const bool near = num <= 0.414213562f * den;
  const float t = (near ? num : num - den) / (near ? (den == 0.0f ? 1.0f : den) : num + den);
  float hi = near ? 0.0f : 0x1.921fb6p-1f, lo = near ? 0.0f : -0x1.777a5cp-26f;
  lo = t + madd(t, detail::atan_tail(t * t), lo);
  hi = swap ? 0x1.921fb6p+0f - hi : hi;
  lo = swap ? -0x1.777a5cp-25f - lo : lo;
  const bool left = signbit(x);
  hi = left ? 0x1.921fb6p+1f - hi : hi;
  lo = left ? -0x1.777a5cp-24f - lo : lo;
  const float v = copysign(hi + lo, y);
  return (isnan(x) | isnan(y)) ? x + y : v;
}
FACULA_INLINE float asin(float x) {
  const double a = abs(x);
  const bool near = a <= 0.5;
  const double z = near ? a * a : 0.5 * (1.0 - a);
  const double s = near ? a : sqrt(z);
  const double v = madd(s, detail::asin_tail_for_float(z), s);
  return copysign(float(near ? v : 0x1.921fb54442d18p+0 - 2.0 * v), x);
}
FACULA_INLINE float acos(float x) {
  const double a = abs(x);
  const bool near = a <= 0.5;
  const double z = near ? a * a : 0.5 * (1.0 - a);
  const double s = near ? double(x) : sqrt(z);
  const double v = madd(s, detail::asin_tail_for_float(z), s);
  const double far = x < 0.0f ? 0x1.921fb54442d18p+1 - 2.0 * v : 2.0 * v;
  return float(near ? 0x1.921fb54442d18p+0 - v : far);
}
FACULA_INLINE float sinh(float x) {
  const double a = abs(x), z = a * a;
  const double near =
      madd(a * z,
           polynomial(z, 0.16666666666698407, 0.008333333317464362, 0.0001984128253011599,
                      2.755377026364148e-06, 2.5456706571524228e-08),
           a);
  const double h = detail::exp2_for_float(a * 1.4426950408889634 - 1.0);  // e^a / 2
  return copysign(float(a < 1.0 ? near : h - 0.25 / h), x);
}
FACULA_INLINE float cosh(float x) {
  const double h = detail::exp2_for_float(double(abs(x)) * 1.4426950408889634 - 1.0);
  return float(h + 0.25 / h);
}
// log((1 + x) / (1 - x)) / 2; near 0, where 1 + x loses too much, by the series.
FACULA_INLINE float atanh(float x) {
  const double a = abs(x), z = a * a;
  const double near = madd(a * z, polynomial(z, 1.0 / 3, 0.2), a);
  const double l = detail::log2_for_float((1.0 + a) / (1.0 - a)) * 0.34657359027997264;
  const double v = a < 0.0078125 ? near : (a < 1.0 ? l : (a == 1.0 ? kInf<double> : kNaN<double>));
  return copysign(float(v), x);
}
FACULA_INLINE float asinh(float x) {
  return float(asinh(double(x)));
}
FACULA_INLINE float acosh(float x) {
  return float(acosh(double(x)));
}

// sqrt(x^2 + y^2) without over- or underflow on the way.
FACULA_INLINE float hypot(float x, float y) {
  const double a = x, b = y;
  const float v = float(sqrt(a * a + b * b));
  return (isinf(x) | isinf(y)) ? kInf<float> : v;
}
FACULA_INLINE double hypot(double x, double y) {
  const double ax = abs(x), ay = abs(y);
  const double larger = ax > ay ? ax : ay;
  // A power of two near the larger side; the exponent field alone, so that it is exact.
  const uint64_t e = bits_of(larger) & 0x7ff0000000000000ull;
  const uint64_t low = uint64_t(1) << 52, high = uint64_t(2045) << 52;
  const uint64_t clamped = e < low ? low : (e > high ? high : e);
  const double scale = std::bit_cast<double>(clamped);
  const double inverse = std::bit_cast<double>((uint64_t(2046) << 52) - clamped);
  const double a = ax * inverse, b = ay * inverse;
  const double v = sqrt(madd(a, a, b * b)) * scale;
  return (isinf(x) | isinf(y)) ? kInf<double> : v;
}

}  // namespace facula::math

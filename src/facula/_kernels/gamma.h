// Gamma functions: digamma, polygamma, the Hurwitz zeta function, incomplete gamma functions.
// Shared text, see special.cuh and cpu/math_special.h.
#pragma once

namespace facula {
namespace math {

// ---- digamma and its derivatives ------------------------------------------------------------

// The derivative of lgamma, without branches: eight steps of the recurrence where x < 8, whose
// reciprocals pair up to one quotient, then the asymptotic series.
FACULA_FUNCTION double digamma(double x) {
  constexpr double pi = 3.14159265358979323846;
  const bool negative = x < 0.0;
  const double y = negative ? 1.0 - x : x;
  const bool small = y < 8.0;
  const double u = y * (y + 7.0);
  // 1/y + 1/(y + 1) + ... + 1/(y + 7)
  const double sum = (2.0 * y + 7.0) * polynomial(u, 720.0, 504.0, 84.0, 4.0) /
                     (u * ((u + 6.0) * ((u + 10.0) * (u + 12.0))));
  const double w = small ? y + 8.0 : y;
  const double z = 1.0 / (w * w);
  // Bernoulli numbers B(2k) / 2k
  const double series =
      z * polynomial(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760,
                     1.0 / 12, -3617.0 / 8160, 43867.0 / 14364, -174611.0 / 6600);
  const double right = (log(w) - 0.5 / w - (w < 1e17 ? series : 0.0)) - (small ? sum : 0.0);
  // psi(x) = psi(1 - x) - pi / tan(pi x); the period of the tangent keeps its argument small
  const double fraction = x - round(x);
  const double left = right - pi / tan(pi * fraction);
  const double v = negative ? (fraction == 0.0 ? kNaN<double> : left) : right;
  return x == 0.0 ? copysign(kInf<double>, -x) : v;
}
FACULA_FUNCTION float digamma(float x) {
  return float(digamma(double(x)));
}

// The derivative of digamma, in the same way.
FACULA_FUNCTION double trigamma(double x) {
  constexpr double pi = 3.14159265358979323846;
  const bool negative = x < 0.0;
  const double y = negative ? 1.0 - x : x;
  const bool small = y < 8.0;
  const double u = y * (y + 7.0), v = 2.0 * u + 25.0;
  const double b = u + 6.0, c = u + 10.0, d = u + 12.0;
  // 1/y^2 + 1/(y + 1)^2 + ... + 1/(y + 7)^2, two at a time
  const double sum =
      (v + 24.0) / (u * u) + ((v + 12.0) / (b * b) + ((v + 4.0) / (c * c) + v / (d * d)));
  const double w = small ? y + 8.0 : y;
  const double z = 1.0 / (w * w);
  const double series =
      z * polynomial(z, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6,
                     -3617.0 / 510, 43867.0 / 798, -174611.0 / 330);
  const double right = ((1.0 + series) / w + 0.5 * z) + (small ? sum : 0.0);
  // psi'(x) = pi^2 / sin^2(pi x) - psi'(1 - x)
  const double s = sin(pi * (x - round(x)));
  const double left = pi * pi / (s * s) - right;
  const double value = negative ? left : right;
  return x == 0.0 ? kInf<double> : value;
}
FACULA_FUNCTION float trigamma(float x) {
  return float(trigamma(double(x)));
}

// x^-s; small whole exponents, those of polygamma, by products.
FACULA_LARGE_FUNCTION double negative_power(double x, double s) {
  if (s > 16.0 || s != floor(s)) return scalar_pow(x, -s);
  double square = 1.0 / x, product = 1.0;
  for (int k = int(s); k != 0; k >>= 1) {
    if (k & 1) product *= square;
    square *= square;
  }
  return product;
}

// The sum of ((q + k) / unit)^-s over k = 0, 1, 2 ... for q > 0 and s > 1: terms up to where the
// series of Euler and Maclaurin converges, or up to where they vanish.
FACULA_LARGE_FUNCTION double zeta_positive(double s, double q, double unit) {
  double w = q, term = negative_power(w / unit, s), sum = term;
  while (w < 9.0 + 0.5 * s) {
    w += 1.0;
    term = negative_power(w / unit, s);
    sum += term;
    if (term <= 1e-17 * sum) return sum;
  }
  // The last term counts half, and the integral from w on is added.
  sum += term * (w / (s - 1.0) - 0.5);
  // B(2j) / (2j)!, each over the one before
  constexpr double ratio[] = {
      1.0 / 12,       -1.0 / 60,    -1.0 / 42,        -1.0 / 40,           -5.0 / 198,
      -691.0 / 27300, -35.0 / 1382, -3617.0 / 142800, -219335.0 / 8659098, -1222277.0 / 48253700};
  const double inverse = 1.0 / w, inverse_square = inverse * inverse;
  double factor = s * inverse;
  for (int j = 0; j < 10; ++j) {
    term *= ratio[j] * factor;
    sum += term;
    if (abs(term) < 1e-17 * sum) break;
    factor = (s + 2 * j + 1) * (s + 2 * j + 2) * inverse_square;
  }
  return sum;
}

// The Hurwitz zeta function. Left of 0 the terms up to the sign change are those of two others,
// so that no distance from 0 takes long.
FACULA_LARGE_FUNCTION double zeta(double s, double q) {
  if (isnan(s) || isnan(q)) return kNaN<double>;
  if (s == 1.0) return kInf<double>;
  if (s < 1.0) return kNaN<double>;
  if (q <= 0.0) {
    const double whole = floor(q);
    if (q == whole) return q == -kInf<double> ? kNaN<double> : kInf<double>;
    if (s != floor(s)) return kNaN<double>;  // powers of negative numbers
    const double r = q - whole, left = 1.0 - r;
    const double sign = 2.0 * floor(0.5 * s) == s ? 1.0 : -1.0;
    // The two large sums meet first: for odd s they may cancel.
    return (zeta_positive(s, r, 1.0) + sign * zeta_positive(s, left, 1.0)) -
           sign * zeta_positive(s, left - whole, 1.0);
  }
  if (q == kInf<double>) return 0.0;
  if (s == kInf<double>) return q < 1.0 ? s : (q == 1.0 ? 1.0 : 0.0);
  return zeta_positive(s, q, 1.0);
}
FACULA_FUNCTION float zeta(float s, float q) {
  return float(zeta(double(s), double(q)));
}

// The n-th derivative of digamma.
FACULA_LARGE_FUNCTION double polygamma(long long n, double x) {
  if (n <= 1) return n == 0 ? digamma(x) : trigamma(x);
  if (isnan(x) || x == -kInf<double>) return kNaN<double>;
  const bool even = n % 2 == 0;
  if (x == kInf<double>) return even ? -0.0 : 0.0;
  const double s = double(n) + 1.0;
  double v;
  if (n > 140 && x > 0.0) {  // n! may overflow where the product does not
    v = exp(lgamma(s) - s * log(x)) * zeta_positive(s, x, x);
  } else {
    v = zeta(s, x);
    for (long long k = 2; k <= n && abs(v) < kInf<double>; ++k) v *= double(k);
  }
  return even ? -v : v;
}
FACULA_FUNCTION float polygamma(long long n, float x) {
  return float(polygamma(n, double(x)));
}

// ---- incomplete gamma functions -------------------------------------------------------------

// log(1 + x) - x without cancellation.
FACULA_LARGE_FUNCTION double log1p_minus(double x) {
  if (x < -0.6 || x > 1.0) return log1p(x) - x;
  // 2 atanh(s) - x, where 2 s = x - s x
  const double s = x / (2.0 + x), z = s * s;
  double sum = 0.0, power = 1.0;
  for (int k = 3; power > 1e-18 && k < 80; k += 2) {
    sum += power / k;
    power *= z;
  }
  return 2.0 * s * z * sum - s * x;
}

// log(gamma(1 + a)) for 0 <= a <= 1/2
FACULA_FUNCTION double log_gamma_near_one(double a) {
  return a * polynomial(a, -0.5772156649015329, 0.8224670334241111, -0.40068563438612054,
                        0.27058080839689214, -0.2073855498000029, 0.16955714718699919,
                        -0.1440494169250689, 0.12550426183424798, -0.11129003059907988,
                        0.09983029266550116, -0.08971546607750325, 0.07899773074265236,
                        -0.06514186314914436, 0.0467390970847178, -0.026309771991614363,
                        0.009975085962529514, -0.001862005318289007);
}

// 1 / gamma(a) for 0 < a <= 20: a polynomial on [1, 2], and the factors up or down to there.
FACULA_LARGE_FUNCTION double reciprocal_gamma(double a) {
  const double factor = a < 1.0 ? a : 1.0;
  double product = 1.0;
  a = a < 1.0 ? a + 1.0 : a;
  while (a > 2.0) {
    a -= 1.0;
    product *= a;
  }
  return factor / product *
         polynomial(2.0 * a - 3.0, 1.1283791670955126, -0.020587263222641056, -0.13166360888138617,
                    0.02188775325547358, 0.003185428765482799, -0.0013173490425715242,
                    0.00010332652853474722, 1.656821347224228e-05, -4.3387900204370255e-06,
                    2.9757572143639946e-07, 2.4760865185374073e-08, -6.78847509732497e-09,
                    5.265069550578184e-10, 9.020390129765525e-12, -5.495649505815726e-12);
}

// x^a e^-x / gamma(a)
FACULA_LARGE_FUNCTION double gamma_density(double a, double x) {
  if (a <= 20.0) {
    if (x > 2000.0) return 0.0;
    const double half = exp(-0.5 * x);  // e^-x vanishes before the product does
    return half * (scalar_pow(x, a) * reciprocal_gamma(a)) * half;
  }
  const double mu = (x - a) / a;
  const double exponent = mu < -0.5 ? a * (log(x / a) - mu) : a * log1p_minus(mu);
  const double z = 1.0 / (a * a);
  const double correction =
      polynomial(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188) / a;
  return exp(exponent - correction) * sqrt(a / 6.283185307179586);
}

// Temme's expansion (1979), uniform around x = a for large a: the lower and the upper function.
FACULA_LARGE_FUNCTION double gamma_near_transition(double a, double x, bool lower) {
  const double half_square = -log1p_minus((x - a) / a);  // eta^2 / 2
  const double eta = x < a ? -sqrt(2.0 * half_square) : sqrt(2.0 * half_square);
  const double z = 1.0 / a;
  const double c0 = polynomial(
      eta, -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
      0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
      -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
      1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
      -5.830772132550426e-11);
  const double c1 = polynomial(
      eta, -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
      -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07,
      -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09,
      1.378633446915721e-07, -5.752545603517705e-08, 1.1951628599778148e-08,
      -1.7543241719747647e-11, -1.0091543710600413e-09, 4.162792991842583e-10);
  const double c2 =
      polynomial(eta, 0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
                 2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05,
                 -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06,
                 -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10,
                 -1.409252991086752e-08, 6.228974084922022e-09, -1.3670488396617114e-09);
  const double c3 =
      polynomial(eta, 0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557,
                 0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
                 1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
                 -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
                 -1.9111168485973655e-08);
  const double c4 =
      polynomial(eta, -0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902,
                 -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
                 1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06,
                 8.907507532205309e-07, -2.292934834000805e-07);
  const double c5 =
      polynomial(eta, -0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
                 -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07,
                 -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06,
                 -3.252473551298454e-10, 3.4652846491085265e-07);
  const double c6 = polynomial(
      eta, 0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045,
      7.902353232660328e-07, -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05,
      -3.0796134506033047e-09, 3.465155368803609e-06, -2.0291327396058603e-06);
  const double c7 =
      polynomial(eta, 0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234,
                 0.0002812695154763237, -0.00010976582244684731, -1.2741009095484485e-07,
                 2.7744451511563645e-05, -1.8263488805711332e-05);
  const double c8 =
      polynomial(eta, -0.0006526239185953094, 0.0008394987206720873, -0.000438297098541721,
                 -6.969091458420552e-07, 0.00016644846642067547, -0.00012783517679769218,
                 4.629953263691304e-05);
  const double c9 =
      polynomial(eta, -0.0005967612901927463, -7.204895416020011e-05, 0.0006782308837667328,
                 -0.0006401475260262758, 0.00027750107634328704);
  const double rest = polynomial(z, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9) *
                      exp(-a * half_square) / sqrt(6.283185307179586 * a);
  const double root = eta * sqrt(0.5 * a);
  return lower ? 0.5 * erfc(-root) - rest : 0.5 * erfc(root) + rest;
}

// The lower function for x that are not large against a: the sum of x^k / ((a + 1) ... (a + k)),
// all terms positive, over a common denominator, which saves the divisions. Here and below, terms
// that change a result by less than `least` of it are left out.
FACULA_LARGE_FUNCTION double gamma_series(double a, double x, double least) {
  double sum = 1.0, denominator = 1.0, power = 1.0;
  for (double n = a + 1.0; power > least * sum; n += 1.0) {
    power *= x;
    sum = sum * n + power;
    denominator *= n;
    if (sum > 1e280) {
      sum *= 1e-280;
      denominator *= 1e-280;
      power *= 1e-280;
    }
  }
  return gamma_density(a, x) / a * (sum / denominator);
}

// The upper function for small a and x, where it is no difference of the lower one from 1.
FACULA_LARGE_FUNCTION double gamma_upper_series(double a, double x, double least) {
  double sum = 0.0, term = 1.0;
  for (int n = 1; n < 60; ++n) {
    term *= -x / n;
    sum += term / (a + n);
    if (abs(term) < least * abs(sum)) break;
  }
  const double exponent = a * log(x) - (a <= 0.5 ? log_gamma_near_one(a) : lgamma(1.0 + a));
  return -expm1(exponent) - a * exp(exponent) * sum;
}

// The upper function for x above a: Legendre's continued fraction, by the recurrence of its
// numerators and denominators; quotients are compared every few steps.
FACULA_LARGE_FUNCTION double gamma_fraction(double a, double x, double least) {
  const double density = gamma_density(a, x);
  if (density == 0.0) return 0.0;
  double b = x + 1.0 - a, p_before = 0.0, p = 1.0, q_before = 1.0, q = b, value = 1.0 / b;
  for (int i = 1; i < 2000; ++i) {
    const double factor = i * (a - i);
    b += 2.0;
    const double p_next = b * p + factor * p_before, q_next = b * q + factor * q_before;
    p_before = p;
    q_before = q;
    p = p_next;
    q = q_next;
    if (i % 4 != 0) continue;
    const double scale = 1.0 / q, next = p * scale;
    if (abs(next - value) <= 40.0 * least * abs(next)) return density * next;
    value = next;
    p = next;
    p_before *= scale;
    q_before *= scale;
    q = 1.0;
  }
  return density * value;
}

// The regularised incomplete gamma function P (lower) or Q = 1 - P of a and x.
FACULA_LARGE_FUNCTION double incomplete_gamma(double a, double x, bool lower, double least) {
  if (a < 0.0 || x < 0.0) return kNaN<double>;
  const double zero = lower ? 0.0 : 1.0;
  // As PyTorch has it, an infinity beside a NaN decides.
  if (a == kInf<double>) return x == kInf<double> ? kNaN<double> : zero;
  if (x == kInf<double>) return 1.0 - zero;
  if (isnan(a) || isnan(x)) return kNaN<double>;
  if (a == 0.0) return x > 0.0 ? 1.0 - zero : kNaN<double>;
  if (x == 0.0) return zero;
  if (a > 20.0 && abs(x - a) < 0.3 * a) return gamma_near_transition(a, x, lower);
  // Around x = a the series is the quicker one; the upper function may be 1 minus it while that
  // is not small.
  const double reach = lower ? sqrt(a) + 1.0 : (a > 2.0 ? 0.7 * sqrt(a) : 0.0);
  if (x > 1.5 && x > a + reach) {
    const double upper = gamma_fraction(a, x, least);
    return lower ? 1.0 - upper : upper;
  }
  if (!lower && x <= 1.5 && a <= 1.5) return gamma_upper_series(a, x, least);
  const double value = gamma_series(a, x, least);
  return lower ? value : 1.0 - value;
}
// Results in float32 need fewer terms.
template <class T>
FACULA_FUNCTION double least_term() {
  return sizeof(T) == 8 ? 1e-17 : 1e-11;
}
template <class T>
FACULA_FUNCTION T igamma(T a, T x) {
  return T(incomplete_gamma(double(a), double(x), true, least_term<T>()));
}
template <class T>
FACULA_FUNCTION T igammac(T a, T x) {
  return T(incomplete_gamma(double(a), double(x), false, least_term<T>()));
}

}  // namespace math
}  // namespace facula

// One-dimensional transforms of Winograd's algorithm: F(M, 3), M outputs of a kernel of three taps,
// and F(3, M), its derivative by the taps (Lavin and Gray, 2015). Both see side = M + 2 inputs and
// interpolate at as many points, so that the transformed input is the same.
#pragma once
#include "cpu/conv_pack.h"

namespace facula::FACULA_ISA {

using Floats = Vector<float>;

template <int M>
struct Winograd;

// The points 0, 5/8, -5/8, 3/2, -3/2 and infinity keep rounding errors within three times those of
// a plain sum; the usual 0, 1, -1, 2, -2 lose two more bits.
template <>
struct Winograd<4> {
  static constexpr float kA = 0.625f, kB = 1.5f;
  static constexpr float kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
  static constexpr float kProduct = kA2 * kB2, kSum = kA2 + kB2;
  // The reciprocals of the products of differences between each point and the others.
  static constexpr float kAt0 = 1 / kProduct, kAtA = 1 / (2 * kA2 * (kA2 - kB2)),
                         kAtB = 1 / (2 * kB2 * (kB2 - kA2));

  FACULA_INLINE static void input(const Floats* d, Floats* out, int step) {
    const Floats even_a = d[4] - kB2 * d[2], odd_a = d[3] - kB2 * d[1];
    const Floats even_b = d[4] - kA2 * d[2], odd_b = d[3] - kA2 * d[1];
    out[0] = (d[4] - kSum * d[2]) + kProduct * d[0];
    out[step] = even_a + kA * odd_a;
    out[2 * step] = even_a - kA * odd_a;
    out[3 * step] = even_b + kB * odd_b;
    out[4 * step] = even_b - kB * odd_b;
    out[5 * step] = (d[5] - kSum * d[3]) + kProduct * d[1];
  }
  FACULA_INLINE static void kernel(const Floats* g, Floats* out, int step) {
    const Floats even_a = kAtA * g[0] + (kAtA * kA2) * g[2], odd_a = (kAtA * kA) * g[1];
    const Floats even_b = kAtB * g[0] + (kAtB * kB2) * g[2], odd_b = (kAtB * kB) * g[1];
    out[0] = kAt0 * g[0];
    out[step] = even_a + odd_a;
    out[2 * step] = even_a - odd_a;
    out[3 * step] = even_b + odd_b;
    out[4 * step] = even_b - odd_b;
    out[5 * step] = g[2];
  }
  FACULA_INLINE static void output(const Floats* m, Floats* out, int step) {
    const Floats even_a = m[1] + m[2], odd_a = m[1] - m[2], even_b = m[3] + m[4],
                 odd_b = m[3] - m[4];
    out[0] = m[0] + even_a + even_b;
    out[step] = kA * odd_a + kB * odd_b;
    out[2 * step] = kA2 * even_a + kB2 * even_b;
    out[3 * step] = kA3 * odd_a + kB3 * odd_b + m[5];
  }
  FACULA_INLINE static void gradient(const Floats* g, Floats* out, int step) {
    const Floats even_a = kAtA * g[0] + (kAtA * kA2) * g[2];
    const Floats odd_a = (kAtA * kA) * g[1] + (kAtA * kA3) * g[3];
    const Floats even_b = kAtB * g[0] + (kAtB * kB2) * g[2];
    const Floats odd_b = (kAtB * kB) * g[1] + (kAtB * kB3) * g[3];
    out[0] = kAt0 * g[0];
    out[step] = even_a + odd_a;
    out[2 * step] = even_a - odd_a;
    out[3 * step] = even_b + odd_b;
    out[4 * step] = even_b - odd_b;
    out[5 * step] = g[3];
  }
  FACULA_INLINE static void weight(const Floats* m, Floats* out, int step) {
    const Floats even_a = m[1] + m[2], odd_a = m[1] - m[2], even_b = m[3] + m[4],
                 odd_b = m[3] - m[4];
    out[0] = m[0] + even_a + even_b;
    out[step] = kA * odd_a + kB * odd_b;
    out[2 * step] = kA2 * even_a + kB2 * even_b + m[5];
  }
};

// The points 0, 1, -1 and infinity: sums over a ninth of the products of a plain sum, and no
// factors but 1/2. Rounding errors are those of plain sums or less.
template <>
struct Winograd<2> {
  FACULA_INLINE static void input(const Floats* d, Floats* out, int step) {
    out[0] = d[0] - d[2];
    out[step] = d[2] + d[1];
    out[2 * step] = d[2] - d[1];
    out[3 * step] = d[3] - d[1];
  }
  FACULA_INLINE static void kernel(const Floats* g, Floats* out, int step) {
    const Floats even = 0.5f * (g[0] + g[2]), odd = 0.5f * g[1];
    out[0] = g[0];
    out[step] = even + odd;
    out[2 * step] = even - odd;
    out[3 * step] = g[2];
  }
  FACULA_INLINE static void output(const Floats* m, Floats* out, int step) {
    out[0] = m[0] + (m[1] + m[2]);
    out[step] = (m[1] - m[2]) + m[3];
  }
  FACULA_INLINE static void gradient(const Floats* g, Floats* out, int step) {
    out[0] = g[0];
    out[step] = 0.5f * (g[0] + g[1]);
    out[2 * step] = 0.5f * (g[0] - g[1]);
    out[3 * step] = g[1];
  }
  FACULA_INLINE static void weight(const Floats* m, Floats* out, int step) {
    const Floats even = m[1] + m[2];
    out[0] = m[0] + even;
    out[step] = m[1] - m[2];
    out[2 * step] = even + m[3];
  }
};

}  // namespace facula::FACULA_ISA

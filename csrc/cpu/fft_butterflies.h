// Transforms of a few numbers, in every lane at once, and the passes made of them.
#pragma once
#include "cpu/fft_vector.h"

#include "cpu/fft_loops.h"

namespace facula::FACULA_ISA {

template <class T>
inline void butterfly2(Lanes<T>* a) {
  const Lanes<T> sum = a[0] + a[1];
  a[1] = a[0] - a[1];
  a[0] = sum;
}

template <class T>
inline void butterfly4(Lanes<T>& a, Lanes<T>& b, Lanes<T>& c, Lanes<T>& d) {
  const Lanes<T> s = a + c, u = a - c, t = b + d, v = (b - d).times_minus_i();
  a = s + t;
  b = u + v;
  c = s - t;
  d = u - v;
}

template <class T>
inline void butterfly8(Lanes<T>* a) {
  constexpr T h = T(0.70710678118654752440);
  Lanes<T> e0 = a[0] + a[4], o0 = a[0] - a[4];
  Lanes<T> e1 = a[1] + a[5], d1 = a[1] - a[5];
  Lanes<T> e2 = a[2] + a[6], o2 = (a[2] - a[6]).times_minus_i();
  Lanes<T> e3 = a[3] + a[7], d3 = a[3] - a[7];
  Lanes<T> o1 = Lanes<T>{d1.re + d1.im, d1.im - d1.re} * h;     // times (1 - i) / sqrt 2
  Lanes<T> o3 = Lanes<T>{d3.im - d3.re, -(d3.re + d3.im)} * h;  // times (-1 - i) / sqrt 2
  butterfly4(e0, e1, e2, e3);
  butterfly4(o0, o1, o2, o3);
  a[0] = e0, a[1] = o0, a[2] = e1, a[3] = o1;
  a[4] = e2, a[5] = o2, a[6] = e3, a[7] = o3;
}

// Cosines and sines of 2 pi j / R for j = 0 .. R / 2.
template <int R>
struct Circle;
template <>
struct Circle<3> {
  static constexpr double cos[] = {1, -0.5}, sin[] = {0, 0.86602540378443864676};
};
template <>
struct Circle<5> {
  static constexpr double cos[] = {1, 0.30901699437494742410, -0.80901699437494742410};
  static constexpr double sin[] = {0, 0.95105651629515357212, 0.58778525229247312917};
};
template <>
struct Circle<7> {
  static constexpr double cos[] = {1, 0.62348980185873353053, -0.22252093395631440429,
                                   -0.90096886790241912624};
  static constexpr double sin[] = {0, 0.78183148246802980871, 0.97492791218182360702,
                                   0.43388373911755812048};
};

// Results k and R - k come from the same sums: of a[j] + a[R - j] with cosines and of a[j] - a[R -
// j] with sines.
template <int R, class T>
inline void butterfly_odd(Lanes<T>* a) {
  constexpr int H = R / 2;
  Lanes<T> sum[H], difference[H], first = a[0];
#pragma GCC unroll 8
  for (int j = 1; j <= H; ++j) {
    sum[j - 1] = a[j] + a[R - j];
    difference[j - 1] = (a[j] - a[R - j]).times_minus_i();
    first = first + sum[j - 1];
  }
#pragma GCC unroll 8
  for (int k = 1; k <= H; ++k) {
    Lanes<T> even = a[0], odd = {};
#pragma GCC unroll 8
    for (int j = 1; j <= H; ++j) {
      const int at = j * k % R;
      const T c = T(Circle<R>::cos[at > H ? R - at : at]);
      const T s = T(at > H ? -Circle<R>::sin[R - at] : Circle<R>::sin[at]);
      even = even + sum[j - 1] * c;
      odd = j == 1 ? difference[0] * s : odd + difference[j - 1] * s;
    }
    a[k] = even + odd;
    a[R - k] = even - odd;
  }
  a[0] = first;
}

template <int R, class T>
inline void butterfly(Lanes<T>* a) {
  if constexpr (R == 2) butterfly2(a);
  else if constexpr (R == 4) butterfly4(a[0], a[1], a[2], a[3]);
  else if constexpr (R == 8) butterfly8(a);
  else butterfly_odd<R>(a);
}

// A pass over `blocks` blocks, whose butterflies [begin, end) are done.
template <class T, int R, bool Twiddled>
void pass_of(T* rows, int64_t blocks, int64_t span, int64_t begin, int64_t end, const T* twiddles) {
  const int64_t apart = span * kFftRow<T>;
  for (int64_t b = 0; b < blocks; ++b, rows += R * apart) {
    T* row = rows + begin * kFftRow<T>;
    const T* w = twiddles + begin * 2 * (R - 1);
    for (int64_t p = begin; p < end; ++p, row += kFftRow<T>, w += 2 * (R - 1)) {
      Lanes<T> a[R];
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) a[k] = Lanes<T>::load(row + k * apart);
      butterfly<R>(a);
      a[0].store(row);
#pragma GCC unroll 16
      for (int k = 1; k < R; ++k) {
        const Lanes<T> y = Twiddled ? a[k].times(w[2 * k - 2], w[2 * k - 1]) : a[k];
        y.store(row + k * apart);
      }
    }
  }
}

// Any odd radix, as butterfly_odd does it.
template <class T>
void pass_odd(T* rows, int64_t blocks, const FftPass<T>& pass, int64_t begin, int64_t end) {
  const int R = pass.radix, H = R / 2;
  const int64_t apart = pass.span * kFftRow<T>;
  for (int64_t b = 0; b < blocks; ++b, rows += R * apart) {
    for (int64_t p = begin; p < end; ++p) {
      T* row = rows + p * kFftRow<T>;
      Lanes<T> sum[kLargestFftRadix / 2], difference[kLargestFftRadix / 2];
      const Lanes<T> a0 = Lanes<T>::load(row);
      Lanes<T> first = a0;
      for (int j = 1; j <= H; ++j) {
        const Lanes<T> x = Lanes<T>::load(row + j * apart),
                       y = Lanes<T>::load(row + (R - j) * apart);
        sum[j - 1] = x + y;
        difference[j - 1] = (x - y).times_minus_i();
        first = first + sum[j - 1];
      }
      first.store(row);
      for (int k = 1; k <= H; ++k) {
        Lanes<T> even = a0, odd = {};
        for (int j = 1, at = k; j <= H; ++j, at = at + k >= R ? at + k - R : at + k) {
          even = even + sum[j - 1] * pass.roots[2 * at];
          odd = odd - difference[j - 1] * pass.roots[2 * at + 1];
        }
        Lanes<T> low = even + odd, high = even - odd;
        if (pass.twiddles) {
          const T* w = pass.twiddles + p * 2 * (R - 1);
          low = low.times(w[2 * k - 2], w[2 * k - 1]);
          high = high.times(w[2 * (R - k) - 2], w[2 * (R - k) - 1]);
        }
        low.store(row + k * apart);
        high.store(row + (R - k) * apart);
      }
    }
  }
}

template <class T>
void run_passes(const FftSchedule<T>& schedule, int level, T* rows, T* spare);

// A large prime radix: the rows of a butterfly are brought to the spare rows, convolved there and
// brought back.
template <class T>
void pass_convolved(T* rows, int64_t blocks, const FftPass<T>& pass, int64_t begin, int64_t end,
                    T* spare) {
  const FftConvolution<T>& convolution = *pass.convolution;
  const FftSchedule<T>& schedule = *convolution.schedule;
  const T *chirp = convolution.chirp, *kernel = convolution.kernel;
  const int64_t R = pass.radix, length = schedule.length, apart = pass.span * kFftRow<T>;
  T* product = spare + length * kFftRow<T>;
  const auto spare_row = [&](int64_t m) { return spare + m * kFftRow<T>; };
  for (int64_t b = 0; b < blocks; ++b, rows += R * apart) {
    for (int64_t p = begin; p < end; ++p) {
      T* row = rows + p * kFftRow<T>;
      const Lanes<T> first = Lanes<T>::load(row);
      if (chirp) {
        for (int64_t j = 0; j < R; ++j)
          Lanes<T>::load(row + j * apart).times(chirp[2 * j], chirp[2 * j + 1]).store(spare_row(j));
        std::memset(spare_row(R), 0, size_t((length - R) * kFftRow<T>) * sizeof(T));
      } else {
        for (int64_t m = 0; m < length; ++m)
          Lanes<T>::load(row + convolution.source[m] * apart).store(spare_row(m));
      }
      run_passes<T>(schedule, 0, spare, nullptr);
      for (int64_t m = 0; m < length; ++m)
        Lanes<T>::load(spare_row(schedule.order[m]))
            .times(kernel[2 * m], kernel[2 * m + 1])
            .store(product + m * kFftRow<T>);
      if (!chirp) {  // the first number stays apart: it is part of every result
        (first + Lanes<T>::load(spare_row(schedule.order[0]))).store(row);
        (first + Lanes<T>::load(product)).store(product);
      }
      run_passes<T>(schedule, 0, product, nullptr);
      for (int64_t k = chirp ? 0 : 1; k < R; ++k) {
        Lanes<T> x = Lanes<T>::load(product + convolution.result[k] * kFftRow<T>);
        if (chirp) x = x.times(chirp[2 * k], chirp[2 * k + 1]);
        if (pass.twiddles && k) {
          const T* w = pass.twiddles + 2 * (p * (R - 1) + k - 1);
          x = x.times(w[0], w[1]);
        }
        x.store(row + k * apart);
      }
    }
  }
}

template <class T, int R>
inline void pass_fixed(T* rows, int64_t blocks, const FftPass<T>& pass, int64_t begin,
                       int64_t end) {
  if (pass.twiddles) pass_of<T, R, true>(rows, blocks, pass.span, begin, end, pass.twiddles);
  else pass_of<T, R, false>(rows, blocks, pass.span, begin, end, nullptr);
}

template <class T>
void run_pass(T* rows, int64_t blocks, const FftPass<T>& pass, int64_t begin, int64_t end,
              T* spare) {
  switch (pass.radix) {
    case 2: return pass_fixed<T, 2>(rows, blocks, pass, begin, end);
    case 3: return pass_fixed<T, 3>(rows, blocks, pass, begin, end);
    case 4: return pass_fixed<T, 4>(rows, blocks, pass, begin, end);
    case 5: return pass_fixed<T, 5>(rows, blocks, pass, begin, end);
    case 7: return pass_fixed<T, 7>(rows, blocks, pass, begin, end);
    case 8: return pass_fixed<T, 8>(rows, blocks, pass, begin, end);
    default:
      return pass.convolution ? pass_convolved(rows, blocks, pass, begin, end, spare)
                              : pass_odd(rows, blocks, pass, begin, end);
  }
}

// Rows that fit the first-level cache.
template <class T>
constexpr int64_t kNearRows = 16384 / (kFftRow<T> * int64_t(sizeof(T)));

// Passes from `level` on over one block of them. As soon as it fits the first-level cache it is
// done pass by pass, before that block by block.
template <class T>
void run_passes(const FftSchedule<T>& schedule, int level, T* rows, T* spare) {
  if (level == schedule.passes) return;
  const FftPass<T>& pass = schedule.pass[level];
  if (pass.radix * pass.span > kNearRows<T> && pass.span > 1) {
    run_pass(rows, 1, pass, 0, pass.span, spare);
    for (int k = 0; k < pass.radix; ++k)
      run_passes(schedule, level + 1, rows + k * pass.span * kFftRow<T>, spare);
    return;
  }
  int64_t blocks = 1;
  for (; level < schedule.passes; ++level) {
    const FftPass<T>& next = schedule.pass[level];
    run_pass(rows, blocks, next, 0, next.span, spare);
    blocks *= next.radix;
  }
}

}  // namespace facula::FACULA_ISA

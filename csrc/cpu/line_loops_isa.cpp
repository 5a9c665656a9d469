#include "cpu/copy_dense.h"
#include "cpu/line_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/half_lanes.h"
#include "cpu/index_items.h"
#include "cpu/turn_lanes.h"

namespace facula::FACULA_ISA {
namespace {

// ---- sums of narrow elements, sums without NaN

// Float32 for small floats, int64 for integers; void for dtypes without a loop of their own here.
template <class T>
using SumType = std::conditional_t<
    std::is_integral_v<T> && (sizeof(T) < 8), int64_t,
    std::conditional_t<std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>, float, void>>;
// The type of sums that leave out NaN.
template <class T>
using NumberSum =
    std::conditional_t<std::is_floating_point_v<T>, T,
                       std::conditional_t<std::is_same_v<SumType<T>, float>, float, void>>;
template <class T, bool kNumbers>
using TotalOf = std::conditional_t<kNumbers, NumberSum<T>, SumType<T>>;
// Within a block, 8 and 16 bits add up in 32.
template <class T, bool kNumbers>
using BlockSum =
    std::conditional_t<std::is_integral_v<T> && (sizeof(T) < 4), int32_t, TotalOf<T, kNumbers>>;

template <class T, int N>
struct Few {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};

// Integers are doubled in width until they have that of Acc: compilers take longer steps apart.
template <class Acc, class T, int N>
FACULA_INLINE typename Few<Acc, N>::type widen_by_steps(typename Few<T, N>::type v) {
  using Twice = std::conditional_t<
      sizeof(T) == 1, std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>,
      std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                         int64_t>>;
  if constexpr (2 * sizeof(T) == sizeof(Acc)) {
    return __builtin_convertvector(v, typename Few<Acc, N>::type);
  } else {
    return widen_by_steps<Acc, Twice, N>(__builtin_convertvector(v, typename Few<Twice, N>::type));
  }
}

// As many elements as a wide vector of Acc holds, converted.
template <class Acc, class T>
FACULA_INLINE typename WideOf<Acc>::type widen(const T* x) {
  constexpr int L = kLanes<Acc>;
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>) {
    return read_halves(x);
  } else if constexpr (std::is_same_v<T, Acc>) {
    return wide_at(x);
  } else {
    using Item = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    typename Few<Item, L>::type few;
    __builtin_memcpy(&few, x, sizeof few);
    return widen_by_steps<Acc, Item, L>(few);
  }
}

// What is added of elements: themselves, or 0 where they are NaN.
template <bool kNumbers, class Acc, class T>
FACULA_INLINE typename WideOf<Acc>::type terms(const T* x) {
  const auto v = widen<Acc>(x);
  if constexpr (kNumbers) return v == v ? v : typename WideOf<Acc>::type{};
  else return v;
}
template <bool kNumbers, class Acc, class T>
FACULA_INLINE Acc term(T x) {
  const Acc v = Acc(x);
  return kNumbers && v != v ? Acc(0) : v;
}

template <class T, bool kNumbers>
inline TotalOf<T, kNumbers> sum_block(const T* x, int64_t n) {
  using Acc = BlockSum<T, kNumbers>;
  using V = typename WideOf<Acc>::type;
  constexpr int L = kLanes<Acc>;
  constexpr auto lanes = std::make_index_sequence<L>{};
  V a = V{}, b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    if constexpr (std::is_same_v<T, BFloat16> && !kNumbers) {
      // Pairs as words: one half is shifted up, the other stands where a float has it.
      typename WideOf<uint32_t>::type pairs, more;
      __builtin_memcpy(&pairs, x + i, sizeof pairs);
      __builtin_memcpy(&more, x + i + 2 * L, sizeof more);
      a += V(pairs << 16);
      b += V(pairs & 0xffff0000u);
      c += V(more << 16);
      d += V(more & 0xffff0000u);
    } else {
      a += terms<kNumbers, Acc>(x + i);
      b += terms<kNumbers, Acc>(x + i + L);
      c += terms<kNumbers, Acc>(x + i + 2 * L);
      d += terms<kNumbers, Acc>(x + i + 3 * L);
    }
  }
  for (; i + L <= n; i += L) a += terms<kNumbers, Acc>(x + i);
  a = (a + b) + (c + d);
  if (i < n && n >= L) {  // the last vector, without the lanes that were added already
    a += is_lane_from(i - (n - L), a, lanes) ? terms<kNumbers, Acc>(x + n - L) : V{};
    i = n;
  }
  Acc sum = fold_lanes<SumOfLanes, L / 2>(a, lanes)[0];
  for (; i < n; ++i) sum += term<kNumbers, Acc>(x[i]);
  return TotalOf<T, kNumbers>(sum);
}

template <class T, bool kNumbers>
TotalOf<T, kNumbers> sum_pairwise(const T* x, int64_t n) {
  if (n <= kReduceBlock) return sum_block<T, kNumbers>(x, n);
  int64_t half = (n / 2 + kReduceBlock - 1) / kReduceBlock * kReduceBlock;
  if (half >= n) half = kReduceBlock;
  const TotalOf<T, kNumbers> left = sum_pairwise<T, kNumbers>(x, half);
  return left + sum_pairwise<T, kNumbers>(x + half, n - half);
}

template <class T, bool kNumbers>
void sum_run(char* accumulator, const char* in, int64_t, int64_t n, bool first) {
  using Total = TotalOf<T, kNumbers>;
  Total& acc = *reinterpret_cast<Total*>(accumulator);
  const Total part = sum_pairwise<T, kNumbers>(reinterpret_cast<const T*>(in), n);
  acc = first ? part : acc + part;
}

struct ProductOfLanes {
  template <class V>
  static FACULA_INLINE V combine(V a, V b) {
    return a * b;
  }
};

// The lanes of a row's sum or product, before they are folded: the order of reduce_wide.
template <class F, class T>
FACULA_INLINE typename WideOf<T>::type row_lanes(const T* x, int64_t n) {
  using V = typename WideOf<T>::type;
  constexpr int L = kLanes<T>;
  const V none = T(std::is_same_v<F, ProductOfLanes>) - V{};
  V a = none;
  int64_t i = 0;
  if (n >= 4 * L) {
    V b = a, c = a, d = a;
    for (; i + 4 * L <= n; i += 4 * L) {
      a = F::combine(a, wide_at(x + i));
      b = F::combine(b, wide_at(x + i + L));
      c = F::combine(c, wide_at(x + i + 2 * L));
      d = F::combine(d, wide_at(x + i + 3 * L));
    }
    for (; i + L <= n; i += L) a = F::combine(a, wide_at(x + i));
    a = F::combine(F::combine(a, b), F::combine(c, d));
  }
  for (; i + L <= n; i += L) a = F::combine(a, wide_at(x + i));
  if (i < n) {
    const auto is_new = is_lane_from(i - (n - L), a, std::make_index_sequence<L>{});
    a = F::combine(a, is_new ? wide_at(x + n - L) : none);
  }
  return a;
}

// Folds the lanes of 2 D vectors, each with those D to the right of it, into D vectors: vector i
// then has lanes of the vectors i and i + D by turns. In the end there is one, and lane r is the
// result of row r.
template <class F, int D, class V, size_t... I>
FACULA_INLINE void fold_rows_of_lanes(V* v, std::index_sequence<I...> lanes) {
  constexpr int L = sizeof...(I);
  for (int i = 0; i < D; ++i)
    v[i] = F::combine(
        __builtin_shufflevector(v[i], v[i + D],
                                (int(I) / D % 2 * L + int(I) / (2 * D) * 2 * D + int(I) % D)...),
        __builtin_shufflevector(
            v[i], v[i + D], (int(I) / D % 2 * L + int(I) / (2 * D) * 2 * D + D + int(I) % D)...));
  if constexpr (D > 1) fold_rows_of_lanes<F, D / 2>(v, lanes);
}

// As many rows as a vector has lanes share the work of folding lanes; lanes_of(x) gives a row's.
template <class F, class T, class LanesOf>
FACULA_INLINE void fold_rows(char* to, const char* in, int64_t row_bytes, int64_t rows,
                             LanesOf lanes_of) {
  using V = typename WideOf<T>::type;
  constexpr int L = kLanes<T>;
  constexpr auto lanes = std::make_index_sequence<L>{};
  T* out = reinterpret_cast<T*>(to);
  auto row = [&](int64_t r) { return reinterpret_cast<const T*>(in + r * row_bytes); };
  int64_t r = 0;
  for (; r + L <= rows; r += L) {
    V v[L];
    for (int i = 0; i < L; ++i) v[i] = lanes_of(row(r + i));
    fold_rows_of_lanes<F, L / 2>(v, lanes);
    __builtin_memcpy(out + r, &v[0], sizeof v[0]);
  }
  for (; r < rows; ++r) out[r] = fold_lanes<F, L / 2>(lanes_of(row(r)), lanes)[0];
}

template <class F, class T>
bool reduce_rows(char* to, const char* in, int64_t row_bytes, int64_t rows, int64_t n) {
  fold_rows<F, T>(to, in, row_bytes, rows, [&](const T* x) { return row_lanes<F>(x, n); });
  return true;
}

// Without a look at NaN, but false when an element is not finite: then a sum of differences is not
// (which may also happen, harmlessly, when it overflows).
template <Extreme E, class T>
bool extremes_of_rows(char* to, const char* in, int64_t row_bytes, int64_t rows, int64_t n) {
  using V = typename WideOf<T>::type;
  constexpr int L = kLanes<T>;
  auto pick = [](V a, V b) { return ExtremeOfLanes<E>::combine(a, b); };
  V differences = V{};
  fold_rows<ExtremeOfLanes<E>, T>(to, in, row_bytes, rows, [&](const T* x) {
    V a = wide_at(x), b = wide_at(x + n - L);  // some elements may be read twice
    differences += a - b;
    int64_t i = L;
    for (; i + 2 * L <= n; i += 2 * L) {
      const V p = wide_at(x + i), q = wide_at(x + i + L);
      a = pick(a, p);
      b = pick(b, q);
      differences += p - q;
    }
    if (i + L <= n) {
      const V p = wide_at(x + i);
      a = pick(a, p);
      differences += p - p;
    }
    return pick(a, b);
  });
  differences -= differences;
  return fold_lanes<SumOfLanes, L / 2>(differences, std::make_index_sequence<L>{})[0] == 0;
}

template <bool kEvery>
void test_bytes(char* accumulator, const char* in, int64_t, int64_t n, bool first) {
  const uint8_t* x = reinterpret_cast<const uint8_t*>(in);
  uint8_t found = 0;  // a byte that is not 0, or one that is
  for (int64_t i = 0; i < n; ++i) found |= kEvery ? uint8_t(x[i] == 0) : x[i];
  bool& acc = *reinterpret_cast<bool*>(accumulator);
  const bool holds = (found != 0) != kEvery;
  acc = first ? holds : kEvery ? acc & holds : acc | holds;
}

// Two vectors of sums of kRows rows, four or eight. The elements of a pair are added apart and put
// beside each other at the end.
template <int kRows, size_t... I>
FACULA_INLINE void add_rows_of_pairs(float* acc, const char* x, int64_t row_bytes,
                                     std::index_sequence<I...>) {
  constexpr size_t L = sizeof...(I);
  Floats even[2], odd[2];
#pragma GCC unroll 2
  for (int four = 0; four < kRows / 4; ++four) {
    Words p[4];
    for (int r = 0; r < 4; ++r)
      __builtin_memcpy(&p[r], x + (4 * four + r) * row_bytes, sizeof p[r]);
    even[four] =
        (Floats(p[0] << 16) + Floats(p[1] << 16)) + (Floats(p[2] << 16) + Floats(p[3] << 16));
    constexpr uint32_t kUpper = 0xffff0000u;
    odd[four] = (Floats(p[0] & kUpper) + Floats(p[1] & kUpper)) +
                (Floats(p[2] & kUpper) + Floats(p[3] & kUpper));
  }
  if constexpr (kRows == 8) {
    even[0] += even[1];
    odd[0] += odd[1];
  }
  const Floats low =
      wide_at(acc) + __builtin_shufflevector(even[0], odd[0], (I / 2 + (I % 2) * L)...);
  const Floats high =
      wide_at(acc + L) + __builtin_shufflevector(even[0], odd[0], (L / 2 + I / 2 + (I % 2) * L)...);
  __builtin_memcpy(acc, &low, sizeof low);
  __builtin_memcpy(acc + L, &high, sizeof high);
}

// Adds to n sums what add(i) gives for the vector of columns at i, or one(i) for a single column.
// The last vector overlaps the one before and adds 0 to the columns that are done.
template <class Acc, class Add, class One>
FACULA_INLINE void add_columns(Acc* acc, int64_t i, int64_t n, Add add, One one) {
  constexpr int L = kLanes<Acc>;
  using V = typename WideOf<Acc>::type;
  for (; i + L <= n; i += L) {
    const V all = wide_at(acc + i) + add(i);
    __builtin_memcpy(acc + i, &all, sizeof all);
  }
  if (i < n && n >= L) {
    const int64_t last = n - L;
    const V more = add(last), was = wide_at(acc + last);
    const V all = was + (is_lane_from(i - last, more, std::make_index_sequence<L>{}) ? more : V{});
    __builtin_memcpy(acc + last, &all, sizeof all);
    return;
  }
  for (; i < n; ++i) acc[i] += one(i);
}

template <class T, bool kNumbers>
void fold_sum_run(char* const* p, const int64_t* s, int64_t n, const void* params) {
  using Acc = TotalOf<T, kNumbers>;
  Acc* acc = reinterpret_cast<Acc*>(p[0]);
  const int64_t rows = *static_cast<const int64_t*>(params);
  const char* row = p[1];
  auto at = [&](int64_t k) { return reinterpret_cast<const T*>(row + k * s[2]); };
  auto add_four = [&](int64_t i) {
    const T *x0 = at(0), *x1 = at(1), *x2 = at(2), *x3 = at(3);
    add_columns(
        acc, i, n,
        [&](int64_t k) {
          return (terms<kNumbers, Acc>(x0 + k) + terms<kNumbers, Acc>(x1 + k)) +
                 (terms<kNumbers, Acc>(x2 + k) + terms<kNumbers, Acc>(x3 + k));
        },
        [&](int64_t k) {
          return (term<kNumbers, Acc>(x0[k]) + term<kNumbers, Acc>(x1[k])) +
                 (term<kNumbers, Acc>(x2[k]) + term<kNumbers, Acc>(x3[k]));
        });
    row += 4 * s[2];
  };
  int64_t r = 0;
  // Where vectors are shorter, putting pairs in order costs more.
  if constexpr (std::is_same_v<T, BFloat16> && !kNumbers && kLaneBytes == 64) {
    constexpr int L = kLanes<float>;
    constexpr auto lanes = std::make_index_sequence<size_t(L)>{};
    const int64_t paired = n / (2 * L) * (2 * L);
    auto add_pairs = [&]<int kRows>(std::integral_constant<int, kRows>) {
      for (; r + kRows <= rows; r += kRows) {
        for (int64_t i = 0; i < paired; i += 2 * L)
          add_rows_of_pairs<kRows>(acc + i, row + i * int64_t(sizeof(T)), s[2], lanes);
        for (int four = 0; four < kRows / 4; ++four) add_four(paired);
      }
    };
    add_pairs(std::integral_constant<int, 8>{});
    add_pairs(std::integral_constant<int, 4>{});
  } else {
    for (; r + 4 <= rows; r += 4) add_four(0);
  }
  for (; r < rows; ++r, row += s[2]) {
    const T* x = at(0);
    add_columns(
        acc, 0, n, [&](int64_t k) { return terms<kNumbers, Acc>(x + k); },
        [&](int64_t k) { return term<kNumbers, Acc>(x[k]); });
  }
}

template <class T>
void add_scaled(float* sum, const char* from, int64_t n, float factor) {
  constexpr int L = kLanes<float>;
  const T* x = reinterpret_cast<const T*>(from);
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    const auto all = wide_at(sum + i) + factor * widen<float>(x + i);
    __builtin_memcpy(sum + i, &all, sizeof all);
  }
  for (; i < n; ++i) sum[i] += factor * float(x[i]);
}

// ---- columns

constexpr int64_t kColumns = LineLoops::kColumns;

// A number of columns that is known when compiling makes loops without remainders.
template <class F>
FACULA_INLINE void with_count(int64_t count, F&& f) {
  if (count == kColumns) f(std::integral_constant<int64_t, kColumns>{});
  else f(count);
}

template <class T, bool kLargest>
void extreme_rows(const char* in, int64_t row_bytes, int64_t rows, int64_t count, int64_t* where) {
  using C = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  alignas(64) C best[kColumns];
  alignas(64) int32_t at[kColumns];
  const T* first = reinterpret_cast<const T*>(in);
  for (int64_t w = 0; w < count; ++w) {
    best[w] = convert<C>(first[w]);
    at[w] = 0;
  }
  with_count(count, [&](auto known) {
    const int64_t n = known;
    for (int64_t r = 1; r < rows; ++r) {
      const T* x = reinterpret_cast<const T*>(in + r * row_bytes);
      const int32_t row = int32_t(r);
#pragma GCC ivdep
      for (int64_t w = 0; w < n; ++w) {
        const C v = convert<C>(x[w]), b = best[w];
        // Not below the best, or NaN, unless there was a NaN before.
        const bool takes = !(kLargest ? v <= b : v >= b) & (b == b);
        best[w] = takes ? v : b;
        at[w] = takes ? row : at[w];
      }
    }
  });
  for (int64_t w = 0; w < count; ++w) where[w] = at[w];
}

struct Plus {
  template <class R>
  static FACULA_INLINE R run(R a, R b) {
    if constexpr (std::is_same_v<R, bool>) return a | b;
    else return R(a + b);
  }
};
struct Times {
  template <class R>
  static FACULA_INLINE R run(R a, R b) {
    if constexpr (std::is_same_v<R, bool>) return a & b;
    else return R(a * b);
  }
};

template <class Op, class T>
void scan_columns(const char* in, char* out, int64_t in_bytes, int64_t out_bytes, int64_t n,
                  int64_t count) {
  using R = Running<T>;
  alignas(64) R so_far[kColumns];
  const T* first = reinterpret_cast<const T*>(in);
  for (int64_t w = 0; w < count; ++w) {
    so_far[w] = convert<R>(first[w]);
    reinterpret_cast<T*>(out)[w] = first[w];
  }
  with_count(count, [&](auto known) {
    const int64_t m = known;
    for (int64_t i = 1; i < n; ++i) {
      const T* x = reinterpret_cast<const T*>(in + i * in_bytes);
      T* y = reinterpret_cast<T*>(out + i * out_bytes);
#pragma GCC ivdep
      for (int64_t w = 0; w < m; ++w) {
        so_far[w] = Op::template run<R>(so_far[w], convert<R>(x[w]));
        y[w] = convert<T>(so_far[w]);
      }
    }
  });
}

// Each lane with the one D to the left of it; the first D lanes stay.
template <int D, class V, size_t... I>
FACULA_INLINE V moved_right(V v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, (int(I) < D ? int(I) : int(I) - D)...);
}

// The largest or smallest of each lane and those to the left of it; of equal ones, the rightmost.
template <bool kLargest, int D, class V, size_t... I>
FACULA_INLINE V running_lanes(V v, std::index_sequence<I...> lanes) {
  const V left = moved_right<D>(v, lanes);
  v = (kLargest ? left > v : left < v) ? left : v;
  if constexpr (2 * D < int(sizeof...(I))) return running_lanes<kLargest, 2 * D>(v, lanes);
  else return v;
}

template <class V, size_t... I>
FACULA_INLINE V lane_numbers(std::index_sequence<I...>) {
  using Lane = std::remove_cvref_t<decltype(V{}[0])>;
  return V{Lane(I)...};
}

template <class Mask>
FACULA_INLINE bool holds_everywhere(Mask mask) {
#if defined(__AVX512BW__)
  return _mm512_test_epi32_mask(__m512i(mask), __m512i(mask)) == 0xffff;
#elif defined(__AVX2__)
  return _mm256_movemask_epi8(__m256i(mask)) == -1;
#else
  uint64_t words[sizeof mask / 8], all = ~uint64_t(0);
  __builtin_memcpy(words, &mask, sizeof mask);
  for (uint64_t word : words) all &= word;
  return all == ~uint64_t(0);
#endif
}

template <class T, bool kLargest>
void running_extreme(const char* in, char* values, int64_t* where, int64_t n) {
  using V = typename WideOf<T>::type;
  constexpr int64_t L = kLanes<T>;
  const T* x = reinterpret_cast<const T*>(in);
  T* y = reinterpret_cast<T*>(values);
  T best = x[0];
  int64_t at = 0, i = 0;
  auto one_by_one = [&](int64_t end) {
    for (; i < end; ++i) {
      const T next = x[i];
      if (next != next || (best == best && (kLargest ? next >= best : next <= best))) {
        best = next;
        at = i;
      }
      y[i] = best;
      where[i] = at;
    }
  };
  while (i + L <= n) {
    const V v = wide_at(x + i), so_far = best - V{};
    if (holds_everywhere(kLargest ? v < so_far : v > so_far)) {  // nothing new, the usual case
      __builtin_memcpy(y + i, &so_far, sizeof so_far);
      for (int64_t k = 0; k < L; ++k) where[i + k] = at;
      i += L;
      continue;
    }
#if defined(__AVX512BW__)
    constexpr auto lanes = std::make_index_sequence<size_t(L)>{};
    if (holds_everywhere((v == v) & (so_far == so_far))) {
      V all = running_lanes<kLargest, 1>(v, lanes);
      all = (kLargest ? so_far > all : so_far < all) ? so_far : all;
      using Lane = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
      using Places = typename WideOf<Lane>::type;
      const Places places =
          running_lanes<true, 1>(v == all ? lane_numbers<Places>(lanes) : -1 - Places{}, lanes);
      __builtin_memcpy(y + i, &all, sizeof all);
      Lane last[L];
      __builtin_memcpy(last, &places, sizeof last);
#pragma GCC unroll 2
      for (int64_t k = 0; k < L; k += 8) {
        const auto place = widen<int64_t>(last + k);
        const auto row_place = place < 0 ? at - decltype(place){} : place + i;
        __builtin_memcpy(where + i + k, &row_place, sizeof row_place);
      }
      best = all[L - 1];
      at = places[L - 1] < 0 ? at : i + places[L - 1];
      i += L;
      continue;
    }
#endif
    one_by_one(i + L);
  }
  one_by_one(n);
}

#if defined(__AVX2__)
// Sums within a vector, by shifts of one, two and four.
template <class V>
FACULA_INLINE V running_in_lanes(V v) {
  const V zero = V{};
#if defined(__AVX512BW__)
  v += __builtin_shufflevector(zero, v, 0, 8, 9, 10, 11, 12, 13, 14);
  v += __builtin_shufflevector(zero, v, 0, 1, 8, 9, 10, 11, 12, 13);
  return v + __builtin_shufflevector(zero, v, 0, 1, 2, 3, 8, 9, 10, 11);
#else
  v += __builtin_shufflevector(zero, v, 0, 4, 5, 6);
  return v + __builtin_shufflevector(zero, v, 0, 1, 4, 5);
#endif
}
template <class V>
FACULA_INLINE V last_in_all_lanes(V v) {
#if defined(__AVX512BW__)
  return __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7);
#else
  return __builtin_shufflevector(v, v, 3, 3, 3, 3);
#endif
}
#endif

// The sums of a vector wait for the last one before it, and not for each other.
int64_t running_sum_i64(const int64_t* x, int64_t* y, int64_t n, int64_t before) {
  int64_t i = 0;
#if defined(__AVX2__)
  using V = typename WideOf<int64_t>::type;
  constexpr int L = kLanes<int64_t>;
  V carry = before - V{};
  for (; i + L <= n; i += L) {
    V v = running_in_lanes(wide_at(x + i));
    const V last = last_in_all_lanes(v);
    v += carry;
    carry += last;
    __builtin_memcpy(y + i, &v, sizeof v);
  }
  before = carry[0];
#endif
  for (; i < n; ++i) y[i] = before += x[i];
  return before;
}
double running_sum_f32(const float* x, float* y, int64_t n, double before) {
  int64_t i = 0;
#if defined(__AVX2__)
  using V = typename WideOf<double>::type;
  typedef float Singles __attribute__((vector_size(kLaneBytes / 2)));
  constexpr int L = kLanes<double>;
  V carry = before - V{};
  for (; i + L <= n; i += L) {
    Singles f;
    __builtin_memcpy(&f, x + i, sizeof f);
    const V v = running_in_lanes(__builtin_convertvector(f, V));
    f = __builtin_convertvector(v + carry, Singles);
    carry += last_in_all_lanes(v);
    __builtin_memcpy(y + i, &f, sizeof f);
  }
  before = carry[0];
#endif
  for (; i < n; ++i) y[i] = float(before += double(x[i]));
  return before;
}

// Moved as bits. Runs shorter than a vector are written as one, and the next run over its rest.
template <class Bits>
void repeat_each(char* to, const char* from, int64_t step, int64_t count, int64_t times) {
  constexpr int64_t L = 64 / int64_t(sizeof(Bits));
  for (int64_t i = 0; i < count; ++i, from += step) {
    Bits item, few[L];
    __builtin_memcpy(&item, from, sizeof item);
    for (int64_t k = 0; k < L; ++k) few[k] = item;
    int64_t done = 0;
    for (; done + L <= times; done += L)
      __builtin_memcpy(to + done * int64_t(sizeof(Bits)), few, 64);
    const int64_t room = ((count - i) * times - done) * int64_t(sizeof(Bits));
    if (done < times && room >= 64) {
      __builtin_memcpy(to + done * int64_t(sizeof(Bits)), few, 64);
    } else {
      for (; done < times; ++done)
        __builtin_memcpy(to + done * int64_t(sizeof(Bits)), &item, sizeof item);
    }
    to += times * int64_t(sizeof(Bits));
  }
}

// ---- the table

// A line that is written by one vector leaves the processor at once; several vectors are gathered
// in one of its few buffers first.
void stream_lines(char* to, const char* from, int64_t count) {
  for (const char* end = from + 64 * count; from != end; from += 64, to += 64) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
    const __m256i* in = reinterpret_cast<const __m256i*>(from);
    const __m256i a = _mm256_loadu_si256(in), b = _mm256_loadu_si256(in + 1);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + 1, b);
#elif defined(__x86_64__)
    for (int64_t i = 0; i < 4; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i,
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i));
#else
    __builtin_memcpy(to, from, 64);
#endif
  }
}

template <class T, bool kNumbers>
constexpr ReduceLoop sum_of() {
  if constexpr (std::is_void_v<TotalOf<T, kNumbers>>) return nullptr;
  else return sum_run<T, kNumbers>;
}
template <class T, bool kNumbers>
constexpr Loop fold_of() {
  if constexpr (std::is_void_v<TotalOf<T, kNumbers>>) return nullptr;
  else return fold_sum_run<T, kNumbers>;
}
template <class F, class T>
constexpr LineLoops::FoldRows rows_of() {
  if constexpr (std::is_floating_point_v<T>) return reduce_rows<F, T>;
  else return nullptr;
}
template <Extreme E, class T>
constexpr LineLoops::FoldRows extreme_of_rows() {
  if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, int32_t> ||
                std::is_same_v<T, int64_t>)
    return extremes_of_rows<E, T>;
  else return nullptr;
}
template <class T, bool kLargest>
constexpr LineLoops::RunningExtreme running_of() {
  if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) return running_extreme<T, kLargest>;
  else return nullptr;
}
template <class T>
constexpr LineLoops::AddScaled add_scaled_of() {
  if constexpr (std::is_same_v<SumType<T>, float>) return add_scaled<T>;
  else return nullptr;
}
template <class T, bool kLargest>
constexpr LineLoops::ExtremeRows extreme_of() {
  if constexpr (std::is_same_v<T, Complex<float>> || std::is_same_v<T, Complex<double>>)
    return nullptr;
  else return extreme_rows<T, kLargest>;
}

}  // namespace

extern const LineLoops line_loops;
#define X_SUM(e, t, n, c) sum_of<t, false>(),
#define X_FOLD(e, t, n, c) fold_of<t, false>(),
#define X_SUM_NUMBERS(e, t, n, c) sum_of<t, true>(),
#define X_FOLD_NUMBERS(e, t, n, c) fold_of<t, true>(),
#define X_SUM_ROWS(e, t, n, c) rows_of<SumOfLanes, t>(),
#define X_PRODUCT_ROWS(e, t, n, c) rows_of<ProductOfLanes, t>(),
#define X_LARGEST_ROWS(e, t, n, c) extreme_of_rows<Extreme::Largest, t>(),
#define X_SMALLEST_ROWS(e, t, n, c) extreme_of_rows<Extreme::Smallest, t>(),
#define X_MAXIMUM(e, t, n, c) running_of<t, true>(),
#define X_MINIMUM(e, t, n, c) running_of<t, false>(),
#define X_SCALED(e, t, n, c) add_scaled_of<t>(),
#define X_LARGEST(e, t, n, c) extreme_of<t, true>(),
#define X_SMALLEST(e, t, n, c) extreme_of<t, false>(),
#define X_PLUS(e, t, n, c) scan_columns<Plus, t>,
#define X_TIMES(e, t, n, c) scan_columns<Times, t>,
const LineLoops line_loops = {
    {FACULA_DTYPES(X_SUM)},
    {FACULA_DTYPES(X_FOLD)},
    {FACULA_DTYPES(X_SUM_NUMBERS)},
    {FACULA_DTYPES(X_FOLD_NUMBERS)},
    {FACULA_DTYPES(X_SUM_ROWS)},
    {FACULA_DTYPES(X_PRODUCT_ROWS)},
    {FACULA_DTYPES(X_LARGEST_ROWS)},
    {FACULA_DTYPES(X_SMALLEST_ROWS)},
    test_bytes<false>,
    test_bytes<true>,
    {FACULA_DTYPES(X_SCALED)},
    {FACULA_DTYPES(X_LARGEST)},
    {FACULA_DTYPES(X_SMALLEST)},
    {FACULA_DTYPES(X_PLUS)},
    {FACULA_DTYPES(X_TIMES)},
    {FACULA_DTYPES(X_MAXIMUM)},
    {FACULA_DTYPES(X_MINIMUM)},
    running_sum_i64,
    running_sum_f32,
    {repeat_each<uint8_t>, repeat_each<uint16_t>, repeat_each<uint32_t>, repeat_each<uint64_t>,
     repeat_each<Item16>},
    stream_lines,
    copy_dense,
    {turn_items<Item1>, turn_items<Item2>, turn_items<Item4>, turn_items<Item8>,
     turn_items<Item16>},
};

}  // namespace facula::FACULA_ISA

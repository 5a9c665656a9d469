// The loops of fft_loops.h for one element type: rows of lanes in and out, real numbers from and to
// complex ones, long transforms in two steps.
#pragma once
#include "cpu/fft_butterflies.h"

namespace facula::FACULA_ISA {

// How the numbers of a block lie in memory.
enum class Layout {
  Lines,           // the numbers of each transform side by side
  RealLines,       // the same for real numbers that have no imaginary part
  Columns,         // complex numbers of neighbouring transforms side by side
  ColumnsOfParts,  // the same for real numbers that are one part of a complex one
  Scattered,
};

template <class T, class P>
Layout layout_of(P const* lanes, int count, int64_t step, int64_t imag) {
  constexpr int V = kLanes<T>;
  if (step == 2 && imag == 1) return Layout::Lines;
  if (step == 1 && imag == kLoneReal) return Layout::RealLines;
  if (count < V) return Layout::Scattered;
  const int64_t apart = imag == 1 ? 2 : 1;
  for (int l = 1; l < V; ++l)
    if (lanes[l] != lanes[0] + l * apart) return Layout::Scattered;
  return imag == 1 ? Layout::Columns : Layout::ColumnsOfParts;
}

// Lines are turned some places at a time, as many as a vector has lanes: calls whole(place). For
// the last ones, calls some(K, place) with K as a constant, half or a quarter of that.
template <class T, class W, class S>
inline void for_places(int64_t begin, int64_t end, const W& whole, const S& some) {
  constexpr int V = kLanes<T>, kHalf = V >= 4 ? V / 2 : V, kQuarter = V >= 8 ? V / 4 : kHalf;
  int64_t at = begin;
  for (; at + V <= end; at += V) whole(at);
  for (; end - at > kQuarter; at += kHalf) some(std::integral_constant<int, kHalf>{}, at);
  if (end > at) some(std::integral_constant<int, kQuarter>{}, at);
}

// Brings numbers [begin, end) of a block's `total` into the rows of the same index.
template <class T>
class RowReader {
 public:
  RowReader(const FftBlock<T>& block, int64_t total, bool swap)
      : block_(block),
        layout_(layout_of<T>(block.in, block.count, block.in_step, block.in_imag)),
        total_(total),
        swap_(swap) {}

  void read(int64_t begin, int64_t end) const {
    constexpr int V = kLanes<T>;
    const bool lone = block_.in_imag == kLoneReal;
    switch (layout_) {
      case Layout::Lines: return turn_in<false>(2 * begin, 2 * end);
      case Layout::RealLines: return turn_in<true>(begin, end);
      case Layout::Columns:
        for (int64_t j = begin; j < end; ++j)
          load_numbers(block_.in[0] + j * block_.in_step)
              .swapped(swap_)
              .store(block_.rows + j * kFftRow<T>);
        return;
      case Layout::ColumnsOfParts:
        for (int64_t j = begin; j < end; ++j) {
          const T* from = block_.in[0] + j * block_.in_step;
          const FftVector<T> re = load_vector(from);
          Lanes<T>{re, lone ? FftVector<T>{} : load_vector(from + block_.in_imag)}
              .swapped(swap_)
              .store(block_.rows + j * kFftRow<T>);
        }
        return;
      case Layout::Scattered: break;
    }
    const int re = swap_ ? V : 0, im = swap_ ? 0 : V;
    for (int64_t j = begin; j < end; ++j) {
      T* row = block_.rows + j * kFftRow<T>;
      for (int l = 0; l < V; ++l) {
        const T* from = block_.in[l] + j * block_.in_step;
        row[re + l] = *from;
        row[im + l] = lone ? T(0) : from[block_.in_imag];
      }
    }
  }

 private:
  template <bool kLone>
  void turn_in(int64_t begin, int64_t end) const {
    constexpr int V = kLanes<T>, kParts = kLone ? 1 : 2;
    for_places<T>(
        begin, end,
        [&](int64_t at) {
          FftVector<T> v[V];
#pragma GCC unroll 16
          for (int i = 0; i < V; ++i) v[i] = load_vector(block_.in[i] + at);
          transpose<T>(v);
          T* row = block_.rows + at / kParts * kFftRow<T>;
#pragma GCC unroll 16
          for (int i = 0; i < V; i += kParts, row += kFftRow<T>)
            Lanes<T>{v[i], kLone ? FftVector<T>{} : v[i + kParts - 1]}.swapped(swap_).store(row);
        },
        // A copy is asked, since an object whose address is known elsewhere is not kept in
        // registers.
        [&](auto count, int64_t at) {
          RowReader(*this).template turn_in_some<count(), kLone>(at, end);
        });
  }
  // Places [at, end) of all lines, K of them at most, to the rows that they belong to. The places
  // read end with the line where that is long enough, and reach into what follows otherwise.
  template <int K, bool kLone>
  [[gnu::noinline]] void turn_in_some(int64_t at, int64_t end) const {
    constexpr int V = kLanes<T>, kParts = kLone ? 1 : 2;
    const int64_t width = total_ * kParts;
    const int64_t from = at + K <= width || width < K ? at : width - K;
    FftVector<T> v[K];
    if (width >= K || is_readable(K)) {
#pragma GCC unroll 16
      for (int i = 0; i < K; ++i) v[i] = load_parts<T, K>(block_.in + i, from);
    } else {
      T parts[V][K] = {};
      const T* lines[V];
      for (int l = 0; l < V; ++l) {
        std::memcpy(parts[l], block_.in[l], size_t(width) * sizeof(T));
        lines[l] = parts[l];
      }
      for (int i = 0; i < K; ++i) v[i] = load_parts<T, K>(lines + i, 0);
    }
    transpose<T, K>(v);
    const int64_t first = at - from, last = end - from;
    T* row = block_.rows + from / kParts * kFftRow<T>;
#pragma GCC unroll 16
    for (int i = 0; i < K; i += kParts, row += kFftRow<T>)
      if (i >= first && i < last)
        Lanes<T>{v[i], kLone ? FftVector<T>{} : v[i + kParts - 1]}.swapped(swap_).store(row);
  }

  // Whether `count` places may be read from the beginning of every line on.
  bool is_readable(int64_t count) const {
    bool readable = true;
    for (int l = 0; l < kLanes<T>; ++l) readable &= block_.in_end - block_.in[l] >= count;
    return readable;
  }

  const FftBlock<T>& block_;
  Layout layout_;
  int64_t total_;
  bool swap_;
};

// Writes `total` numbers, number k from the row order[k].
template <class T>
class RowWriter {
 public:
  RowWriter(const FftBlock<T>& block, int64_t total, const int32_t* order, bool swap)
      : block_(block), total_(total), order_(order), swap_(swap) {}

  void write() const {
    constexpr int V = kLanes<T>;
    const bool lone = block_.out_imag == kLoneReal;
    switch (layout_of<T>(block_.out, block_.count, block_.out_step, block_.out_imag)) {
      case Layout::Lines: return turn_out<false>();
      case Layout::RealLines: return turn_out<true>();
      case Layout::Columns:
        for (int64_t k = 0; k < total_; ++k)
          store_numbers(block_.out[0] + k * block_.out_step, row(k));
        return;
      case Layout::ColumnsOfParts:
        for (int64_t k = 0; k < total_; ++k) {
          T* to = block_.out[0] + k * block_.out_step;
          const Lanes<T> x = row(k);
          store_vector(to, x.re);
          if (!lone) store_vector(to + block_.out_imag, x.im);
        }
        return;
      case Layout::Scattered: break;
    }
    for (int64_t k = 0; k < total_; ++k) {
      T parts[kFftRow<T>];
      row(k).store(parts);
      for (int l = 0; l < block_.count; ++l) {
        T* to = block_.out[l] + k * block_.out_step;
        *to = parts[l];
        if (!lone) to[block_.out_imag] = parts[V + l];
      }
    }
  }

 private:
  Lanes<T> row(int64_t k) const {
    return Lanes<T>::load(block_.rows + order_[k] * kFftRow<T>).swapped(swap_) * block_.scale;
  }

  template <bool kLone>
  void turn_out() const {
    constexpr int V = kLanes<T>, kParts = kLone ? 1 : 2;
    const auto some = [&](auto count, int64_t at) {  // as RowReader does it
      RowWriter(*this).template turn_out_some<count(), kLone>(at);
    };
    for_places<T>(
        0, total_ * kParts,
        [&](int64_t at) {
          if (block_.count < V) return some(std::integral_constant<int, V>{}, at);
          FftVector<T> v[V];
#pragma GCC unroll 16
          for (int i = 0; i < V; i += kParts) {
            const Lanes<T> x = row(at / kParts + i / kParts);
            v[i] = x.re;
            if (!kLone) v[i + kParts - 1] = x.im;
          }
          transpose<T>(v);
#pragma GCC unroll 16
          for (int i = 0; i < V; ++i) store_vector(block_.out[i] + at, v[i]);
        },
        some);
  }
  // K places of all lines; the last ones once more where less than that are left.
  template <int K, bool kLone>
  [[gnu::noinline]] void turn_out_some(int64_t at) const {
    const int64_t width = total_ * (kLone ? 1 : 2);
    if (width < K) return RowWriter(*this).template turn_out_short<K, kLone>(width);
    if (at + K > width) at = width - K;
    FftVector<T> v[K];
    turn_rows<K, kLone>(at, v);
    T* const* const out = block_.out;
    const int count = block_.count;
    store_lines<K, 0>(v, [=](int l, auto put) {
      if (l < count) put(out[l] + at);
    });
  }
  // Lines of less than K places. A whole part reaches into the lines behind, which are written
  // next.
  template <int K, bool kLone>
  [[gnu::noinline]] void turn_out_short(int64_t width) const {
    FftVector<T> v[K];
    turn_rows<K, kLone>(0, v);
    T* const* const out = block_.out;
    const int count = block_.count;
    const bool dense = out[count - 1] - out[0] == (count - 1) * width;
    store_lines<K, 0>(v, [=](int l, auto put) {
      if (dense && (count - l) * width >= K) {
        put(out[l]);
      } else if (l < count) {
        T rest[K];
        put(rest);
        std::memcpy(out[l], rest, size_t(width) * sizeof(T));
      }
    });
  }
  template <int K, bool kLone>
  void turn_rows(int64_t at, FftVector<T>* v) const {
    constexpr int kParts = kLone ? 1 : 2;
#pragma GCC unroll 16
    for (int i = 0; i < K; i += kParts) {
      const int64_t k = at / kParts + i / kParts;
      const Lanes<T> x = row(k < total_ ? k : 0);
      v[i] = x.re;
      if (!kLone) v[i + kParts - 1] = x.im;
    }
    transpose<T, K>(v);
  }

  // Calls f(l, put) for all lines in their order; put(to) stores the line's K places.
  template <int K, int First, class F>
  static void store_lines(const FftVector<T>* v, const F& f) {
    if constexpr (First < kLanes<T>) {
#pragma GCC unroll 16
      for (int i = 0; i < K; ++i) f(First + i, [&](T* to) { store_part<T, K, First>(to, v[i]); });
      store_lines<K, First + K>(v, f);
    }
  }

  const FftBlock<T>& block_;
  int64_t total_;
  const int32_t* order_;
  bool swap_;
};

template <class T>
void write_rows(const FftBlock<T>& block, int64_t total, const int32_t* order, bool swap) {
  RowWriter<T>(block, total, order, swap).write();
}

template <class T>
T* spare_rows(const FftBlock<T>& block) {
  return block.rows + (block.schedule->length + 1) * kFftRow<T>;
}

// Reads the block and runs its passes; the first one of many rows works on what has just been read.
template <class T>
void read_and_transform(const FftBlock<T>& block, bool swap) {
  const FftSchedule<T>& schedule = *block.schedule;
  const RowReader<T> reader(block, schedule.length, swap);
  if (schedule.passes < 2 || schedule.length <= kNearRows<T>) {
    reader.read(0, schedule.length);
    return run_passes(schedule, 0, block.rows, spare_rows(block));
  }
  const FftPass<T>& first = schedule.pass[0];
  constexpr int64_t kStep = kLanes<T> / 2;
  for (int64_t p = 0; p < first.span; p += kStep) {
    const int64_t end = p + kStep < first.span ? p + kStep : first.span;
    for (int k = 0; k < first.radix; ++k) reader.read(p + k * first.span, end + k * first.span);
    run_pass(block.rows, 1, first, p, end, spare_rows(block));
  }
  for (int k = 0; k < first.radix; ++k)
    run_passes(schedule, 1, block.rows + k * first.span * kFftRow<T>, spare_rows(block));
}

template <class T>
void complex_block(const FftBlock<T>& block) {
  read_and_transform(block, block.inverse);
  write_rows(block, block.schedule->length, block.schedule->order, block.inverse);
}

// With z = x[0::2] + i x[1::2], E = (Z[k] + conj Z[h - k]) / 2 and O = (Z[k] - conj Z[h - k]) / 2i
// are the transforms of the even and the odd numbers: X[k] = E + w^k O, X[h - k] = conj(E - w^k O).
template <class T, class X, class R>
inline void separate_pair(X& low, X& high, const R& multiply_by_root) {
  const X mirrored = high.conjugate(), even = (low + mirrored) * T(0.5),
          odd = multiply_by_root((low - mirrored).times_minus_i() * T(0.5));
  low = even + odd;
  high = (even - odd).conjugate();
}
// The way back, times 2: z's frequencies are A + iU and conj(A - iU) with A = X[k] + conj X[h - k],
// U = conj(w^k) (X[k] - conj X[h - k]).
template <class T, class X, class R>
inline void combine_pair(X& low, X& high, const R& multiply_by_root_conjugate) {
  const X mirrored = high.conjugate(), sum = low + mirrored,
          turned = multiply_by_root_conjugate(low - mirrored).times_minus_i();
  low = sum - turned;
  high = (sum + turned).conjugate();
}

template <class T>
void real_block_even(const FftBlock<T>& block) {
  const int64_t half = block.schedule->length;
  const int32_t* order = block.schedule->order;
  read_and_transform(block, false);
  const auto at = [&](int64_t k) { return block.rows + order[k] * kFftRow<T>; };
  for (int64_t k = 1; 2 * k <= half; ++k) {
    Lanes<T> low = Lanes<T>::load(at(k)), high = Lanes<T>::load(at(half - k));
    const T c = block.roots[2 * k], s = block.roots[2 * k + 1];
    separate_pair<T>(low, high, [&](const Lanes<T>& x) { return x.times(c, s); });
    low.store(at(k));
    high.store(at(half - k));
  }
  const Lanes<T> z = Lanes<T>::load(at(0));
  Lanes<T>{z.re + z.im, FftVector<T>{}}.store(at(0));
  Lanes<T>{z.re - z.im, FftVector<T>{}}.store(at(half));
  write_rows(block, half + 1, order, false);
}

template <class T>
void real_block_odd(const FftBlock<T>& block) {
  read_and_transform(block, false);
  write_rows(block, block.schedule->length / 2 + 1, block.schedule->order, false);
}

template <class T>
void hermitian_block_even(const FftBlock<T>& block) {
  const int64_t half = block.schedule->length;
  RowReader<T>(block, half + 1, false).read(0, half + 1);
  const auto at = [&](int64_t k) { return block.rows + k * kFftRow<T>; };
  const FftVector<T> first = load_vector(at(0)), last = load_vector(at(half));
  Lanes<T>{first - last, first + last}.store(at(0));
  for (int64_t k = 1; 2 * k <= half; ++k) {
    Lanes<T> low = Lanes<T>::load(at(k)), high = Lanes<T>::load(at(half - k));
    const T c = block.roots[2 * k], s = -block.roots[2 * k + 1];
    combine_pair<T>(low, high, [&](const Lanes<T>& x) { return x.times(c, s); });
    low.swapped(true).store(at(k));
    high.swapped(true).store(at(half - k));
  }
  run_passes(*block.schedule, 0, block.rows, spare_rows(block));
  write_rows(block, half, block.schedule->order, true);
}

template <class T>
void hermitian_block_odd(const FftBlock<T>& block) {
  const int64_t n = block.schedule->length;
  RowReader<T>(block, n / 2 + 1, true).read(0, n / 2 + 1);
  const FftVector<T> zero = {};
  store_vector(block.rows, zero);
  for (int64_t k = 1; k <= n / 2; ++k) {
    const Lanes<T> x = Lanes<T>::load(block.rows + k * kFftRow<T>);
    Lanes<T>{-x.re, x.im}.store(block.rows + (n - k) * kFftRow<T>);
  }
  run_passes(*block.schedule, 0, block.rows, spare_rows(block));
  write_rows(block, n, block.schedule->order, true);
}

// ---- long transforms

template <class T>
void long_columns(const FftLong<T>& plan, const T* in, T* between, T* rows, int64_t block,
                  int64_t block_end, bool inverse) {
  constexpr int V = kLanes<T>;
  const int64_t n1 = plan.first.length, n2 = plan.second.length;
  for (; block < block_end; ++block) {
    const int64_t column = block * V;
    const int count = n2 - column < V ? int(n2 - column) : V;
    const T* from[V];
    for (int l = 0; l < V; ++l) from[l] = in + 2 * (column + (l < count ? l : 0));
    FftBlock<T> job{};
    job.schedule = &plan.first;
    job.rows = rows;
    job.in = from;
    job.count = count;
    job.in_step = 2 * n2;
    job.in_imag = 1;
    read_and_transform(job, inverse);
    const T* block_roots = plan.block_roots + block * n1 * 2;
    for (int64_t k0 = 0; k0 < n1; k0 += V) {
      FftVector<T> re[V], im[V];
#pragma GCC unroll 16
      for (int i = 0; i < V; ++i) {
        const int64_t k = k0 + i < n1 ? k0 + i : n1 - 1;
        const Lanes<T> root = Lanes<T>::load(plan.lane_roots + k * kFftRow<T>)
                                  .times(block_roots[2 * k], block_roots[2 * k + 1]);
        const Lanes<T> x = Lanes<T>::load(rows + plan.first.order[k] * kFftRow<T>) * root;
        re[i] = x.re;
        im[i] = x.im;
      }
      transpose<T>(re);
      transpose<T>(im);
      T* to = between + (k0 * n2 + column * V) * 2;
      for (int i = 0; i < count; ++i) Lanes<T>{re[i], im[i]}.store(to + i * kFftRow<T>);
    }
  }
}

template <class T>
void long_rows(const FftLong<T>& plan, T* between, T* out, int64_t block, int64_t block_end,
               bool inverse, T scale) {
  constexpr int V = kLanes<T>;
  const int64_t n1 = plan.first.length, n2 = plan.second.length;
  for (; block < block_end; ++block) {
    T* to[V];
    for (int l = 0; l < V; ++l) to[l] = out + 2 * (block * V + l);
    FftBlock<T> job{};
    job.schedule = &plan.second;
    job.rows = between + block * V * n2 * 2;
    job.out = to;
    job.count = n1 - block * V < V ? int(n1 - block * V) : V;
    job.out_step = 2 * n1;
    job.out_imag = 1;
    job.scale = scale;
    run_passes<T>(plan.second, 0, job.rows, nullptr);
    write_rows(job, n2, plan.second.order, inverse);
  }
}

// ---- numbers side by side

template <class T>
struct Number {
  T re, im;
  static Number load(const T* p) { return {p[0], p[1]}; }
  void store(T* p) const {
    p[0] = re;
    p[1] = im;
  }
  Number operator+(const Number& o) const { return {re + o.re, im + o.im}; }
  Number operator-(const Number& o) const { return {re - o.re, im - o.im}; }
  Number operator*(T s) const { return {re * s, im * s}; }
  Number times(T c, T s) const { return {re * c - im * s, re * s + im * c}; }
  Number times_minus_i() const { return {im, -re}; }
  Number conjugate() const { return {re, -im}; }
};

// Calls f(low, high, root) for the pairs k, half - k of blocks [begin, end) of V: on vectors where
// the two sides are apart, number by number in the middle and around k = 0, which is left out.
template <class T, class F, class G>
inline void for_pairs(int64_t half, const T* lane_roots, const T* block_roots, int64_t begin,
                      int64_t end, const F& vectors, const G& numbers) {
  constexpr int V = kLanes<T>;
  const Lanes<T> lane_root = Lanes<T>::load(lane_roots);
  for (int64_t b = begin; b < end; ++b) {
    const int64_t k0 = b * V;
    const Lanes<T> root = lane_root.times(block_roots[2 * b], block_roots[2 * b + 1]);
    if (k0 > 0 && k0 + V - 1 < half - k0 - V + 1) {
      vectors(k0, half - k0 - V + 1, root);
      continue;
    }
    T parts[kFftRow<T>];
    root.store(parts);
    for (int64_t k = k0 ? k0 : 1; k < k0 + V && 2 * k <= half; ++k)
      numbers(k, half - k, parts[k - k0], parts[V + k - k0]);
  }
}

template <class T>
void separate(T* line, int64_t half, const T* lane_roots, const T* block_roots, int64_t begin,
              int64_t end) {
  if (begin == 0) {
    const T re = line[0], im = line[1];
    Number<T>{re + im, 0}.store(line);
    Number<T>{re - im, 0}.store(line + 2 * half);
  }
  for_pairs<T>(
      half, lane_roots, block_roots, begin, end,
      [&](int64_t k, int64_t mirror, const Lanes<T>& root) {
        Lanes<T> low = load_numbers(line + 2 * k), high = reversed(load_numbers(line + 2 * mirror));
        separate_pair<T>(low, high, [&](const Lanes<T>& x) { return x * root; });
        store_numbers(line + 2 * k, low);
        store_numbers(line + 2 * mirror, reversed(high));
      },
      [&](int64_t k, int64_t mirror, T c, T s) {
        Number<T> low = Number<T>::load(line + 2 * k), high = Number<T>::load(line + 2 * mirror);
        separate_pair<T>(low, high, [&](const Number<T>& x) { return x.times(c, s); });
        low.store(line + 2 * k);
        high.store(line + 2 * mirror);
      });
}

template <class T>
void combine(T* z, const T* line, int64_t half, const T* lane_roots, const T* block_roots,
             int64_t begin, int64_t end) {
  if (begin == 0) {
    const T first = line[0], last = line[2 * half];
    Number<T>{first + last, first - last}.store(z);
  }
  for_pairs<T>(
      half, lane_roots, block_roots, begin, end,
      [&](int64_t k, int64_t mirror, const Lanes<T>& root) {
        Lanes<T> low = load_numbers(line + 2 * k), high = reversed(load_numbers(line + 2 * mirror));
        combine_pair<T>(low, high, [&](const Lanes<T>& x) { return x * root.conjugate(); });
        store_numbers(z + 2 * k, low);
        store_numbers(z + 2 * mirror, reversed(high));
      },
      [&](int64_t k, int64_t mirror, T c, T s) {
        Number<T> low = Number<T>::load(line + 2 * k), high = Number<T>::load(line + 2 * mirror);
        combine_pair<T>(low, high, [&](const Number<T>& x) { return x.times(c, -s); });
        low.store(z + 2 * k);
        high.store(z + 2 * mirror);
      });
}

template <class T>
void multiply(T* out, const T* a, const T* b, int64_t n, bool swap_in, bool swap_out, T scale) {
  constexpr int V = kLanes<T>;
  int64_t j = 0;
  for (; j + V <= n; j += V) {
    const Lanes<T> product =
        load_numbers(a + 2 * j).swapped(swap_in) * load_numbers(b + 2 * j) * scale;
    store_numbers(out + 2 * j, product.swapped(swap_out));
  }
  for (; j < n; ++j) {
    const Number<T> x{a[2 * j + swap_in], a[2 * j + !swap_in]},
        y = x.times(b[2 * j], b[2 * j + 1]) * scale;
    out[2 * j + swap_out] = y.re;
    out[2 * j + !swap_out] = y.im;
  }
}

template <class T>
constexpr FftLoops<T> kFftLoops = {
    kLanes<T>,
    complex_block<T>,
    real_block_even<T>,
    real_block_odd<T>,
    hermitian_block_even<T>,
    hermitian_block_odd<T>,
    long_columns<T>,
    long_rows<T>,
    separate<T>,
    combine<T>,
    multiply<T>,
};

}  // namespace facula::FACULA_ISA

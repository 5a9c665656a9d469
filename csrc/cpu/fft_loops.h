// What fft_lanes.h offers to the code around it, and the tables it reads. Built once per ISA, for
// float and double.
//
// Everything rests on one kernel: V transforms side by side, one in each lane of the vectors. Their
// numbers lie in rows: row j holds the real parts of all V numbers j, then the imaginary parts, so
// that a butterfly is arithmetic on whole vectors and a twiddle factor one number for all lanes.
// Real and imaginary parts swap places on the way in and out of an inverse transform.
#pragma once
#include <cstdint>

namespace facula {

constexpr int kMaxFftLanes = 16;
constexpr int kMaxFftPasses = 40;
constexpr int64_t kLoneReal = -1;
constexpr int kLargestFftRadix = 31;  // larger prime factors are convolutions

template <class T>
struct FftSchedule;

// A prime number of points as a cyclic convolution: Rader's, with the numbers in the order of the
// powers of a generator, or Bluestein's, with a chirp.
template <class T>
struct FftConvolution {
  const FftSchedule<T>* schedule;  // of the convolution's length, without convolutions in it
  const int32_t* source;           // Rader: which number is m-th; null for Bluestein
  const T* chirp;                  // Bluestein: exp(-pi i j**2 / radix), (re, im); null for Rader
  const T* kernel;                 // the transform of what the numbers are convolved with, over its
                                   // length, (re, im) for each frequency
  const int32_t* result;           // the row of frequency k after the second transform
};

// One step of decimation in frequency: blocks of radix * span rows. Butterfly p of a block takes
// the rows p + k * span and multiplies result k by exp(-2 pi i p k / (radix * span)).
template <class T>
struct FftPass {
  int radix;
  int64_t span;
  const T* twiddles;  // (re, im) for k = 1 .. radix - 1, for each p; null when span is 1
  const T* roots;     // (cos, -sin)(2 pi j / radix) for radices without code of their own
  const FftConvolution<T>* convolution;  // for radices above kLargestFftRadix
};

template <class T>
struct FftSchedule {
  int64_t length;
  int passes;
  FftPass<T> pass[kMaxFftPasses];
  const int32_t* order;  // the row of frequency k after the passes; order[length] == length
  int64_t spare;         // rows that convolutions need besides
};

// Up to V transforms, wherever they lie. Distances are in units of T.
template <class T>
struct FftBlock {
  const FftSchedule<T>* schedule;
  const T* roots;      // real transforms of even length n: exp(-2 pi i k / n), k = 0 .. n / 4
  T* rows;             // room for length + 1 rows and the schedule's spare ones behind them
  const T* const* in;  // V pointers, all of them readable
  const T* in_end;     // memory between them and here is readable, too
  T* const* out;       // the first `count` are written
  int count;
  int64_t in_step, in_imag;    // from one number to the next, and from its real to its imaginary
  int64_t out_step, out_imag;  // part; kLoneReal where there is none
  bool inverse;
  T scale;
};

// A long transform of first.length * second.length numbers that lie side by side, by columns and
// then by rows (the four-step method). Between the steps the numbers are in `between`: a block of
// second.length rows for every V frequencies of the first step.
template <class T>
struct FftLong {
  FftSchedule<T> first, second;
  const T* lane_roots;   // [k][re, im][V]: exp(-2 pi i k l / n)
  const T* block_roots;  // [column block b][k][re, im]: exp(-2 pi i k b V / n)
};

template <class T>
struct FftLoops {
  int lanes;  // V
  // Complex to complex; one row in `rows` for each number.
  void (*complex_block)(const FftBlock<T>&);
  // Real numbers in, frequencies 0 .. n / 2 out. Even n: in pairs, as n / 2 complex numbers.
  void (*real_block_even)(const FftBlock<T>&);
  void (*real_block_odd)(const FftBlock<T>&);
  // The way back. Imaginary parts that cannot be, of frequencies 0 and n / 2, are not read.
  void (*hermitian_block_even)(const FftBlock<T>&);
  void (*hermitian_block_odd)(const FftBlock<T>&);

  void (*long_columns)(const FftLong<T>&, const T* in, T* between, T* rows, int64_t block,
                       int64_t block_end, bool inverse);
  void (*long_rows)(const FftLong<T>&, T* between, T* out, int64_t block, int64_t block_end,
                    bool inverse, T scale);

  // Between half as many complex numbers z and the frequencies 0 .. half of real numbers, both side
  // by side in memory; pairs k, half - k for k in [begin, end), end <= half / 2 + 1. In place for
  // `separate`. The roots are exp(-2 pi i k / n) of blocks: [k / V][re, im], and [re, im][V].
  void (*separate)(T* line, int64_t half, const T* lane_roots, const T* block_roots, int64_t begin,
                   int64_t end);
  void (*combine)(T* z, const T* line, int64_t half, const T* lane_roots, const T* block_roots,
                  int64_t begin, int64_t end);

  // Products of complex numbers side by side: out = scale * a * b, with the parts of a (or of out)
  // swapped.
  void (*multiply)(T* out, const T* a, const T* b, int64_t n, bool swap_in, bool swap_out, T scale);
};

const FftLoops<float>& fft_loops(float);
const FftLoops<double>& fft_loops(double);

}  // namespace facula

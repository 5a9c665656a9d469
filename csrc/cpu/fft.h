// Discrete Fourier transforms along one dimension of a tensor in host memory.
#pragma once
#include "core/tensor.h"

namespace facula {

// Inputs and results have float32/complex64 or float64/complex128 parts throughout; sizes agree in
// all other dimensions. Every frequency is multiplied by `scale`.

// Complex numbers of one shape; `out` may be `in`.
void cpu_fft_complex(const Tensor& in, const Tensor& out, int64_t dim, bool inverse, double scale);
// Real numbers, n of them along `dim`, to their frequencies 0 .. n / 2. They are multiplied by the
// n numbers of `window` first, which are contiguous, where it is given.
void cpu_fft_real(const Tensor& in, const Tensor& out, int64_t dim, double scale,
                  const Tensor& window = Tensor());
// Frequencies 0 .. n / 2 to n real numbers (an inverse transform).
void cpu_fft_hermitian(const Tensor& in, const Tensor& out, int64_t dim, double scale);

// Completes the spectrum of real numbers, of which the frequencies 0 .. n / 2 of the last of `dims`
// are there: the rest is the conjugate of the opposite frequencies.
void cpu_fft_mirror(const Tensor& out, IntSpan dims);

// n complex numbers (re, im) side by side; `out` may be `in`.
template <class T>
void fft_line(const T* in, T* out, int64_t n, bool inverse, T scale);

}  // namespace facula

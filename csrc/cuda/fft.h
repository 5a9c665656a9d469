// Fourier transforms by cuFFT.
#pragma once

namespace facula::cuda {

void register_fft();

}  // namespace facula::cuda

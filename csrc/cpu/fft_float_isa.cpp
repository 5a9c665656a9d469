// Transforms of float32 numbers; built once per ISA.
#include "cpu/fft_lanes.h"

namespace facula::FACULA_ISA {

extern const FftLoops<float> fft_loops_float;
const FftLoops<float> fft_loops_float = kFftLoops<float>;

}  // namespace facula::FACULA_ISA

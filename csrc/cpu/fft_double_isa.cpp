// Transforms of float64 numbers; built once per ISA.
#include "cpu/fft_lanes.h"

namespace facula::FACULA_ISA {

extern const FftLoops<double> fft_loops_double;
const FftLoops<double> fft_loops_double = kFftLoops<double>;

}  // namespace facula::FACULA_ISA

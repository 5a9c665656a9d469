// Whether this processor multiplies by matrix tiles (Intel's Advanced Matrix Extensions), and the
// products that do.
#pragma once
#include "cpu/gemm.h"

namespace facula {

// bfloat16 and half: tiles of 16 x 32 and 32 x 16 elements are multiplied and added to 16 x 16
// floats. With FACULA_ISA they are off, since its sets are those without tiles; only "tiles" claims
// that they are there, for tests with an emulator.
bool amx_available(DType);

// All threads. Sums are taken in order along k, in float32, and rounded once.
void amx_product(const Gemm&);
// One matrix, not rounded and without alpha, beta and bias: to dense rows, `apart` from each other.
// There is something to multiply.
void amx_product(const Gemm&, float* sums, int64_t apart);
// Whether there is enough to multiply that packing tiles pays.
bool suits_amx(const Gemm&);

}  // namespace facula

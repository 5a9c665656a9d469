// The single-threaded products that gemm.cpp cuts a problem into.
#pragma once
#include <cstdint>

#include "cpu/gemm.h"

namespace facula {

// The same product with rows and columns in each other's place; a bias would not fit.
Gemm transposed(const Gemm&);

// All matrices of a batch, in the calling thread. m, n, k and batch are positive.
using GemmFunction = void (*)(const Gemm&);

// One instruction set's functions by dtype; none for bool and complex. Half and float8 are computed
// in float, integers in unsigned words, each converted while it is copied into the packed form.
struct GemmTable {
  GemmFunction product[kDTypes];
  // For batches of matrices with up to kTinyElements; none for dtypes that are converted.
  GemmFunction tiny[kDTypes];
};
constexpr int64_t kTinyElements = 256;
constexpr int64_t kFewRows = 8;
// A part of few_rows starts at a multiple of these columns of b, contiguous ones or rows of it.
constexpr int64_t kColumnsOfDots = 4, kColumnsOfRows = 16;
struct GemmVectorTable {
  GemmFunction few_rows[kDTypes];  // m <= kFewRows
  // A part of a dot product: m == n == batch == 1. c points to an accumulator (float, double,
  // uint32_t or uint64_t) and is set to a@b, without alpha and beta.
  GemmFunction partial_dot[kDTypes];
};

// Built per ISA from gemm_micro_isa.cpp and gemm_vector_isa.cpp.
#define FACULA_GEMM_TABLES(isa)                          \
  namespace isa {                                        \
  extern const GemmTable* const gemm_table;              \
  extern const GemmVectorTable* const gemm_vector_table; \
  }
FACULA_GEMM_TABLES(baseline)
#ifdef FACULA_X86
FACULA_GEMM_TABLES(v3)
FACULA_GEMM_TABLES(v4)
#endif
#undef FACULA_GEMM_TABLES

// Large products of float and double by our own kernels, on all threads; where this CPU has them.
bool packed_product_available(DType);
void packed_product(const Gemm&);

// float, double and complex through OpenBLAS. `share` calls its second argument on parts that cover
// the first; operands that BLAS cannot address are copied before.
void blas_product(const Gemm&, void (*share)(const Gemm&, GemmFunction));

// bfloat16 by the AVX512_BF16 dot product.
bool bf16_product_available();
// Whether dot products of pairs take one cycle, as products of floats do, so that what is packed
// for matrix tiles pays without them: of bfloat16, but not on Intel's processors, which take two.
bool fast_dots_available(DType);
void bf16_product(const Gemm&);
// One matrix on all threads, not rounded and without alpha, beta and bias: to rows `apart` from
// each other, which have room for whole vectors of 16 columns.
void bf16_sums(const Gemm&, float* sums, int64_t apart);

}  // namespace facula

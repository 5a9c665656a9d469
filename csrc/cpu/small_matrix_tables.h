// Built per ISA from small_matrix_isa.cpp, small_lu_isa.cpp, matrix_lanes_isa.cpp,
// spectral_lanes_isa.cpp, matrix_panels_isa.cpp, bulge_chase_isa.cpp, triangle_isa.cpp and
// tridiagonal_isa.cpp.
#pragma once
#include "cpu/hessenberg.h"
#include "cpu/small_matrix.h"
#include "cpu/triangle.h"
#include "cpu/tridiagonal.h"

namespace facula {

#define FACULA_SMALL_MATRIX_TABLES(isa)                       \
  namespace isa {                                             \
  extern const SmallMatrix<float> small_float;                \
  extern const SmallMatrix<double> small_double;              \
  extern const SmallMatrix<Complex<float>> small_complex64;   \
  extern const SmallMatrix<Complex<double>> small_complex128; \
  extern const MatrixLanes<float> lanes_float;                \
  extern const MatrixLanes<double> lanes_double;              \
  extern const SpectralLanes<float> spectral_float;           \
  extern const SpectralLanes<double> spectral_double;         \
  extern const SmallLu small_lu_float;                        \
  extern const MatrixPanels<float> panels_float;              \
  extern const MatrixPanels<double> panels_double;            \
  extern const TriangleTable<float> triangles_float;          \
  extern const TriangleTable<double> triangles_double;        \
  extern const BulgeChase<float> chase_float;                 \
  extern const BulgeChase<double> chase_double;               \
  extern const Tridiagonal<float> tridiagonal_float;          \
  extern const Tridiagonal<double> tridiagonal_double;        \
  }
FACULA_SMALL_MATRIX_TABLES(baseline)
#ifdef FACULA_X86
FACULA_SMALL_MATRIX_TABLES(v3)
FACULA_SMALL_MATRIX_TABLES(v4)
#endif
#undef FACULA_SMALL_MATRIX_TABLES

}  // namespace facula

#include "cpu/small_matrix.h"

#include "cpu/cast.h"
#include "cpu/small_matrix_tables.h"

namespace facula {

#ifdef FACULA_X86
#define FACULA_BY_LEVEL(name) {&baseline::name, &v3::name, &v4::name}
#else
#define FACULA_BY_LEVEL(name) {&baseline::name}
#endif
#define FACULA_CHOOSE(Table, T, function, name)                      \
  template <>                                                        \
  const Table<T>& function<T>() {                                    \
    static const Table<T>* const by_level[] = FACULA_BY_LEVEL(name); \
    return *by_level[isa_level()];                                   \
  }
FACULA_CHOOSE(SmallMatrix, float, small_matrix, small_float)
FACULA_CHOOSE(SmallMatrix, double, small_matrix, small_double)
FACULA_CHOOSE(SmallMatrix, Complex<float>, small_matrix, small_complex64)
FACULA_CHOOSE(SmallMatrix, Complex<double>, small_matrix, small_complex128)
FACULA_CHOOSE(MatrixLanes, float, matrix_lanes, lanes_float)
FACULA_CHOOSE(MatrixLanes, double, matrix_lanes, lanes_double)
FACULA_CHOOSE(SpectralLanes, float, spectral_lanes, spectral_float)
FACULA_CHOOSE(SpectralLanes, double, spectral_lanes, spectral_double)
FACULA_CHOOSE(MatrixPanels, float, matrix_panels, panels_float)
FACULA_CHOOSE(MatrixPanels, double, matrix_panels, panels_double)
FACULA_CHOOSE(TriangleTable, float, triangle_table, triangles_float)
FACULA_CHOOSE(TriangleTable, double, triangle_table, triangles_double)
FACULA_CHOOSE(BulgeChase, float, bulge_chase, chase_float)
FACULA_CHOOSE(BulgeChase, double, bulge_chase, chase_double)
FACULA_CHOOSE(Tridiagonal, float, tridiagonal, tridiagonal_float)
FACULA_CHOOSE(Tridiagonal, double, tridiagonal, tridiagonal_double)
#undef FACULA_CHOOSE

SmallLu small_lu() {
  static const SmallLu* const by_level[] = FACULA_BY_LEVEL(small_lu_float);
  return *by_level[isa_level()];
}
#undef FACULA_BY_LEVEL

}  // namespace facula

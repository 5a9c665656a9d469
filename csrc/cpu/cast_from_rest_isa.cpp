// Conversions from some of the element types; built once per ISA.
#include "cpu/cast_rows.h"

namespace facula::FACULA_ISA {

extern const CastRow cast_from_Complex64 = cast_row<TypeOf<DType::Complex64>::type>();

extern const CastRow cast_from_Complex128 = cast_row<TypeOf<DType::Complex128>::type>();

extern const CastRow cast_from_Float8E4M3 = cast_row<TypeOf<DType::Float8E4M3>::type>();

extern const CastRow cast_from_Float8E5M2 = cast_row<TypeOf<DType::Float8E5M2>::type>();

}  // namespace facula::FACULA_ISA

// Conversions from some of the element types; built once per ISA.
#include "cpu/cast_rows.h"

namespace facula::FACULA_ISA {

extern const CastRow cast_from_Float32 = cast_row<TypeOf<DType::Float32>::type>();

extern const CastRow cast_from_Float64 = cast_row<TypeOf<DType::Float64>::type>();

}  // namespace facula::FACULA_ISA

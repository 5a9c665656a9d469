// Conversions from some of the element types; built once per ISA.
#include "cpu/cast_rows.h"

namespace facula::FACULA_ISA {

extern const CastRow cast_from_Int64 = cast_row<TypeOf<DType::Int64>::type>();

extern const CastRow cast_from_UInt16 = cast_row<TypeOf<DType::UInt16>::type>();

}  // namespace facula::FACULA_ISA

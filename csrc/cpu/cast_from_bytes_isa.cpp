// Conversions from some of the element types; built once per ISA.
#include "cpu/cast_rows.h"

namespace facula::FACULA_ISA {

extern const CastRow cast_from_Bool = cast_row<TypeOf<DType::Bool>::type>();

extern const CastRow cast_from_UInt8 = cast_row<TypeOf<DType::UInt8>::type>();

extern const CastRow cast_from_Int8 = cast_row<TypeOf<DType::Int8>::type>();

}  // namespace facula::FACULA_ISA

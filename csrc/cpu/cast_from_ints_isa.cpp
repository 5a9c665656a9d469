// Conversions from some of the element types; built once per ISA.
#include "cpu/cast_rows.h"

namespace facula::FACULA_ISA {

extern const CastRow cast_from_Int16 = cast_row<TypeOf<DType::Int16>::type>();

extern const CastRow cast_from_Int32 = cast_row<TypeOf<DType::Int32>::type>();

}  // namespace facula::FACULA_ISA

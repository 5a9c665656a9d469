// Conversions from some of the element types; built once per ISA.
#include "cpu/cast_rows.h"

namespace facula::FACULA_ISA {

extern const CastRow cast_from_Float16 = cast_row<TypeOf<DType::Float16>::type>();

extern const CastRow cast_from_BFloat16 = cast_row<TypeOf<DType::BFloat16>::type>();

}  // namespace facula::FACULA_ISA

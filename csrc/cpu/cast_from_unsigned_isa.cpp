// Conversions from some of the element types; built once per ISA.
#include "cpu/cast_rows.h"

namespace facula::FACULA_ISA {

extern const CastRow cast_from_UInt32 = cast_row<TypeOf<DType::UInt32>::type>();

extern const CastRow cast_from_UInt64 = cast_row<TypeOf<DType::UInt64>::type>();

}  // namespace facula::FACULA_ISA

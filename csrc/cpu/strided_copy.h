// Copies between strided operands, in an order that suits memory.
#pragma once
#include "cpu/cast.h"
#include "cpu/iterate.h"

namespace facula {

// Operand 0 = operand 1, converted by `cast`, or moved when both have one dtype. Takes the item
// sizes of both. `it` is finished, or has dimensions in an order of its own.
void copy_strided_operands(const Iteration& it, CastLoop cast, int64_t to_item, int64_t from_item,
                           bool same_dtype);

}  // namespace facula

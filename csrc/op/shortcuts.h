// Cheaper loops for particular arguments of an elementwise operator; named by rows.
#pragma once
#include "op/elementwise.h"

namespace facula::shortcuts {

// pow with a small whole number or half as exponent: products and roots instead of exp and log.
const ElementwiseDef* common_exponent(const Value* args, DType compute);
// The derivative of sinc of order 1.
const ElementwiseDef* first_order(const Value* args, DType compute);
// polygamma of orders 0 and 1.
const ElementwiseDef* low_order(const Value* args, DType compute);

}  // namespace facula::shortcuts

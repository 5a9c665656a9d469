#include "op/shortcuts.h"

#include "op/ops/arithmetic.h"
#include "op/ops/mathematics.h"
#include "op/ops/special.h"
#include "op/tensor_operators.h"

namespace facula::shortcuts {

const ElementwiseDef* common_exponent(const Value* args, DType compute) {
  if (!args[1].is_number()) return nullptr;
  const Scalar e = args[1].scalar();
  const OpDef* op = e.equals(2) ? &defs::_square : e.equals(3) ? &defs::_cube : nullptr;
  if (!op && category(compute) >= Category::Floating)  // complex ones are exact this way, too
    op = e.equals(0.5)    ? &defs::sqrt
         : e.equals(-0.5) ? &defs::rsqrt
         : e.equals(-1)   ? &defs::reciprocal
         : e.equals(-2)   ? &defs::_inverse_square
                          : nullptr;
  if (!op || !(op->elementwise->dtypes >> int(compute) & 1)) return nullptr;
  return op->elementwise;
}

const ElementwiseDef* first_order(const Value* args, DType compute) {
  return args[1].to_int() == 1 && is_floating(compute) ? defs::_sinc_slope.elementwise : nullptr;
}

const ElementwiseDef* low_order(const Value* args, DType) {
  const int64_t n = args[0].to_int();
  return n == 0 ? defs::digamma.elementwise : (n == 1 ? defs::_trigamma.elementwise : nullptr);
}

}  // namespace facula::shortcuts

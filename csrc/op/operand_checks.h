// Arguments that an elementwise row refuses (its option `check`): asked before anything is written.
#pragma once
#include "op/value.h"

namespace facula::checks {

void divisor_not_zero(const Value* args, DType compute);
void exponent_not_negative(const Value* args, DType compute);
void no_bool_difference(const Value* args, DType compute);
void no_bool_negation(const Value* args, DType compute);
void order_not_negative(const Value* args, DType compute);
void same_dtypes(const Value* args, DType compute);       // heaviside
void end_of_one_dtype(const Value* args, DType compute);  // lerp
void no_integer_quotient(const Value* args, DType compute);
void fill_value_fits(const Value* args, DType compute);
void one_value(const Value* args, DType compute);             // fill
void weights_not_negative(const Value* args, DType compute);  // cov
void total_not_zero(const Value* args, DType compute);
void levels_in_range(const Value* args, DType compute);  // quantile
void probabilities(const Value* args, DType compute);    // the first operand is within [0, 1]
void variances(const Value* args, DType compute);        // none is negative

}  // namespace facula::checks

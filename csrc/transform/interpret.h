// The interpreter: an operator on wrapped tensors is handled by the innermost level among them.
#pragma once
#include "op/arguments.h"
#include "transform/wrapper.h"

namespace facula {

void interpret(const OpDef& op, const Value* args, Rets& rets);

// Calls the operator on the values behind the tensors of `level`, with the modes that hold there,
// and wraps the results again.
void call_outside(const OpDef& op, const Value* args, Rets& rets, const Level& level);

void call_forward(const OpDef& op, const Value* args, Rets& rets, const Level& level);
void call_batched(const OpDef& op, const Value* args, Rets& rets, const Level& level);

}  // namespace facula

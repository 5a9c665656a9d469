// What operators do with sparse tensors: a table from operators to handlers, and the step of `call`
// that consults it.
#pragma once
#include <unordered_map>

#include "core/sparse.h"
#include "op/def.h"

namespace facula {

// Runs an operator with sparse tensors among its arguments or destinations. Handlers are made of
// other operators, which record the tape.
void call_sparse(const OpDef& op, const Value* args, Rets& rets, bool taped);

namespace sparse {

struct Handler {
  // The result of the call; in place and out= copy it to where it belongs.
  Tensor (*compute)(const OpDef& op, const Value* args) = nullptr;
  // In place, where there is a better way than that; false where it does not apply.
  bool (*write)(const OpDef& op, const Value* args, Rets& rets) = nullptr;
  // In the place of `compute`: the operator's own kernel takes sparse tensors, the tape is as
  // usual.
  Kernel kernel = nullptr;
  // The kernel is made of operators, which record the tape.
  bool composite = false;
};
using Table = std::unordered_map<const OpDef*, Handler>;

void add_batched(Table& table);  // the whole table of batches of compressed matrices
void add_derived(Table& table);
void add_elementwise(Table& table);
void add_valuewise(Table& table);  // the part of it that is done to the values alone
void add_moves(Table& table);
void add_products(Table& table);
void add_reductions(Table& table);

}  // namespace sparse
}  // namespace facula

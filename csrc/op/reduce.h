// The reduction family: which dimensions go, in which dtype the rest is accumulated.
#pragma once
#include "op/elementwise.h"

namespace facula {

struct ReduceDef {
  uint32_t dtypes;  // accumulation types that have a loop
  DType integers;   // what integral inputs accumulate in, or None for their own
  DType result;     // Bool for any/all, else None
  bool has_init;    // an empty reduction has a value
  int8_t dim_arg, keepdim_arg, dtype_arg;  // -1: the operator has no such argument
  const ReduceLoop* loops[3];
  const Loop* folds[3];
  const char* combine;  // texts, for devices that compile at run time
  const char* init;
};

void reduce_kernel(const OpDef& op, const Value* args, Rets& rets);

// The shape left when the dimensions of the mask are reduced.
Dims reduced_shape(IntSpan sizes, uint64_t mask, bool keepdim);
// A list of dims, one dim, or none (all).
uint64_t dims_of(const Value& dim, int64_t ndim);

}  // namespace facula

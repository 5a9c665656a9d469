// Names for what composites record: their last step may say less than they themselves do.
#pragma once
#include "core/tensor.h"

namespace facula {

// What the next node's `sequence` will be.
uint64_t next_node();
// Names the node of a result, if it was made since then.
void name_node(const Tensor& result, uint64_t since, const char* name);
// A view of a tensor that nobody else has seen; it counts as a tensor of its own.
Tensor unsafe_view(const Tensor& temporary, IntSpan size);

}  // namespace facula

// How every view is made: an alias that knows its base.
#pragma once
#include "core/tensor.h"

namespace facula {

// A view of `self`; views of views point at the same base.
Tensor make_view(const Tensor& self, IntSpan sizes, IntSpan strides, int64_t offset);

// Copies `from` into `to`'s memory through the given geometry, whose strides may be negative.
void copy_strided(const Tensor& to, IntSpan strides, int64_t offset, const Tensor& from);

}  // namespace facula

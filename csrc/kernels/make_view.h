// How every view is made: an alias that knows its base.
#pragma once
#include "op/def.h"

namespace facula {

// A view of `self`; views of views point at the same base.
Tensor make_view(const Tensor& self, IntSpan sizes, IntSpan strides, int64_t offset);

// For operators that turn a tensor itself: gives `self` the geometry and the history of `view`.
void adopt_geometry(const Tensor& self, const Tensor& view, Rets& rets);

// Copies `from` into `to`'s memory through the given geometry, whose strides may be negative.
void copy_strided(const Tensor& to, IntSpan strides, int64_t offset, const Tensor& from);

}  // namespace facula

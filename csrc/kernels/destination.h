// Where kernels that write by item size or in several steps put their results.
#pragma once
#include "op/elementwise.h"

namespace facula {

// A destination of exactly this dtype: the kernel stores items without conversion.
Tensor& exact_result(Rets& rets, int i, IntSpan shape, DType dtype, Device device);

// A destination of samples: an out= tensor of another shape is resized without a warning, as in
// PyTorch.
void prepare_samples(Rets& rets, IntSpan shape, DType dtype, Device device);

enum class CopyLayout { Contiguous, Preserve };
// The tensor that starts as `self` and is then written to: a copy, the out= tensor filled with
// `self`, or `self` itself in place. Call it after every check that may fail.
Tensor& start_from(const Tensor& self, Rets& rets, CopyLayout layout);

// `read`, or a copy of it when it may share memory with `written`. Raises as PyTorch does where
// sharing is certain.
Tensor apart_from(const Tensor& written, const Tensor& read);
// The same for operators whose argument may itself be given as out=: it is copied then.
Tensor apart_or_copied(const Tensor& written, const Tensor& read);

// The strides of a copy that preserves the layout.
Dims preserved_strides(const Tensor& t);

// Off the tape: contiguous, and contiguous int64.
Tensor dense(const Tensor& t);
Tensor dense_int64(const Tensor& t);

// Tensors without dimensions are indexed as vectors of one element.
Tensor at_least_1d(const Tensor& t);

}  // namespace facula

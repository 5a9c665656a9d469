// Layouts of images and volumes, (N, C, ...) with 1 to 3 spatial dimensions at the end.
#pragma once
#include "core/tensor.h"

namespace facula {

// PyTorch's test for channels_last. Where both layouts have these strides it means the other one.
bool suggests_channels_last(const Tensor& t);
// The dense strides of one of the two layouts.
Dims spatial_strides(IntSpan sizes, bool channels_last);
bool has_spatial_layout(const Tensor& t, bool channels_last);
// `t`, or a copy of it, in one of the two layouts.
Tensor with_spatial_layout(const Tensor& t, bool channels_last);

// A tensor as kernels of images see it: (outer, spatial ..., inner), dense. Channels are part of
// the outer dimension, or the inner one where they lie side by side.
struct Spatial {
  Tensor t;
  bool channels_last = false;
  int64_t outer = 1, inner = 1;
  int64_t size[3] = {1, 1, 1};  // depth, height, width; missing ones are 1

  int64_t pixels() const { return size[0] * size[1] * size[2]; }
};

// Leading dimensions in front of the last `dims` are all outer, whatever their number. Only
// tensors (N, C, ...) with two or three spatial dimensions may keep channels last.
Spatial spatial_view(const Tensor& t, int64_t dims);
Spatial spatial_view(const Tensor& t, int64_t dims, bool channels_last);
// An unset tensor of the same leading dimensions and layout with other spatial sizes.
Spatial spatial_result(const Spatial& like, IntSpan sizes, DType dtype);

// One value for each of `dims` dimensions, from one or as many.
Dims spatial_values(IntSpan given, int64_t dims, const char* name);
// Refuses inputs that are not (C, ...) or (N, C, ...), or that have no elements but in the batch.
void check_spatial_input(const Tensor& input, int64_t dims);
// The same where the first `may_be_empty` dimensions may have no elements.
void check_spatial_input(const Tensor& input, int64_t dims, int64_t may_be_empty);

}  // namespace facula

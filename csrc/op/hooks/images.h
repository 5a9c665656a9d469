// What a device backend does for images and volumes (kernels/pooling.cpp, interpolation.cpp,
// images.cpp, padding.cpp).
#pragma once
#include "op/device_hook.h"

namespace facula {

struct AxisPositions;  // cpu/positions.h
struct ColumnAxis;     // cpu/columns.h
struct MaxPool;        // cpu/max_pool.h
struct ResampleTable;  // cpu/resample.h

// A dense tensor as (outer, depth, height, width, inner).
struct ImageTensor {
  Tensor t;
  int64_t outer, size[3], inner;
};

enum class MaxPoolKind { Forward, Back, Pick, Positions };

struct ImageHooks {
  // The functions of cpu/max_pool.h. `x` is the unpooled side, `y` the pooled one (the positions,
  // for those), `taps` belong to y.
  DeviceHook<void(MaxPoolKind kind, const MaxPool& problem, const Tensor& x, const Tensor& y,
                  const Tensor& taps)>
      max_pool{"max_pool"};
  // The largest element of windows that divide the axes, or that begin at random places: then
  // samples (planes, dims), float64, and kernel sizes are given.
  DeviceHook<void(const ImageTensor& in, const ImageTensor& values, const Tensor& positions,
                  IntSpan kernel, const Tensor& samples)>
      window_max{"adaptive_max_pool"};
  // out = for each pixel, the sum of the gradients whose position it is.
  DeviceHook<void(const ImageTensor& grad, const Tensor& positions, const ImageTensor& out)>
      sum_by_positions{"max_pool"};
  // cpu/resample.h
  DeviceHook<void(const ImageTensor& in, const ResampleTable* tables, const ImageTensor& out)>
      resample{"interpolate"};
  // cpu/positions.h; `outside` is one element in host memory, or null.
  DeviceHook<void(const ImageTensor& in, const AxisPositions* axis, const ImageTensor& out,
                  const void* outside)>
      select_positions{"pad"};
  DeviceHook<void(const ImageTensor& in, const AxisPositions* axis, const ImageTensor& out)>
      add_positions{"pad"};
  // cpu/columns.h: image to columns, or back.
  DeviceHook<void(const Tensor& image, const Tensor& columns, const ColumnAxis& h,
                  const ColumnAxis& w, bool back)>
      columns{"unfold"};
};
inline constinit ImageHooks device_images;

}  // namespace facula

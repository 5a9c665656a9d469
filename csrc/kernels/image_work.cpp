#include "kernels/image_work.h"

namespace facula {

ImageTensor on_device(const Spatial& s) {
  return {s.t, s.outer, {s.size[0], s.size[1], s.size[2]}, s.inner};
}

void resample_images(const Spatial& in, const ResampleTable tables[3], const Spatial& out) {
  if (in.t.is_cuda()) return device_images.resample(on_device(in), tables, on_device(out));
  resample(in.t.dtype(), in.outer, in.inner, tables, in.t.data(), out.t.data());
}

void select_positions(const Spatial& in, const AxisPositions axis[3], const Spatial& out) {
  if (in.t.is_cuda())
    return device_images.select_positions(on_device(in), axis, on_device(out), nullptr);
  select_positions(in.t.dtype(), in.outer, in.inner, axis, in.t.data(), out.t.data());
}

void add_positions(const Spatial& in, const AxisPositions axis[3], const Spatial& out) {
  if (in.t.is_cuda()) return device_images.add_positions(on_device(in), axis, on_device(out));
  add_positions(in.t.dtype(), in.outer, in.inner, axis, in.t.data(), out.t.data());
}

}  // namespace facula

#include "kernels/spatial.h"

#include "op/ops/copying.h"
#include "op/value.h"

namespace facula {

bool suggests_channels_last(const Tensor& t) {
  if (t.strides()[1] == 0) return false;
  const IntSpan sizes = t.sizes(), strides = t.strides();
  int64_t least = 0;
  auto grows = [&](size_t d) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * sizes[d];
    return true;
  };
  if (!grows(1)) return false;
  for (size_t d = sizes.size(); d-- > 2;)
    if (!grows(d)) return false;
  return grows(0);
}

Dims spatial_strides(IntSpan sizes, bool channels_last) {
  if (!channels_last) return contiguous_strides(sizes);
  Dims strides(sizes.size());
  int64_t step = 1;
  auto place = [&](size_t d) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  };
  place(1);
  for (size_t d = sizes.size(); d-- > 2;) place(d);
  place(0);
  return strides;
}

bool has_spatial_layout(const Tensor& t, bool channels_last) {
  const Dims strides = spatial_strides(t.sizes(), channels_last);
  for (size_t d = 0; d < strides.size(); ++d)
    if (t.sizes()[d] > 1 && t.strides()[d] != strides[d]) return false;
  return true;
}

Tensor with_spatial_layout(const Tensor& t, bool channels_last) {
  if (has_spatial_layout(t, channels_last)) return t;
  Tensor copy =
      empty_tensor(t.sizes(), spatial_strides(t.sizes(), channels_last), t.dtype(), t.device());
  op::copy_(copy, t);
  return copy;
}

Spatial spatial_view(const Tensor& t, int64_t dims, bool channels_last) {
  Spatial s;
  s.channels_last = channels_last;
  s.t = with_spatial_layout(t, channels_last);
  const int64_t leading = t.dim() - dims;
  for (int64_t d = 0; d < leading; ++d)
    (channels_last && d == 1 ? s.inner : s.outer) *= t.sizes()[size_t(d)];
  for (int64_t d = 0; d < dims; ++d) s.size[3 - dims + d] = t.sizes()[size_t(leading + d)];
  return s;
}

Spatial spatial_view(const Tensor& t, int64_t dims) {
  return spatial_view(t, dims, dims >= 2 && t.dim() == dims + 2 && suggests_channels_last(t));
}

Spatial spatial_result(const Spatial& like, IntSpan sizes, DType dtype) {
  Spatial s = like;
  const size_t dims = sizes.size(), leading = size_t(like.t.dim()) - dims;
  Dims shape(like.t.sizes().first(leading));
  for (size_t d = 0; d < dims; ++d) {
    shape.push_back(sizes[d]);
    s.size[3 - dims + d] = sizes[d];
  }
  s.t = empty_tensor(shape, spatial_strides(shape, like.channels_last), dtype, like.t.device());
  return s;
}

Dims spatial_values(IntSpan given, int64_t dims, const char* name) {
  if (given.size() == 1) return Dims(size_t(dims), given[0]);
  if (int64_t(given.size()) != dims)
    runtime_error(name, " must be a single int or a list of ", dims, " ints, but got ", name, "=",
                  given);
  return Dims(given);
}

void check_spatial_input(const Tensor& input, int64_t dims) {
  check_spatial_input(input, dims, input.dim() == dims + 2);
}

void check_spatial_input(const Tensor& input, int64_t dims, int64_t may_be_empty) {
  bool empty = false;
  for (int64_t d = may_be_empty; d < input.dim(); ++d) empty |= input.sizes()[size_t(d)] == 0;
  if ((input.dim() != dims + 1 && input.dim() != dims + 2) || empty)
    runtime_error(
        "Expected ", dims + 1, "D or ", dims + 2,
        "D (batch mode) tensor with optional 0 dim batch size for input, but got: ", input.sizes());
}

}  // namespace facula

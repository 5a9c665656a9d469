// Padding with a constant and with elements of the tensor itself.
#include "op/ops/padding.h"

#include <algorithm>

#include "autograd/node_names.h"
#include "cpu/positions.h"
#include "kernels/image_work.h"
#include "kernels/spatial.h"
#include "op/kernels/padding.h"
#include "op/ops/copying.h"

namespace facula::kernels {

namespace {

// The result's shape. Pads come in pairs, the last dimension first.
Dims padded_shape(const Tensor& self, IntSpan pad) {
  if (pad.size() % 2) runtime_error("Padding length must be divisible by 2, but got pad=", pad);
  if (int64_t(pad.size()) > 2 * self.dim())
    runtime_error(
        "Padding length should be less than or equal to two times the input dimension "
        "but got padding length ",
        pad.size(), " and input of dimension ", self.dim());
  Dims shape(self.sizes());
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t& n = shape[shape.size() - 1 - i];
    const int64_t size = n;
    n += pad[2 * i] + pad[2 * i + 1];
    if (n < 0)
      runtime_error("The input size ", size, ", plus negative padding ", pad[2 * i], " and ",
                    pad[2 * i + 1],
                    ", resulted in a negative output size, which is invalid. "
                    "Check dimension ",
                    self.dim() - 1 - int64_t(i), " of your input.");
  }
  return shape;
}

// In one pass, where no more than three dimensions are padded, none of which is the channels' of
// channels_last. False where that does not hold.
bool pad_axes(const Tensor& self, IntSpan pad, const Scalar& value, bool channels_last,
              const Tensor& out) {
  const int64_t dims = std::min<int64_t>(3, channels_last ? self.dim() - 2 : self.dim());
  for (size_t i = size_t(2 * dims); i < pad.size(); ++i)
    if (pad[i]) return false;
  const Spatial in = spatial_view(self, dims, channels_last);
  AxisPositions axis[3];
  for (size_t i = 0; i < 3; ++i) {
    AxisPositions& a = axis[2 - i];
    a.in = in.size[2 - i];
    const int64_t front = 2 * i < pad.size() && int64_t(i) < dims ? pad[2 * i] : 0,
                  back = 2 * i < pad.size() && int64_t(i) < dims ? pad[2 * i + 1] : 0;
    a.at.resize(size_t(a.in + front + back));
    for (int64_t t = 0; t < a.out(); ++t) {
      const int64_t at = t - front;
      a.at[size_t(t)] = at >= 0 && at < a.in ? at : -1;
    }
  }
  const Tensor outside = empty_tensor({}, self.dtype(), Device{});
  op::fill_(outside, Value(value));
  if (out.numel())
    select_positions(self.dtype(), in.outer, in.inner, axis, in.t.data(), out.data(),
                     outside.data());
  return true;
}

}  // namespace

Tensor constant_pad_nd(const Tensor& self, IntSpan pad, const Scalar& value) {
  const Dims shape = padded_shape(self, pad);
  const bool last = (self.dim() == 4 || self.dim() == 5) && suggests_channels_last(self);
  // Nothing is added: a copy of what is left, in the order of memory that copies have.
  if (!has_spatial_layout(self, last) &&
      std::all_of(pad.begin(), pad.end(), [](int64_t n) { return n <= 0; })) {
    int64_t from = self.offset();
    for (size_t i = 0; i < pad.size() / 2; ++i)
      from -= pad[2 * i] * self.strides()[shape.size() - 1 - i];
    return op::clone(alias_tensor(self, shape, self.strides(), from));
  }
  Tensor out = empty_tensor(shape, spatial_strides(shape, last), self.dtype(), self.device());
  if (out.is_meta()) return out;
  if (self.numel() == 0) return op::fill_(out, Value(value));
  if (self.is_cpu() && !self.is_lazy() && pad_axes(self, pad, value, last, out)) return out;
  // What is kept of the input, and where it goes.
  Dims sizes(self.sizes());
  int64_t from = self.offset(), to = out.offset();
  bool grows = false;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = sizes.size() - 1 - i;
    const int64_t front = pad[2 * i], back = pad[2 * i + 1];
    grows |= front > 0 || back > 0;
    from += std::max<int64_t>(-front, 0) * self.strides()[d];
    to += std::max<int64_t>(front, 0) * out.strides()[d];
    sizes[d] += std::min<int64_t>(front, 0) + std::min<int64_t>(back, 0);
  }
  if (grows) op::fill_(out, Value(value));
  for (int64_t n : sizes)
    if (n <= 0) return out;
  op::copy_(alias_tensor(out, sizes, out.strides(), to),
            alias_tensor(self, sizes, self.strides(), from));
  return out;
}

Tensor _unpad(const Tensor& self, IntSpan pad) {
  Dims cut(pad);
  for (int64_t& n : cut) n = -n;
  return op::constant_pad_nd(self, cut, 0);
}

// ---- elements of the tensor itself

namespace {

AxisPositions positions(int64_t in, int64_t front, int64_t back, std::string_view mode) {
  AxisPositions axis;
  axis.in = in;
  axis.at.resize(size_t(std::max<int64_t>(0, in + front + back)));
  // What wraps around is the part that negative pads leave.
  const int64_t cut = std::max<int64_t>(-front, 0);
  const int64_t kept = std::max<int64_t>(1, in - cut + std::min<int64_t>(back, 0));
  for (int64_t t = 0; t < axis.out(); ++t) {
    int64_t at = t - front;
    if (mode == "reflect") at = at < 0 ? -at : at >= in ? 2 * in - 2 - at : at;
    else if (mode == "replicate") at = std::clamp<int64_t>(at, 0, in - 1);
    else at = cut + ((t - std::max<int64_t>(front, 0)) % kept + kept) % kept;
    axis.at[size_t(t)] = at;
  }
  return axis;
}

// By axis, from the pads of up to three dimensions.
void axis_positions(const int64_t* sizes, IntSpan pad, std::string_view mode,
                    AxisPositions axis[3]) {
  for (size_t i = 0; i < 3; ++i) {
    const bool padded = i < pad.size() / 2;
    axis[2 - i] =
        positions(sizes[2 - i], padded ? pad[2 * i] : 0, padded ? pad[2 * i + 1] : 0, mode);
  }
}

void check_pads(const Tensor& self, IntSpan pad, std::string_view mode) {
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t n = self.size(-1 - int64_t(i)), most = std::max(pad[2 * i], pad[2 * i + 1]);
    const int64_t dim = self.dim() - 1 - int64_t(i);
    if (mode == "reflect" && most >= n)
      runtime_error(
          "Padding size should be less than the corresponding input dimension, but got: "
          "padding (",
          pad[2 * i], ", ", pad[2 * i + 1], ") at dimension ", dim, " of input ", self.sizes());
    if (mode == "circular" && most > n)
      runtime_error("Padding value causes wrapping around more than once: padding (", pad[2 * i],
                    ", ", pad[2 * i + 1], ") at dimension ", dim, " of input ", self.sizes());
    if (mode == "replicate" && n == 0)
      runtime_error("Expected a non-zero size at dimension ", dim, " of the input, but got ",
                    self.sizes());
    // PyTorch returns memory that nobody wrote here.
    if (mode == "circular" && n + pad[2 * i] + pad[2 * i + 1] > 0 &&
        n + std::min<int64_t>(pad[2 * i], 0) + std::min<int64_t>(pad[2 * i + 1], 0) < 1)
      runtime_error("padding (", pad[2 * i], ", ", pad[2 * i + 1],
                    ") leaves nothing to wrap around of dimension ", dim, " of input ",
                    self.sizes());
    if (mode != "circular" && n + pad[2 * i] + pad[2 * i + 1] < 1)
      runtime_error("padding (", pad[2 * i], ", ", pad[2 * i + 1], ") leaves nothing of dimension ",
                    dim, " of input ", self.sizes());
  }
}

// PyTorch keeps channels_last where it pads images and volumes by repetition.
bool keeps_layout(std::string_view mode, size_t dims) {
  return mode != "circular" && dims >= 2;
}

}  // namespace

Tensor _pad_with_own(const Tensor& self, IntSpan pad, std::string_view mode) {
  check_pads(self, pad, mode);
  const size_t dims = pad.size() / 2;
  const Spatial in = keeps_layout(mode, dims) ? spatial_view(self, int64_t(dims))
                                              : spatial_view(self, int64_t(dims), false);
  const Dims shape = padded_shape(self, pad);
  const Spatial out = spatial_result(in, IntSpan(shape).last(dims), self.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  AxisPositions axis[3];
  axis_positions(in.size, pad, mode, axis);
  select_positions(in, axis, out);
  return out.t;
}

Tensor _pad_with_own_grad(const Tensor& grad_output, IntSpan size, IntSpan pad,
                          std::string_view mode) {
  const size_t dims = pad.size() / 2;
  const Spatial in = keeps_layout(mode, dims) ? spatial_view(grad_output, int64_t(dims))
                                              : spatial_view(grad_output, int64_t(dims), false);
  const Spatial out = spatial_result(in, size.last(dims), grad_output.dtype());
  if (out.t.is_meta() || !out.t.numel()) return out.t;
  AxisPositions axis[3];
  axis_positions(out.size, pad, mode, axis);
  add_positions(in, axis, out);
  return out.t;
}

Tensor pad(const Tensor& input, IntSpan pad, std::string_view mode, Value value) {
  if (mode == "constant")
    // A float, as PyTorch declares it: negative numbers do not wrap around in unsigned dtypes.
    return op::constant_pad_nd(input, pad,
                               value.is_none()               ? Scalar(0)
                               : value.scalar().is_complex() ? value.scalar()
                                                             : value.scalar().to_double());
  if (mode != "reflect" && mode != "replicate" && mode != "circular")
    fail(ErrorKind::NotImplemented, "Unrecognised padding mode '", mode,
         "'; accepted are 'constant', 'reflect', 'replicate' and 'circular'");
  if (!value.is_none() && value.scalar().to_double() != 0)
    runtime_error("Padding mode \"", mode,
                  "\" doesn't take in value argument, got value=", value.scalar().to_double());
  padded_shape(input, pad);
  const int64_t dims = int64_t(pad.size() / 2);
  if (dims < 1 || dims > 3 || (input.dim() != dims + 1 && input.dim() != dims + 2))
    fail(ErrorKind::NotImplemented,
         "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: pad=", pad,
         " pads ", dims, " dimensions, which takes an input of ", dims + 1, " or ", dims + 2,
         " dimensions, but got shape ", input.sizes());
  const bool wraps = mode == "circular";  // also where there are no channels
  for (int64_t d = input.dim() - dims - !wraps; d < input.dim(); ++d)
    if (input.sizes()[size_t(d)] == 0)
      runtime_error("Expected ", dims + 1, "D or ", dims + 2,
                    "D (batch mode) tensor with possibly 0 batch size and other non-zero "
                    "dimensions for input, but got: ",
                    input.sizes());
  const uint64_t earlier = next_node();
  const Tensor padded = wraps || (mode == "reflect" && dims == 3)
                            ? op::_pad_in_own_dtype(input, pad, mode)
                            : op::_pad_with_own(input, pad, mode);
  static const char* const names[2][3] = {
      {"ReflectionPad1DBackward0", "ReflectionPad2DBackward0", "ReflectionPad3DBackward0"},
      {"ReplicationPad1DBackward0", "ReplicationPad2DBackward0", "ReplicationPad3DBackward0"}};
  if (mode != "circular") name_node(padded, earlier, names[mode == "replicate"][dims - 1]);
  return padded;
}

Tensor _pad_in_own_dtype(const Tensor& self, IntSpan pad, std::string_view mode) {
  return op::_pad_with_own(self, pad, mode);
}

}  // namespace facula::kernels

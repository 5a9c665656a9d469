// Rearranging images: pixels and channels, patches and columns.
#include <limits>

#include "op/kernels/images.h"

#include "cpu/columns.h"
#include "cpu/index_items.h"
#include "cpu/iterate.h"
#include "kernels/spatial.h"
#include "op/hooks/images.h"
#include "op/ops/copying.h"
#include "op/ops/images.h"
#include "op/ops/views.h"

namespace facula::kernels {

// ---- pixels and channels

namespace {

void expect_image(const Tensor& self, const char* name) {
  if (self.dim() < 3)
    runtime_error(name, " expects input to have at least 3 dimensions, but got input with ",
                  self.dim(), " dimension(s): (..., C, H, W) is wanted, the shape is ",
                  self.sizes());
}

// The layout that the input has; a wrapped one has none that matters.
bool keeps_channels_last(const Tensor& self) {
  return !self.is_wrapped() && self.dim() == 4 && suggests_channels_last(self);
}

// (..., C, H, W) where every channel of the wide image is `r` times `r` channels of the narrow one.
struct Shuffle {
  Dims wide, narrow;                  // shapes
  int64_t images, channels, h, w, r;  // of the wide channels, h and w of the narrow image
};

Shuffle shuffle_of(const Tensor& self, int64_t channels, int64_t h, int64_t w, int64_t r) {
  Shuffle s{{}, {}, 1, channels, h, w, r};
  for (int64_t n : self.sizes().first(size_t(self.dim() - 3))) {
    s.wide.push_back(n), s.narrow.push_back(n);
    s.images *= n;
  }
  for (int64_t n : {channels, h * r, w * r}) s.wide.push_back(n);
  for (int64_t n : {channels * r * r, h, w}) s.narrow.push_back(n);
  return s;
}

// A tensor of either shape as (images, channels, r, r, h, w). Its leading dimensions are dense.
Tensor split_view(const Tensor& t, const Shuffle& s, bool wide) {
  const int64_t d = t.dim();
  const int64_t c = t.strides()[size_t(d - 3)], y = t.strides()[size_t(d - 2)],
                x = t.strides()[size_t(d - 1)];
  const int64_t image = t.numel() / std::max<int64_t>(1, s.images), r = s.r;
  const Dims sizes{s.images, s.channels, r, r, s.h, s.w};
  const Dims strides =
      wide ? Dims{image, c, y, x, y * r, x * r} : Dims{image, c * r * r, c * r, c, y, x};
  return alias_tensor(t, sizes, strides, t.offset());
}

// One row of the wide image from r rows of the narrow one, or the reverse.
template <class T, bool kWiden>
void shuffle_rows(const Shuffle& s, const T* from, T* to) {
  const int64_t r = s.r, plane = s.h * s.w;
  auto row = [&](int64_t k) {  // (image and channel, i of r, y)
    const int64_t y = k % s.h, i = k / s.h % r, c = k / (s.h * r);
    const int64_t narrow = (c * r * r + i * r) * plane + y * s.w;
    const int64_t wide = ((c * s.h + y) * r + i) * s.w * r;
    if (r == 2) {
      const int64_t second = narrow + plane;
      for (int64_t x = 0; x < s.w; ++x) {
        if constexpr (kWiden) {
          to[wide + 2 * x] = from[narrow + x], to[wide + 2 * x + 1] = from[second + x];
        } else {
          to[narrow + x] = from[wide + 2 * x], to[second + x] = from[wide + 2 * x + 1];
        }
      }
      return;
    }
    for (int64_t j = 0; j < r; ++j)
      for (int64_t x = 0; x < s.w; ++x) {
        if constexpr (kWiden) to[wide + x * r + j] = from[narrow + j * plane + x];
        else to[narrow + j * plane + x] = from[wide + x * r + j];
      }
  };
  const int64_t work = std::max<int64_t>(1, s.w * r);
  parallel_for(0, s.images * s.channels * r * s.h, std::max<int64_t>(1, kGrain / work),
               [&](int64_t b, int64_t e) {
                 for (; b < e; ++b) row(b);
               });
}

Tensor shuffled(const Tensor& self, const Shuffle& s, bool widen) {
  const bool last = keeps_channels_last(self);
  const Dims& shape = widen ? s.wide : s.narrow;
  Tensor out = empty_tensor(shape, spatial_strides(shape, last), self.dtype(), self.device());
  if (out.is_meta() || !out.numel()) return out;
  const Tensor in = with_spatial_layout(self, last);
  if (last || self.is_cuda()) {
    op::copy_(split_view(out, s, widen), split_view(in, s, !widen));
    return out;
  }
  with_item_type(int64_t(self.item_size()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (widen) shuffle_rows<T, true>(s, in.data_as<T>(), out.data_as<T>());
    else shuffle_rows<T, false>(s, in.data_as<T>(), out.data_as<T>());
  });
  return out;
}

}  // namespace

Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor) {
  expect_image(self, "pixel_shuffle");
  const int64_t r = upscale_factor, c = self.size(-3);
  if (r <= 0) runtime_error("pixel_shuffle expects a positive upscale_factor, but got ", r);
  if (r > std::numeric_limits<int32_t>::max())
    runtime_error("upscale factor is too large, (upscale_factor)^2 overflowed, got ", r);
  if (c % (r * r))
    runtime_error(
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        "upscale_factor, but input.size(-3)=",
        c, " is not divisible by ", r * r);
  return shuffled(self, shuffle_of(self, c / (r * r), self.size(-2), self.size(-1), r), true);
}

Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor) {
  expect_image(self, "pixel_unshuffle");
  const int64_t r = downscale_factor, c = self.size(-3), h = self.size(-2), w = self.size(-1);
  if (r <= 0) runtime_error("pixel_unshuffle expects a positive downscale_factor, but got ", r);
  if (h % r)
    runtime_error(
        "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=",
        h, " is not divisible by ", r);
  if (w % r)
    runtime_error(
        "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", w,
        " is not divisible by ", r);
  return shuffled(self, shuffle_of(self, c, h / r, w / r, r), false);
}

Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  if (self.dim() < 3)
    runtime_error("expects input with > 2 dims, but got input with sizes ", self.sizes());
  const int64_t c = self.size(1);
  if (groups <= 0)
    runtime_error("Number of groups to divide channels in must be positive. Value of groups: ",
                  groups);
  if (c % groups)
    runtime_error("Number of channels must be divisible by groups. Got ", c, " channels and ",
                  groups, " groups.");
  const bool volumes = self.dim() == 5 && !self.is_wrapped() && suggests_channels_last(self);
  const bool last = volumes || keeps_channels_last(self);
  const MemoryFormat format = volumes ? MemoryFormat::ChannelsLast3d
                              : last  ? MemoryFormat::ChannelsLast
                                      : MemoryFormat::Contiguous;
  if (groups == 1 || groups == c) return op::clone(self, format);
  if (last) {
    // As (N, H, W, C), which lies in memory in this order before and after.
    const Tensor pixels = op::movedim(self, Dims{1}, Dims{-1});
    const Dims shape(pixels.sizes());
    Dims split(shape);
    split[split.size() - 1] = groups;
    split.push_back(c / groups);
    const Tensor swapped = op::transpose(op::reshape(pixels, split), -2, -1);
    return op::movedim(op::reshape(swapped, shape), Dims{-1}, Dims{1});
  }
  Dims split(self.sizes());
  split[1] = groups;
  split.insert(2, c / groups);
  const Tensor swapped = op::transpose(op::reshape(self, split), 1, 2);
  return op::contiguous(op::reshape(swapped, self.sizes()), format);
}

Tensor native_channel_shuffle(const Tensor& self, int64_t groups) {
  return op::channel_shuffle(self, groups);
}

// ---- patches as columns

namespace {

struct Patches {
  Dims kernel, dilation, padding, stride;
  Patches(IntSpan kernel_size, IntSpan spacing, IntSpan pads, IntSpan steps)
      : kernel(spatial_values(kernel_size, 2, "kernel_size")),
        dilation(spatial_values(spacing, 2, "dilation")),
        padding(spatial_values(pads, 2, "padding")),
        stride(spatial_values(steps, 2, "stride")) {
    for (size_t i = 0; i < 2; ++i) {
      if (kernel[i] <= 0)
        runtime_error("kernel size should be greater than zero, but got kernel_size=",
                      IntSpan(kernel));
      if (dilation[i] <= 0)
        runtime_error("dilation should be greater than zero, but got dilation=", IntSpan(dilation));
      if (padding[i] < 0)
        runtime_error("padding should be non-negative, but got padding=", IntSpan(padding));
      if (stride[i] <= 0)
        runtime_error("stride should be greater than zero, but got stride=", IntSpan(stride));
    }
  }
  // How many patches an axis of n pixels has.
  int64_t count(size_t i, int64_t n) const {
    const int64_t room = n + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
    return room < 0 ? 0 : room / stride[i] + 1;
  }
};

ColumnAxis axis_of(int64_t in, size_t i, IntSpan kernel, IntSpan dilation, IntSpan padding,
                   IntSpan stride) {
  const int64_t room = in + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
  return {in, room / stride[i] + 1, kernel[i], stride[i], dilation[i], padding[i]};
}

}  // namespace

Tensor _im2col(const Tensor& self, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
               IntSpan stride) {
  const Spatial in = spatial_view(self, 2, false);
  const ColumnAxis h = axis_of(in.size[1], 0, kernel_size, dilation, padding, stride),
                   w = axis_of(in.size[2], 1, kernel_size, dilation, padding, stride);
  Dims shape(self.sizes().first(size_t(self.dim() - 2)));
  shape[shape.size() - 1] *= h.taps * w.taps;
  shape.push_back(h.out * w.out);
  Tensor out = empty_tensor(shape, self.dtype(), self.device());
  if (out.is_meta() || !out.numel()) return out;
  if (self.is_cuda()) device_images.columns(in.t, out, h, w, false);
  else image_to_columns(self.dtype(), in.outer, h, w, in.t.data(), out.data());
  return out;
}

Tensor _col2im(const Tensor& self, IntSpan size, IntSpan kernel_size, IntSpan dilation,
               IntSpan padding, IntSpan stride) {
  const ColumnAxis h = axis_of(size[size.size() - 2], 0, kernel_size, dilation, padding, stride),
                   w = axis_of(size[size.size() - 1], 1, kernel_size, dilation, padding, stride);
  Tensor out = empty_tensor(size, self.dtype(), self.device());
  if (out.is_meta() || !out.numel()) return out;
  const Tensor columns = with_spatial_layout(self, false);
  if (self.is_cuda()) device_images.columns(out, columns, h, w, true);
  else
    columns_to_image(self.dtype(), out.numel() / (h.in * w.in), h, w, columns.data(), out.data());
  return out;
}

Tensor im2col(const Tensor& input, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
              IntSpan stride) {
  const Patches p(kernel_size, dilation, padding, stride);
  check_spatial_input(input, 2);
  const int64_t down = p.count(0, input.size(-2)), across = p.count(1, input.size(-1));
  if (down < 1 || across < 1) {
    auto pair = [](IntSpan values) { return text('(', values[0], ", ", values[1], ')'); };
    runtime_error("Given input with spatial size ", pair(input.sizes().last(2)),
                  ", kernel_size=", pair(p.kernel), ", dilation=", pair(p.dilation),
                  ", padding=", pair(p.padding), ", calculated shape of the array of sliding ",
                  "blocks as (", down, ", ", across, "), but its components must be at least one. ",
                  "The stride is ", pair(p.stride));
  }
  return op::_im2col(input, p.kernel, p.dilation, p.padding, p.stride);
}

Tensor col2im(const Tensor& input, IntSpan output_size, IntSpan kernel_size, IntSpan dilation,
              IntSpan padding, IntSpan stride) {
  const Patches p(kernel_size, dilation, padding, stride);
  const Dims sizes = spatial_values(output_size, 2, "output_size");
  const bool batched = input.dim() == 3;
  if ((!batched && input.dim() != 2) || input.size(-1) == 0 || input.size(-2) == 0)
    runtime_error(
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
        "non-zero dimensions for input, but got: ",
        input.sizes());
  const int64_t taps = checked_numel(p.kernel), rows = input.size(-2);
  if (rows % taps)
    runtime_error("Expected size of input's dimension ", input.dim() - 2,
                  " to be divisible by the product of kernel_size, but got input.size(",
                  input.dim() - 2, ")=", rows, " and kernel_size=", IntSpan(p.kernel));
  const int64_t down = p.count(0, sizes[0]), across = p.count(1, sizes[1]);
  if (down < 1 || across < 1 || input.size(-1) != down * across)
    runtime_error("Given output_size=", IntSpan(sizes), ", kernel_size=", IntSpan(p.kernel),
                  ", dilation=", IntSpan(p.dilation), ", padding=", IntSpan(p.padding),
                  ", stride=", IntSpan(p.stride), ", expected size of input's dimension ",
                  input.dim() - 1, " to match the calculated number of sliding blocks ", down,
                  " * ", across, " = ", down * across, ", but got input.size(", input.dim() - 1,
                  ")=", input.size(-1));
  Dims shape;
  if (batched) shape.push_back(input.size(0));
  for (int64_t n : {rows / taps, sizes[0], sizes[1]}) shape.push_back(n);
  return op::_col2im(input, shape, p.kernel, p.dilation, p.padding, p.stride);
}

}  // namespace facula::kernels

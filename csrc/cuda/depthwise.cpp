#include "cuda/depthwise.h"

#include <algorithm>
#include <limits>

#include "cuda/kernel_types.h"

namespace facula::cuda {
namespace {

// One axis, as a forward convolution without gaps sees it.
struct Axis {
  int64_t in, out, taps, step, start;
  int64_t w_first, w_stride;  // elements

  Axis(ConvolutionKind kind, const ConvAxis& a)
      : in(a.in),
        out(a.out),
        taps(a.taps),
        step(a.step),
        start(a.start),
        w_first(0),
        w_stride(a.w_stride) {
    if (kind == ConvolutionKind::Forward) return;
    // Result t and tap j meet t - j - start: taps are taken in reverse order.
    std::swap(in, out);
    start = -a.start - (taps - 1);
    w_first = (taps - 1) * a.w_stride;
    w_stride = -a.w_stride;
  }
};

bool suits(ConvolutionKind kind, const Conv& v) {
  if (kind == ConvolutionKind::WeightGradient || v.in != 1 || v.out != 1 || v.groups == 1)
    return false;
  if (!is_floating(v.dtype) || item_size(v.dtype) < 2) return false;
  const ConvAxis &depth = v.axis[0], &down = v.axis[1], &across = v.axis[2];
  if (depth.in != 1 || depth.out != 1 || depth.taps != 1) return false;
  if (across.x_stride != 1 || across.y_stride != 1 || down.step != across.step) return false;
  for (const ConvAxis* a : {&down, &across})
    if (a->taps > 7 || (a->taps > 1 && a->spread != 1) || std::max(a->in, a->out) >= 1 << 28 ||
        std::abs(a->start) >= 1 << 28)
      return false;
  return down.step == 1 || (down.step == 2 && kind == ConvolutionKind::Forward);
}

}  // namespace

bool depthwise_convolution(ConvolutionKind kind, const Conv& v, int device, CuStream stream) {
  if (!suits(kind, v)) return false;
  const Axis down(kind, v.axis[1]), across(kind, v.axis[2]);
  const int64_t rows = down.out == 1 ? 1 : down.step == 1 ? 8 : 4;
  const int64_t strips = (down.out + rows - 1) / rows;
  const int64_t threads = v.batch * v.groups * strips * across.out;
  constexpr int64_t kThreads = 256;
  const int64_t blocks = (threads + kThreads - 1) / kThreads;
  if (blocks > std::numeric_limits<int32_t>::max()) return false;
  if (blocks == 0) return true;

  static auto* kernels = new KernelTable;
  KernelKey key;
  key.bits[0] = uint64_t(v.dtype) | uint64_t(down.taps) << 8 | uint64_t(across.taps) << 12 |
                uint64_t(down.step) << 16 | uint64_t(rows) << 20;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"depthwise.cuh", "facula_depthwise", {}};
    text.define("FACULA_ITEM", device_type(v.dtype));
    text.define("FACULA_COMPUTE",
                device_type(is_reduced_float(v.dtype) ? DType::Float32 : v.dtype));
    text.define("FACULA_DOWN", std::to_string(down.taps));
    text.define("FACULA_ACROSS", std::to_string(across.taps));
    text.define("FACULA_STEP", std::to_string(down.step));
    text.define("FACULA_ROWS", std::to_string(rows));
    return text;
  });
  const auto* w =
      static_cast<const char*>(v.w) + (down.w_first + across.w_first) * int64_t(item_size(v.dtype));
  ArgumentWriter arguments;
  for (const void* p : {v.x, static_cast<const void*>(w), v.bias, static_cast<const void*>(v.y)})
    arguments.put(p);
  for (int64_t n : {v.x_batch, v.x_channel, v.axis[1].x_stride, v.y_batch, v.y_channel,
                    v.axis[1].y_stride, v.w_group, down.w_stride, across.w_stride, threads})
    arguments.put(n);
  for (int64_t n : {v.groups, down.in, across.in, down.out, across.out, strips})
    arguments.put(uint32_t(n));
  for (int64_t n : {down.start, across.start}) arguments.put(int32_t(n));
  launch_kernel(function, {.grid_x = unsigned(blocks), .block_x = unsigned(kThreads)}, stream,
                arguments.data());
  return true;
}

}  // namespace facula::cuda

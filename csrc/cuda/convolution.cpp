#include "cuda/convolution.h"

#include <algorithm>

#include "cuda/cudnn.h"
#include "cuda/depthwise.h"
#include "cuda/kernel_types.h"
#include "cuda/translate.h"

namespace facula::cuda {
namespace {

void own_convolution(ConvolutionKind kind, const Conv& v, int device, CuStream stream) {
  static auto* kernels = new KernelTable;
  const DType compute = is_reduced_float(v.dtype) ? DType::Float32 : v.dtype;
  KernelKey key;
  key.bits[0] = uint64_t(v.dtype) | uint64_t(kind) << 8;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"convolution.cuh", "facula_convolution", {}};
    text.define("FACULA_ITEM", device_type(v.dtype));
    text.define("FACULA_COMPUTE", device_type(compute));
    text.define("FACULA_KIND", std::to_string(int(kind)));
    return text;
  });
  int64_t pixels = v.batch;  // of the tensor that is written, or of y
  for (const ConvAxis& a : v.axis) pixels *= kind == ConvolutionKind::Transposed ? a.in : a.out;
  const bool weight = kind == ConvolutionKind::WeightGradient;
  const int64_t taps = v.in * v.taps(), columns = weight ? taps : pixels,
                depth = weight ? pixels : taps;
  ArgumentWriter arguments;
  for (const void* p : {v.x, v.w, v.bias, static_cast<const void*>(v.y)}) arguments.put(p);
  for (int64_t n : {v.in, v.out, v.x_batch, v.x_channel, v.w_group, v.w_out, v.w_in, v.y_batch,
                    v.y_channel, columns, depth})
    arguments.put(n);
  for (const ConvAxis& a : v.axis)
    for (int64_t n :
         {a.out, a.in, a.taps, a.step, a.spread, a.start, a.x_stride, a.w_stride, a.y_stride})
      arguments.put(n);
  constexpr int64_t kTile = 64, kMost = 65535;
  const int64_t rows = (v.out + kTile - 1) / kTile;
  if (rows > kMost || v.groups > kMost)
    throw CudaError(
        "convolution: more than 65535 groups, or 4 million output channels, are not "
        "supported on CUDA devices");
  launch_kernel(function,
                {.grid_x = unsigned((columns + kTile - 1) / kTile),
                 .grid_y = unsigned(rows),
                 .grid_z = unsigned(v.groups),
                 .block_x = 256},
                stream, arguments.data());
}

// y + bias, in place.
void add_bias(const Conv& v, bool transposed, int device, CuStream stream) {
  ElementwiseLaunch launch;
  launch.name = "convolution_bias";
  launch.body = "a + b";
  launch.inputs = 2;
  launch.compute = is_reduced_float(v.dtype) ? DType::Float32 : v.dtype;
  launch.ndim = 5;
  launch.ptrs[0] = launch.ptrs[1] = v.y;
  launch.ptrs[2] = const_cast<void*>(v.bias);
  const int64_t item = int64_t(item_size(v.dtype)), channels = v.groups * v.out;
  const int64_t sizes[] = {v.batch, channels}, strides[] = {v.y_batch, v.y_channel};
  for (int k = 0; k < 3; ++k) launch.dtypes[k] = v.dtype;
  for (int d = 0; d < 5; ++d) {
    const ConvAxis* a = d < 2 ? nullptr : &v.axis[d - 2];
    launch.sizes[d] = !a ? sizes[d] : transposed ? a->in : a->out;
    launch.strides[0][d] = launch.strides[1][d] = (a ? a->y_stride : strides[d]) * item;
    launch.strides[2][d] = d == 1 ? item : 0;
  }
  launch_elementwise(launch, device, stream);
}

void run(ConvolutionKind kind, const Conv& v, int dims, Device on) {
  const int device = on.index;
  CuStream stream = current_stream(device);
  use_device(device);
  if (depthwise_convolution(kind, v, device, stream)) return;
  if (!cudnn_convolution(kind, v, dims, device, stream))
    return own_convolution(kind, v, device, stream);
  if (v.bias && kind != ConvolutionKind::WeightGradient)
    add_bias(v, kind == ConvolutionKind::Transposed, device, stream);
}

}  // namespace

void register_convolution() {
  device_convolution.run.set(translate<run>);
}

}  // namespace facula::cuda

#include "cuda/normalization.h"

#include <algorithm>
#include <climits>

#include "cuda/allocator.h"
#include "cuda/kernel_types.h"
#include "cuda/line.h"
#include "cuda/translate.h"
#include "op/hooks/normalization.h"
#include "op/ops/copying.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"

namespace facula::cuda {
namespace {

const void* pointer(const Tensor& t) {
  return t.defined() ? t.data() : nullptr;
}

// ---- rows

struct RowVariant {
  DType item, grad, parameter, compute;
  bool weight, bias, centred;
  int grouped;  // FACULA_GROUPED

  uint64_t bits() const {
    return uint64_t(item) | uint64_t(grad) << 5 | uint64_t(parameter) << 10 |
           uint64_t(compute) << 15 | uint64_t(weight) << 20 | uint64_t(bias) << 21 |
           uint64_t(centred) << 22 | uint64_t(grouped) << 23;
  }
  void define(KernelText& text) const {
    text.define("FACULA_ITEM", device_type(item));
    text.define("FACULA_GRAD", device_type(grad));
    text.define("FACULA_PARAMETER", device_type(parameter));
    text.define("FACULA_WEIGHT", weight ? "1" : "0");
    text.define("FACULA_BIAS", bias ? "1" : "0");
    text.define("FACULA_CENTRED", centred ? "1" : "0");
    text.define("FACULA_GROUPED", std::to_string(grouped));
  }
};

int64_t elements_of_channel(const NormalizedRows& shape) {
  return shape.channels > 0 ? shape.n / shape.channels : 1;
}

RowVariant variant_of(const NormalizedRows& shape, const Tensor& in, const Tensor& grad,
                      const Tensor& weight, const Tensor& bias, DType compute,
                      const LinePlan& plan) {
  const DType parameter = weight.defined() ? weight.dtype()
                          : bias.defined() ? bias.dtype()
                                           : in.dtype();
  int grouped = 0;
  if (shape.groups > 0) grouped = elements_of_channel(shape) % plan.vector() == 0 ? 2 : 1;
  return {in.dtype(),       grad.dtype(),   parameter,     compute,
          weight.defined(), bias.defined(), shape.centred, grouped};
}

CuFunction line_kernel(const char* file, const char* name, const LinePlan& plan,
                       const RowVariant& v, int device) {
  static auto* kernels = new KernelTable;
  use_device(device);
  KernelKey key;
  key.text[0] = file;
  key.bits[0] = plan.bits() | v.bits() << 16;
  return kernels->find(key).on(device, [&] {
    KernelText text{file, name, {}};
    plan.define(text, v.compute);
    v.define(text);
    return text;
  });
}

void write_parameters(const NormalizedRows& shape, const Tensor& weight, const Tensor& bias,
                      ArgumentWriter& out) {
  if (shape.groups > 0 && shape.n > INT_MAX)
    throw CudaError("group_norm: groups of more than 2^31 - 1 elements are not supported");
  out.put(pointer(weight));
  out.put(pointer(bias));
  out.put(shape.groups);
  out.put(shape.channels);
  out.put(elements_of_channel(shape));
}

void rows(const NormalizedRows& shape, const Tensor& in, const Tensor& weight, const Tensor& bias,
          double eps, const Tensor& mean, const Tensor& rstd, const Tensor& out) {
  const int device = in.device().index;
  // Parameters by channel are read one by one.
  const Tensor none, &w = shape.groups ? none : weight, &b = shape.groups ? none : bias;
  const LinePlan plan(shape.rows, shape.n, 1, 1, {&in, &out, &w, &b});
  CuFunction function =
      line_kernel("norm_rows.cuh", "facula_norm_rows", plan,
                  variant_of(shape, in, in, weight, bias, rstd.dtype(), plan), device);
  ArgumentWriter arguments;
  plan.write(arguments);
  write_parameters(shape, weight, bias, arguments);
  arguments.put(pointer(in));
  arguments.put(pointer(out));
  arguments.put(shape.centred ? pointer(mean) : nullptr);
  arguments.put(pointer(rstd));
  arguments.put(eps);
  launch_kernel(function, plan.launch(), current_stream(device), arguments.data());
}

void input_gradient(const NormalizedRows& shape, const Tensor& grad, const Tensor& in,
                    const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                    const Tensor& out) {
  const int device = in.device().index;
  const Tensor none, &w = shape.groups ? none : weight;
  const LinePlan plan(shape.rows, shape.n, 1, 2, {&in, &grad, &out, &w});
  CuFunction function =
      line_kernel("norm_rows_grad.cuh", "facula_norm_rows_grad", plan,
                  variant_of(shape, in, grad, weight, none, rstd.dtype(), plan), device);
  ArgumentWriter arguments;
  plan.write(arguments);
  write_parameters(shape, weight, none, arguments);
  arguments.put(pointer(in));
  arguments.put(pointer(grad));
  arguments.put(shape.centred ? pointer(mean) : nullptr);
  arguments.put(pointer(rstd));
  arguments.put(pointer(out));
  launch_kernel(function, plan.launch(), current_stream(device), arguments.data());
}

// ---- sums over rows and over channels

enum class Sums { Moments, ByChannel, ByRow, ByRowRms };

struct SumsKernel {
  const char *file, *name;
  Sums kind;
  DType item, grad, compute;
  int vector;
  bool wide;

  CuFunction on(int device) const {
    use_device(device);
    return find().on(device, [&] { return text(); });
  }
  void prepare(int device) const {
    find().prepare(device, [&] { return text(); });
  }

 private:
  Kernel& find() const {
    static auto* kernels = new KernelTable;
    KernelKey key;
    key.text[0] = file;
    key.bits[0] = uint64_t(kind) | uint64_t(item) << 2 | uint64_t(grad) << 7 |
                  uint64_t(compute) << 12 | uint64_t(vector) << 17 | uint64_t(wide) << 22;
    return kernels->find(key);
  }
  KernelText text() const {
    KernelText text{file, name, {}};
    text.define("FACULA_KIND", std::to_string(int(kind)));
    text.define("FACULA_ITEM", device_type(item));
    text.define("FACULA_GRAD", device_type(grad));
    text.define("FACULA_COMPUTE", device_type(compute));
    text.define("FACULA_VECTOR", std::to_string(vector));
    text.define("FACULA_INDEX", wide ? "uint64" : "uint32");
    return text;
  }
};

// How many blocks share the work of one result, so that `results` blocks fill the device.
int64_t parts_for(int64_t work, int64_t least, int64_t results, int device) {
  const int64_t wanted = int64_t(device_properties(device).multiprocessors) * 8;
  const int64_t parts = std::min((work + least - 1) / least, (wanted + results - 1) / results);
  return std::clamp<int64_t>(parts, 1, 1024);
}

DType sum_dtype(Sums kind, DType compute) {
  return kind == Sums::Moments ? DType::Float64 : compute;
}

SumsKernel column_sums_kernel(Sums kind, int64_t columns, const Tensor& in, const Tensor& grad,
                              DType compute) {
  return {"column_sums.cuh",
          "facula_column_sums",
          kind,
          in.dtype(),
          grad.defined() ? grad.dtype() : in.dtype(),
          compute,
          vector_width(columns, {&in, &grad}),
          false};
}

// (2, parts, columns) of a dense matrix.
Tensor column_sums(Sums kind, int64_t rows, int64_t columns, const Tensor& in, const Tensor& grad,
                   const Tensor& mean, const Tensor& rstd, DType compute) {
  const int device = in.device().index;
  const SumsKernel kernel = column_sums_kernel(kind, columns, in, grad, compute);
  constexpr int64_t kAcross = 32, kDown = 8;
  const int64_t at_once = kAcross * kernel.vector, across = (columns + at_once - 1) / at_once;
  const int64_t parts = parts_for(rows, kDown * 4, across, device);
  const int64_t share = (rows + parts - 1) / parts;
  Tensor out = empty_tensor(Dims{2, parts, columns}, sum_dtype(kind, compute), in.device());
  CuFunction function = kernel.on(device);
  ArgumentWriter arguments;
  for (const Tensor* t : {&in, &grad, &mean, &rstd}) arguments.put(pointer(*t));
  arguments.put(out.data());
  for (int64_t n : {rows, columns, share}) arguments.put(n);
  launch_kernel(function,
                {.grid_x = unsigned(across),
                 .grid_y = unsigned(parts),
                 .block_x = unsigned(kAcross),
                 .block_y = unsigned(kDown)},
                current_stream(device), arguments.data());
  return out;
}

// The same of a dense (batch, channels, inner).
Tensor channel_sums(Sums kind, const NormalizedChannels& s, const Tensor& in, const Tensor& grad,
                    const Tensor& mean, DType compute) {
  const int device = in.device().index;
  const int vector = vector_width(s.inner, {&in, &grad});
  constexpr int64_t kThreads = 256;
  const int64_t run = s.inner / vector, loads = s.batch * run;
  const bool wide = loads > INT_MAX;
  const int64_t parts = parts_for(loads, kThreads * 4, s.channels, device);
  const int64_t share = (loads + parts - 1) / parts;
  Tensor out = empty_tensor(Dims{2, parts, s.channels}, sum_dtype(kind, compute), in.device());
  const SumsKernel kernel{"channel_sums.cuh",
                          "facula_channel_sums",
                          kind,
                          in.dtype(),
                          grad.defined() ? grad.dtype() : in.dtype(),
                          compute,
                          vector,
                          wide};
  CuFunction function = kernel.on(device);
  ArgumentWriter arguments;
  for (const Tensor* t : {&in, &grad, &mean}) arguments.put(pointer(*t));
  arguments.put(out.data());
  for (int64_t n : {loads, share, s.channels * s.inner, s.inner}) arguments.put(n);
  if (wide) arguments.put<uint64_t>(uint64_t(run));
  else arguments.put(divider(uint32_t(run)));
  launch_kernel(
      function,
      {.grid_x = unsigned(s.channels), .grid_y = unsigned(parts), .block_x = unsigned(kThreads)},
      current_stream(device), arguments.data());
  return out;
}

void rows_grad(const NormalizedRows& shape, const Tensor& grad, const Tensor& in,
               const Tensor& mean, const Tensor& rstd, const Tensor& weight,
               const Tensor& input_grad, const Tensor& weight_grad, const Tensor& bias_grad) {
  const DType compute = rstd.dtype();
  const Sums kind = shape.centred ? Sums::ByRow : Sums::ByRowRms;
  const bool parameters = weight_grad.defined() || bias_grad.defined();
  if (input_grad.defined()) {
    if (parameters && shape.groups == 0)  // both kernels are compiled at once
      column_sums_kernel(kind, shape.n, in, grad, compute).prepare(in.device().index);
    input_gradient(shape, grad, in, mean, rstd, weight, input_grad);
  }
  if (!parameters) return;
  const Tensor none;
  Tensor sums;  // (2, parts, parameters)
  if (shape.groups == 0) {
    sums = column_sums(kind, shape.rows, shape.n, in, grad, mean, rstd, compute);
  } else {
    const int device = in.device().index;
    const int64_t lines = shape.rows * shape.channels;
    sums = empty_tensor(Dims{2, shape.rows / shape.groups, shape.groups * shape.channels}, compute,
                        in.device());
    const LinePlan plan(lines, shape.n / shape.channels, 1, 2, {&in, &grad});
    CuFunction function = line_kernel("norm_line_sums.cuh", "facula_norm_line_sums", plan,
                                      variant_of(shape, in, in, none, none, compute, plan), device);
    ArgumentWriter arguments;
    plan.write(arguments);
    for (const Tensor* t : {&in, &grad, &mean, &rstd}) arguments.put(pointer(*t));
    arguments.put(sums.data());
    arguments.put(shape.channels);
    launch_kernel(function, plan.launch(), current_stream(device), arguments.data());
  }
  const Tensor whole = op::sum_dim(sums, Dims{1});
  if (bias_grad.defined())
    op::copy_(bias_grad, op::reshape(op::select(whole, 0, 0), bias_grad.sizes()));
  if (weight_grad.defined())
    op::copy_(weight_grad, op::reshape(op::select(whole, 0, 1), weight_grad.sizes()));
}

// ---- channels

// What each channel's sums mean.
struct ChannelResults {
  Tensor mean, rstd, other, slope, scale, weight_grad, bias_grad;
};

void channel_moments(bool derivative, const NormalizedChannels& s, const Tensor& sums,
                     const Tensor& in, const Tensor& weight, double eps, const ChannelResults& r) {
  static auto* kernels = new KernelTable;
  const int device = in.device().index;
  const DType compute = r.rstd.dtype(), parameter = weight.defined() ? weight.dtype() : in.dtype();
  KernelKey key;
  key.bits[0] = uint64_t(in.dtype()) | uint64_t(parameter) << 5 | uint64_t(compute) << 10 |
                uint64_t(weight.defined()) << 15 | uint64_t(derivative) << 16;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"channel_moments.cuh", "facula_channel_moments", {}};
    text.define("FACULA_KIND", derivative ? "1" : "0");
    text.define("FACULA_ITEM", device_type(in.dtype()));
    text.define("FACULA_PARAMETER", device_type(parameter));
    text.define("FACULA_WEIGHT", weight.defined() ? "1" : "0");
    text.define("FACULA_COMPUTE", device_type(compute));
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(pointer(sums));
  arguments.put(pointer(in));
  arguments.put(s.channels_last ? int64_t(1) : s.inner);
  arguments.put(pointer(weight));
  for (const Tensor* t :
       {&r.mean, &r.rstd, &r.other, &r.slope, &r.scale, &r.weight_grad, &r.bias_grad})
    arguments.put(pointer(*t));
  for (int64_t n : {s.channels, sums.size(1), s.batch * s.inner}) arguments.put(n);
  arguments.put(eps);
  constexpr unsigned kChannels = 8;
  launch_kernel(function,
                {.grid_x = unsigned((s.channels + kChannels - 1) / kChannels),
                 .block_x = 32,
                 .block_y = kChannels},
                current_stream(device), arguments.data());
}

// A formula over tensors of the whole shape and tensors with one element for each channel.
void by_channel(const NormalizedChannels& s, const char* name, const char* body, DType compute,
                const Tensor& out, std::initializer_list<const Tensor*> whole,
                std::initializer_list<const Tensor*> channel) {
  ElementwiseLaunch launch;
  launch.name = name;
  launch.body = body;
  launch.compute = compute;
  launch.ndim = 3;
  const int at = s.channels_last ? 2 : 1;
  const int64_t sizes[] = {s.batch, s.channels_last ? s.inner : s.channels,
                           s.channels_last ? s.channels : s.inner};
  std::copy(sizes, sizes + 3, launch.sizes);
  int operands = 0;
  auto add = [&](const Tensor& t, bool full) {
    const int64_t item = int64_t(t.item_size());
    launch.ptrs[operands] = t.data();
    launch.dtypes[operands] = t.dtype();
    int64_t* strides = launch.strides[operands++];
    strides[0] = full ? sizes[1] * sizes[2] * item : 0;
    strides[1] = full ? sizes[2] * item : at == 1 ? item : 0;
    strides[2] = full || at == 2 ? item : 0;
  };
  add(out, true);
  for (const Tensor* t : whole) add(*t, true);
  for (const Tensor* t : channel) add(*t, false);
  launch.inputs = operands - 1;
  const int device = out.device().index;
  launch_elementwise(launch, device, current_stream(device));
}

Tensor channel_vector(const NormalizedChannels& s, DType dtype, Device device) {
  return empty_tensor(Dims{s.channels}, dtype, device);
}

void channels(const NormalizedChannels& s, const Tensor& in, const Tensor& weight,
              const Tensor& bias, double eps, const Tensor& mean, const Tensor& rstd,
              const Tensor& variance, const Tensor& out) {
  const DType compute = rstd.dtype();
  const Tensor none;
  const Tensor sums = s.channels_last ? column_sums(Sums::Moments, s.batch * s.inner, s.channels,
                                                    in, none, none, none, compute)
                                      : channel_sums(Sums::Moments, s, in, none, none, compute);
  ChannelResults results{.mean = mean, .rstd = rstd, .other = variance};
  results.scale = channel_vector(s, compute, in.device());
  channel_moments(false, s, sums, in, weight, eps, results);
  if (bias.defined())
    by_channel(s, "batch_norm", "(a - b) * c + d", compute, out, {&in},
               {&mean, &results.scale, &bias});
  else by_channel(s, "batch_norm", "(a - b) * c", compute, out, {&in}, {&mean, &results.scale});
}

void channels_grad(const NormalizedChannels& s, const Tensor& grad, const Tensor& in,
                   const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                   const Tensor& input_grad, const Tensor& weight_grad, const Tensor& bias_grad) {
  const DType compute = rstd.dtype();
  const Tensor none;
  const Tensor sums = s.channels_last ? column_sums(Sums::ByChannel, s.batch * s.inner, s.channels,
                                                    in, grad, mean, none, compute)
                                      : channel_sums(Sums::ByChannel, s, in, grad, mean, compute);
  ChannelResults results{.rstd = rstd, .weight_grad = weight_grad, .bias_grad = bias_grad};
  for (Tensor* t : {&results.other, &results.slope, &results.scale})
    *t = channel_vector(s, compute, in.device());
  channel_moments(true, s, sums, in, weight, 0, results);
  if (input_grad.defined())
    by_channel(s, "batch_norm_grad", "(a - d - (b - c) * e) * f", compute, input_grad, {&grad, &in},
               {&mean, &results.other, &results.slope, &results.scale});
}

void scale_channels(const NormalizedChannels& s, const Tensor& in, const Tensor& scale,
                    const Tensor& shift, const Tensor& out) {
  const DType compute = in.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  if (shift.defined())
    by_channel(s, "batch_norm", "a * b + c", compute, out, {&in}, {&scale, &shift});
  else by_channel(s, "batch_norm", "a * b", compute, out, {&in}, {&scale});
}

}  // namespace

void register_normalization() {
  device_normalization.rows.set(translate<rows>);
  device_normalization.rows_grad.set(translate<rows_grad>);
  device_normalization.channels.set(translate<channels>);
  device_normalization.channels_grad.set(translate<channels_grad>);
  device_normalization.scale_channels.set(translate<scale_channels>);
}

}  // namespace facula::cuda

#include "cuda/images.h"

#include <vector>

#include "cpu/columns.h"
#include "cpu/max_pool.h"
#include "cpu/positions.h"
#include "cpu/resample.h"
#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/kernel_types.h"
#include "cuda/table_cache.h"
#include "cuda/translate.h"
#include "op/hooks/images.h"
#include "op/settings.h"

namespace facula::cuda {
namespace {

constexpr int64_t kThreads = 256;

void write_shape(const int64_t* size, int64_t inner, ArgumentWriter& out) {
  for (int d = 0; d < 3; ++d) out.put(size[d]);
  out.put(inner);
}
void write_shape(const ImageTensor& image, ArgumentWriter& out) {
  write_shape(image.size, image.inner, out);
}

// One thread for each of `count` elements.
void launch(CuFunction function, int64_t count, int device, ArgumentWriter& arguments) {
  if (count == 0) return;
  launch_kernel(function,
                {.grid_x = unsigned((count + kThreads - 1) / kThreads), .block_x = kThreads},
                current_stream(device), arguments.data());
}

using Defines = std::initializer_list<std::pair<const char*, std::string>>;

// `file` identifies a literal; the bits are all that the macros depend on.
CuFunction kernel_of(const char* file, const char* name, uint64_t bits, Defines defines,
                     int device) {
  static auto* kernels = new KernelTable;
  use_device(device);
  KernelKey key;
  key.text[0] = file;
  key.bits[0] = bits;
  return kernels->find(key).on(device, [&] {
    KernelText text{file, name, {}};
    for (const auto& [macro, value] : defines) text.define(macro, value);
    return text;
  });
}

DType sum_type(DType dtype) {
  return dtype == DType::Float64 ? DType::Float64 : DType::Float32;
}

// ---- pooling

void max_pool(MaxPoolKind kind, const MaxPool& p, const Tensor& x, const Tensor& y,
              const Tensor& taps) {
  const Tensor& any = taps.defined() ? taps : y;
  const int device = any.device().index;
  // Positions need no elements; elements that are only moved would do with any type of their size.
  const DType item = kind == MaxPoolKind::Positions ? DType::Float32 : p.dtype;
  CuFunction function =
      kernel_of("max_pool.cuh", "facula_max_pool",
                uint64_t(item) | uint64_t(taps.dtype()) << 5 | uint64_t(kind) << 10,
                {{"FACULA_ITEM", device_type(item)},
                 {"FACULA_TAP", device_type(taps.dtype())},
                 {"FACULA_KIND", std::to_string(int(kind))}},
                device);
  int64_t in[3], out[3];
  for (int d = 0; d < 3; ++d) in[d] = p.axis[d].in, out[d] = p.axis[d].out;
  const int64_t count =
      p.outer * p.inner * (kind == MaxPoolKind::Back ? p.in_pixels() : p.out_pixels());
  const bool positions = kind == MaxPoolKind::Positions;
  ArgumentWriter arguments;
  arguments.put<void*>(x.defined() ? x.data() : nullptr);
  arguments.put<void*>(positions ? nullptr : y.data());
  arguments.put<void*>(taps.data());
  arguments.put<void*>(positions ? y.data() : nullptr);
  arguments.put(count);
  write_shape(in, p.inner, arguments);
  write_shape(out, p.inner, arguments);
  for (const PoolAxis& a : p.axis)
    for (int64_t n : {a.taps, a.step, a.spread, a.pad}) arguments.put(n);
  launch(function, count, device, arguments);
}

void window_max(const ImageTensor& in, const ImageTensor& values, const Tensor& positions,
                IntSpan kernel, const Tensor& samples) {
  const int device = in.t.device().index;
  const bool random = samples.defined(), narrow = in.t.dtype() != DType::Float64;
  CuFunction function = kernel_of("window_max.cuh", "facula_window_max",
                                  uint64_t(in.t.dtype()) | uint64_t(random) << 5,
                                  {{"FACULA_ITEM", device_type(in.t.dtype())},
                                   {"FACULA_KIND", random ? "1" : "0"},
                                   {"FACULA_NARROW", narrow ? "1" : "0"}},
                                  device);
  const int64_t count = values.t.numel(), dims = int64_t(kernel.size());
  ArgumentWriter arguments;
  arguments.put<const void*>(in.t.data());
  arguments.put<void*>(values.t.data());
  arguments.put<void*>(positions.data());
  arguments.put<const void*>(random ? samples.data() : nullptr);
  arguments.put(count);
  write_shape(in, arguments);
  write_shape(values, arguments);
  for (int64_t d = 0; d < 3; ++d)
    arguments.put(d < 3 - dims ? int64_t(1) : kernel[size_t(d - (3 - dims))]);
  arguments.put(int32_t(dims));
  launch(function, count, device, arguments);
}

void sum_by_positions(const ImageTensor& grad, const Tensor& positions, const ImageTensor& out) {
  const int device = grad.t.device().index;
  CuStream stream = current_stream(device);
  const DType item = grad.t.dtype(), sum = sum_type(item);
  const bool direct = out.t.dtype() == sum;
  const size_t bytes = size_t(out.t.numel()) * item_size(sum);
  Scratch scratch(direct ? 0 : bytes, device, stream);
  void* sums = direct ? out.t.data() : scratch.get();
  set_bytes(sums, 0, bytes, device, stream);
  const bool in_order = settings.deterministic;
  const int64_t count = in_order ? out.t.numel() : grad.t.numel();
  CuFunction function = kernel_of("sum_by_positions.cuh", "facula_sum_by_positions",
                                  uint64_t(item) | uint64_t(in_order) << 5,
                                  {{"FACULA_ITEM", device_type(item)},
                                   {"FACULA_COMPUTE", device_type(sum)},
                                   {"FACULA_KIND", in_order ? "1" : "0"}},
                                  device);
  ArgumentWriter arguments;
  arguments.put<const void*>(grad.t.data());
  arguments.put<const void*>(positions.data());
  arguments.put(sums);
  arguments.put(count);
  arguments.put(out.size[0] * out.size[1] * out.size[2] * out.inner);
  write_shape(grad, arguments);
  write_shape(out, arguments);
  launch(function, count, device, arguments);
  if (direct) return;
  StridedCopy copy;
  copy.to = out.t.data();
  copy.from = sums;
  copy.to_dtype = out.t.dtype();
  copy.from_dtype = sum;
  copy.ndim = 1;
  copy.sizes[0] = out.t.numel();
  copy.to_strides[0] = int64_t(out.t.item_size());
  copy.from_strides[0] = int64_t(item_size(sum));
  copy_strided(copy, device, stream);
}

// ---- sums and choices along axes

template <class To, class From>
const void* table(const std::vector<From>& values, int device) {
  const std::vector<To> narrow(values.begin(), values.end());
  return device_table(narrow.data(), narrow.size() * sizeof(To), device);
}

void resample(const ImageTensor& in, const ResampleTable* tables, const ImageTensor& out) {
  const int device = in.t.device().index;
  use_device(device);
  const DType item = in.t.dtype(), compute = sum_type(item);
  CuFunction function = kernel_of(
      "resample.cuh", "facula_resample", uint64_t(item),
      {{"FACULA_ITEM", device_type(item)}, {"FACULA_COMPUTE", device_type(compute)}}, device);
  ArgumentWriter arguments;
  arguments.put<const void*>(in.t.data());
  arguments.put<void*>(out.t.data());
  arguments.put(out.t.numel());
  write_shape(in, arguments);
  write_shape(out, arguments);
  for (int d = 0; d < 3; ++d) {
    const ResampleTable& t = tables[d];
    arguments.put(table<int32_t>(t.start, device));
    arguments.put(table<int32_t>(t.count, device));
    arguments.put(compute == DType::Float64 ? table<double>(t.weight, device)
                                            : table<float>(t.weight, device));
    arguments.put(t.width);
  }
  launch(function, out.t.numel(), device, arguments);
}

CuFunction positions_kernel(DType item, bool back, int device) {
  return kernel_of("positions.cuh", "facula_positions", uint64_t(item) | uint64_t(back) << 5,
                   {{"FACULA_ITEM", device_type(item)}, {"FACULA_KIND", back ? "1" : "0"}}, device);
}

void run_positions(bool back, const ImageTensor& in, const AxisPositions* axis,
                   const ImageTensor& out, const void* outside) {
  const int device = in.t.device().index;
  // Sums need the numbers' own type, choices only one of their size.
  const DType item = back ? in.t.dtype() : mover_type(in.t.dtype());
  CuFunction function = positions_kernel(item, back, device);
  ArgumentWriter arguments;
  arguments.put<const void*>(in.t.data());
  arguments.put<void*>(out.t.data());
  dispatch_dtype(item, [&](auto tag) {
    using Stored = typename decltype(tag)::type;
    arguments.put(outside ? *static_cast<const Stored*>(outside) : Stored{});
  });
  arguments.put(out.t.numel());
  write_shape(in, arguments);
  write_shape(out, arguments);
  for (int d = 0; d < 3; ++d) {
    if (!back) {
      arguments.put(table<int32_t>(axis[d].at, device));
      arguments.put<const void*>(nullptr);
      continue;
    }
    // For each element of the unselected side, where it went.
    std::vector<int32_t> first(size_t(axis[d].in) + 1), places;
    for (int64_t at : axis[d].at)
      if (at >= 0) ++first[size_t(at) + 1];
    for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    places.resize(size_t(first.back()));
    std::vector<int32_t> next(first.begin(), first.end() - 1);
    for (size_t t = 0; t < axis[d].at.size(); ++t)
      if (axis[d].at[t] >= 0) places[size_t(next[size_t(axis[d].at[t])]++)] = int32_t(t);
    arguments.put(table<int32_t>(places, device));
    arguments.put(table<int32_t>(first, device));
  }
  launch(function, out.t.numel(), device, arguments);
}

void select_positions(const ImageTensor& in, const AxisPositions* axis, const ImageTensor& out,
                      const void* outside) {
  run_positions(false, in, axis, out, outside);
}
void add_positions(const ImageTensor& in, const AxisPositions* axis, const ImageTensor& out) {
  run_positions(true, in, axis, out, nullptr);
}

// ---- patches

void columns(const Tensor& image, const Tensor& columns, const ColumnAxis& h, const ColumnAxis& w,
             bool back) {
  const int device = image.device().index;
  const DType item = image.dtype();
  CuFunction function =
      kernel_of("patches.cuh", "facula_patches", uint64_t(item) | uint64_t(back) << 5,
                {{"FACULA_ITEM", device_type(item)}, {"FACULA_KIND", back ? "1" : "0"}}, device);
  const int64_t count = back ? image.numel() : columns.numel();
  ArgumentWriter arguments;
  arguments.put<void*>(image.data());
  arguments.put<void*>(columns.data());
  arguments.put(count);
  for (const ColumnAxis* a : {&h, &w})
    for (int64_t n : {a->in, a->out, a->taps, a->step, a->spread, a->pad}) arguments.put(n);
  launch(function, count, device, arguments);
}

}  // namespace

void register_images() {
  device_images.max_pool.set(translate<max_pool>);
  device_images.window_max.set(translate<window_max>);
  device_images.sum_by_positions.set(translate<sum_by_positions>);
  device_images.resample.set(translate<resample>);
  device_images.select_positions.set(translate<select_positions>);
  device_images.add_positions.set(translate<add_positions>);
  device_images.columns.set(translate<columns>);
}

}  // namespace facula::cuda

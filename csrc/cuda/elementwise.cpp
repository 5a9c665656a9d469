#include "cuda/elementwise.h"

#include <algorithm>
#include <climits>

#include "cuda/kernel_types.h"

namespace facula::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kVectorBytes = 16;

// How a launch is carried out. All of it except the argument values is part of the kernel.
struct Plan {
  Layout layout;       // merged
  bool dense = false;  // no offsets to compute
  bool wide = false;   // 64-bit indices
  int vector = 1;
  int ndim = 0;  // dimensions the kernel is compiled for; 0 if dense
  int unroll = 1;
  unsigned splat = 0;  // inputs that stand still along the innermost dimension
  DType compute, result;
};

// Kernels exist for these numbers of dimensions; shapes with fewer are padded.
int dimension_class(int ndim) {
  return ndim <= 2 ? 2 : ndim <= 4 ? 4 : kKernelDims;
}

// The most elements that every operand can move at once, given addresses and strides.
int vector_width(const ElementwiseLaunch& launch, const Layout& layout, unsigned splat) {
  int widest = 1;
  for (int k = 0; k <= launch.inputs; ++k) {
    widest = std::max(widest, int(item_size(launch.dtypes[k])));
  }
  int width = std::max(1, kVectorBytes / widest);
  const int inner = layout.ndim - 1;
  for (; width > 1; width /= 2) {
    bool fits = layout.ndim == 1 || layout.sizes[inner] % width == 0;
    for (int k = 0; k <= launch.inputs && fits; ++k) {
      if (k > 0 && (splat >> (k - 1) & 1)) continue;
      const int64_t bytes = width * int64_t(item_size(launch.dtypes[k]));
      fits = reinterpret_cast<uintptr_t>(launch.ptrs[k]) % uintptr_t(bytes) == 0;
      for (int d = 0; d < inner && fits; ++d) fits = layout.strides[k][d] % bytes == 0;
    }
    if (fits) break;
  }
  return width;
}

Plan make_plan(const ElementwiseLaunch& launch) {
  Plan plan;
  plan.compute = is_reduced_float(launch.compute) ? DType::Float32 : launch.compute;
  plan.result = launch.result == DType::None ? plan.compute : launch.result;
  Layout& layout = plan.layout;
  layout.ndim = launch.ndim;
  layout.operands = launch.inputs + 1;
  std::copy_n(launch.sizes, launch.ndim, layout.sizes);
  for (int k = 0; k <= launch.inputs; ++k) {
    std::copy_n(launch.strides[k], launch.ndim, layout.strides[k]);
  }
  layout.squeeze();
  if (!launch.uses_index) layout.sort();
  layout.merge();
  if (layout.ndim == 0) {  // a single element counts as a dense row of one
    layout.ndim = 1;
    layout.sizes[0] = 1;
    for (int k = 0; k <= launch.inputs; ++k) layout.strides[k][0] = item_size(launch.dtypes[k]);
  }

  const int inner = layout.ndim - 1;
  bool dense_inner = true;
  for (int k = 0; k <= launch.inputs; ++k) {
    const int64_t stride = layout.strides[k][inner];
    if (stride == int64_t(item_size(launch.dtypes[k]))) continue;
    if (k > 0 && stride == 0) plan.splat |= 1u << (k - 1);
    else dense_inner = false;
  }
  plan.dense = dense_inner && layout.ndim == 1;
  if (dense_inner) plan.vector = vector_width(launch, layout, plan.splat);
  if (plan.vector == 1 && !plan.dense) plan.splat = 0;  // strides say it all
  plan.ndim = plan.dense ? 0 : dimension_class(layout.ndim);
  // Loads in flight hide the latency of memory: 32 bytes a thread and input, or four loads.
  plan.unroll = plan.vector * int(item_size(launch.dtypes[0])) >= 8 ? 2 : 4;
  plan.wide = !plan.dense && (layout.count() > INT_MAX || layout.reach() > INT_MAX);
  return plan;
}

KernelText text_of(const ElementwiseLaunch& launch, const Plan& plan) {
  KernelText text;
  text.file = "elementwise.cuh";
  text.entry = kernel_name(launch.name);
  text.define("FACULA_COMPUTE", device_type(plan.compute));
  text.define("FACULA_RESULT", device_type(plan.result));
  text.define("FACULA_OUT", device_type(launch.dtypes[0]));
  text.define("FACULA_INPUTS", std::to_string(launch.inputs));
  for (int k = 0; k < launch.inputs; ++k) {
    const std::string number = std::to_string(k);
    text.define(("FACULA_IN" + number).c_str(), device_type(launch.dtypes[k + 1]));
    text.define(("FACULA_ARG" + number).c_str(), launch.masks >> k & 1 ? "bool" : "T");
  }
  if (launch.numbers) {
    for (int letter = 0, k = 0; k < launch.inputs; ++letter) {
      if (launch.numbers >> letter & 1) continue;
      text.define(("FACULA_INPUT_NAME_" + std::to_string(k++)).c_str(), operand_name(letter));
    }
  }
  define_params(text, launch.params, plan.compute);
  text.define("FACULA_BODY", formula_body(launch.body));
  text.define("FACULA_VECTOR", std::to_string(plan.vector));
  text.define("FACULA_SPLAT", std::to_string(plan.splat));
  text.define("FACULA_NDIM", std::to_string(plan.ndim));
  text.define("FACULA_INDEX", plan.wide ? "uint64" : "uint32");
  text.define("FACULA_UNROLL", std::to_string(plan.unroll));
  return text;
}

KernelKey key_of(const ElementwiseLaunch& launch, const Plan& plan) {
  KernelKey key;
  key.text[0] = launch.body;
  uint64_t dtypes = 0;  // 5 bits each: eight operands, compute type, result type
  for (int k = 0; k <= launch.inputs; ++k) dtypes = dtypes << 5 | uint64_t(launch.dtypes[k]);
  key.bits[0] = (dtypes << 5 | uint64_t(plan.compute)) << 5 | uint64_t(plan.result);
  key.bits[1] = uint64_t(launch.inputs) | uint64_t(plan.vector) << 3 | uint64_t(plan.splat) << 8 |
                uint64_t(plan.ndim) << 15 | uint64_t(plan.wide) << 20 |
                uint64_t(launch.masks) << 21 | uint64_t(plan.unroll) << 29 |
                uint64_t(launch.numbers) << 32;
  key.bits[2] = param_bits(launch.params);
  return key;
}

// Vectors of work, and the argument struct of elementwise.cuh.
int64_t write_arguments(const ElementwiseLaunch& launch, const Plan& plan, ArgumentWriter& out) {
  const Layout& layout = plan.layout;
  const int64_t count = layout.count();
  const int64_t vectors = std::max<int64_t>(count / plan.vector, 1);
  out.put<int64_t>(plan.dense ? count : vectors);
  for (int k = 0; k <= launch.inputs; ++k) out.put<void*>(launch.ptrs[k]);
  write_params(launch.params, out);
  if (plan.dense) return vectors;
  auto size = [&](int d) -> int64_t {  // d counts from the innermost dimension
    if (d >= layout.ndim) return 1;
    return layout.sizes[layout.ndim - 1 - d] / (d == 0 ? plan.vector : 1);
  };
  auto stride = [&](int k, int d) -> int64_t {
    return d >= layout.ndim ? 0
                            : layout.strides[k][layout.ndim - 1 - d] * (d == 0 ? plan.vector : 1);
  };
  for (int d = 0; d < plan.ndim; ++d) {
    if (plan.wide) out.put<uint64_t>(uint64_t(size(d)));
    else out.put<Divider32>(divider(uint32_t(size(d))));
  }
  for (int k = 0; k <= launch.inputs; ++k) {
    for (int d = 0; d < plan.ndim; ++d) {
      if (plan.wide) out.put<int64_t>(stride(k, d));
      else out.put<int32_t>(int32_t(stride(k, d)));
    }
  }
  return vectors;
}

// More dimensions than kernels take remain only for shapes made on purpose: the outermost one is
// then walked on the host.
void launch_by_slices(const ElementwiseLaunch& launch, const Layout& layout, int device,
                      CuStream stream) {
  ElementwiseLaunch slice = launch;
  slice.ndim = layout.ndim - 1;
  std::copy_n(layout.sizes + 1, slice.ndim, slice.sizes);
  for (int k = 0; k <= launch.inputs; ++k) {
    std::copy_n(layout.strides[k] + 1, slice.ndim, slice.strides[k]);
  }
  for (int64_t i = 0; i < layout.sizes[0]; ++i) {
    for (int k = 0; k <= launch.inputs; ++k) {
      slice.ptrs[k] = static_cast<char*>(launch.ptrs[k]) + i * layout.strides[k][0];
    }
    launch_elementwise(slice, device, stream);
  }
}

}  // namespace

const char* operand_name(int i) {
  constexpr const char* kNames[] = {"a", "b", "c", "d", "e", "f", "g"};
  return kNames[i];
}

KernelText elementwise_text(const ElementwiseLaunch& launch) {
  return text_of(launch, make_plan(launch));
}

void launch_elementwise(const ElementwiseLaunch& launch, int device, CuStream stream) {
  for (int d = 0; d < launch.ndim; ++d) {
    if (launch.sizes[d] == 0) return;
  }
  static auto* kernels = new KernelTable;
  const Plan plan = make_plan(launch);
  if (plan.layout.ndim > kKernelDims) {
    if (launch.uses_index) {
      throw CudaError(std::string(launch.name) + ": more than " + std::to_string(kKernelDims) +
                      " dimensions that cannot be merged");
    }
    return launch_by_slices(launch, plan.layout, device, stream);
  }
  CuFunction function =
      kernels->find(key_of(launch, plan)).on(device, [&] { return text_of(launch, plan); });
  ArgumentWriter arguments;
  const int64_t vectors = write_arguments(launch, plan, arguments);
  const int64_t per_block = int64_t(kThreads) * plan.unroll;
  launch_kernel(function,
                {.grid_x = unsigned((vectors + per_block - 1) / per_block), .block_x = kThreads},
                stream, arguments.data());
}

void launch_elementwise(const ElementwiseLaunch& launch) {
  const int device = current_device();
  launch_elementwise(launch, device, current_stream(device));
}

}  // namespace facula::cuda

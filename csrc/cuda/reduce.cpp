#include "cuda/reduce.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdlib>

#include "cuda/allocator.h"
#include "cuda/kernel_types.h"

namespace facula::cuda {
namespace {

constexpr int kBlock = 256;     // threads
constexpr int kMaxLanes = 512;  // threads of one result in the inner form
constexpr int kVectorBytes = 16;

// One kernel's work.
struct Pass {
  int stage = 0;
  bool outer = false;
  bool wide = false;
  int vector = 1;
  int kept_class = 1, reduced_class = 1;
  Layout kept;     // operand 0: result, operand 1: input
  Layout reduced;  // operand 0: input
  int64_t kept_groups = 1, reduced_loads = 1, share = 1, rest = 0, out_step = 0;
  unsigned block_x = 1, block_y = 1, grid_x = 1, grid_y = 1;
  const void* in = nullptr;
  void* out = nullptr;
};

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

DType compute_of(const ReduceLaunch& launch) {
  return is_reduced_float(launch.compute) ? DType::Float32 : launch.compute;
}

int accumulator_bytes(const ReduceLaunch& launch) {
  return launch.formula.accumulator ? launch.formula.accumulator_bytes
                                    : int(item_size(compute_of(launch)));
}

int dimension_class(int ndim) {
  return ndim <= 1 ? 1 : ndim <= 4 ? 4 : kKernelDims;
}

int64_t inner_stride(const Layout& layout, int operand) {
  return layout.ndim ? std::llabs(layout.strides[operand][layout.ndim - 1]) : 0;
}

// Threads and blocks for a pass whose layouts and vector width are settled.
void choose_grid(Pass& pass, int multiprocessors) {
  const int64_t loads = pass.reduced_loads;
  int64_t loads_per_thread;
  if (pass.outer) {
    pass.block_x = unsigned(std::bit_ceil(uint64_t(std::min<int64_t>(pass.kept_groups, 32))));
    pass.block_y = kBlock / pass.block_x;
    pass.grid_x = unsigned(divide_up(pass.kept_groups, pass.block_x));
    loads_per_thread = divide_up(loads, pass.block_y);
  } else {
    // Short reductions share a warp; long ones get a block, once every lane has enough to do.
    int64_t lanes = 1;
    while (lanes < 32 && lanes * 2 < loads) lanes *= 2;
    while (lanes >= 32 && lanes < kMaxLanes && lanes * 8 < loads) lanes *= 2;
    pass.block_x = unsigned(lanes);
    pass.block_y = unsigned(lanes > 32 ? 1 : kBlock / lanes);
    pass.grid_x = unsigned(divide_up(pass.kept_groups, pass.block_y));
    loads_per_thread = divide_up(loads, lanes);
  }
  pass.grid_y = 1;
  // Too few blocks to fill the device: several share a result, and a second pass joins them.
  const int64_t threads = int64_t(pass.block_x) * pass.block_y;
  const int64_t wanted = int64_t(multiprocessors) * 2048 / threads;
  if (pass.stage != 2 && pass.grid_x * 2 <= wanted && loads_per_thread >= 16) {
    const int64_t splits = std::min<int64_t>(wanted / pass.grid_x, loads_per_thread / 8);
    pass.grid_y = unsigned(std::clamp<int64_t>(splits, 1, 65535));
  }
  pass.share = std::max<int64_t>(1, divide_up(loads, pass.grid_y));
  pass.grid_y = unsigned(std::max<int64_t>(1, divide_up(loads, pass.share)));
}

// Whether `width` elements can be loaded at once along the pass's fastest dimension.
bool can_load(const Pass& pass, int width, int item) {
  const int64_t bytes = int64_t(width) * item;
  if (reinterpret_cast<uintptr_t>(pass.in) % uintptr_t(bytes)) return false;
  auto aligned = [&](const Layout& layout, int operand, bool has_fastest) {
    for (int d = 0; d < layout.ndim - (has_fastest ? 1 : 0); ++d) {
      if (layout.strides[operand][d] % bytes) return false;
    }
    return true;
  };
  const Layout& fast = pass.outer ? pass.kept : pass.reduced;
  const int fast_operand = pass.outer ? 1 : 0;
  if (fast.ndim == 0 || fast.strides[fast_operand][fast.ndim - 1] != item) return false;
  const int64_t inner = fast.sizes[fast.ndim - 1];
  // A single reduced dimension may end in elements that fill no vector.
  if (inner % width && (pass.outer || fast.ndim > 1)) return false;
  if (inner < width) return false;
  return aligned(pass.kept, 1, pass.outer) && aligned(pass.reduced, 0, !pass.outer);
}

// Steps of `vector` elements along the fastest dimension.
void apply_vector(Pass& pass, int width) {
  pass.vector = width;
  Layout& fast = pass.outer ? pass.kept : pass.reduced;
  if (fast.ndim == 0) return;
  const int inner = fast.ndim - 1;
  if (pass.outer) pass.out_step = fast.strides[0][inner];
  else pass.rest = fast.sizes[inner] % width;
  fast.sizes[inner] /= width;
  for (int k = 0; k < fast.operands; ++k) fast.strides[k][inner] *= width;
}

void finish_pass(Pass& pass, int multiprocessors) {
  pass.kept_groups = pass.kept.count();
  pass.reduced_loads = pass.reduced.count();
  pass.kept_class = dimension_class(pass.kept.ndim);
  pass.reduced_class = dimension_class(pass.reduced.ndim);
  pass.wide = pass.kept_groups > INT_MAX || pass.reduced_loads > INT_MAX ||
              pass.kept.reach() > INT_MAX || pass.reduced.reach() > INT_MAX;
  choose_grid(pass, multiprocessors);
}

// The pass over the input; grid_y > 1 says that it only gives partial accumulators.
Pass first_pass(const ReduceLaunch& launch, int multiprocessors) {
  Pass pass;
  pass.in = launch.in;
  pass.out = launch.out;
  pass.kept.operands = 2;
  pass.reduced.operands = 1;
  for (int d = 0; d < launch.ndim; ++d) {
    Layout& layout = launch.reduced >> d & 1 ? pass.reduced : pass.kept;
    const bool is_kept = &layout == &pass.kept;
    layout.sizes[layout.ndim] = launch.sizes[d];
    layout.strides[is_kept ? 1 : 0][layout.ndim] = launch.in_strides[d];
    if (is_kept) layout.strides[0][layout.ndim] = launch.out_strides[d];
    ++layout.ndim;
  }
  for (Layout* layout : {&pass.kept, &pass.reduced}) layout->squeeze();
  // The input is what takes time, so its order counts: as first operand while sorting.
  std::swap(pass.kept.strides[0], pass.kept.strides[1]);
  pass.kept.sort();
  std::swap(pass.kept.strides[0], pass.kept.strides[1]);
  if (!launch.uses_index) pass.reduced.sort();
  pass.kept.merge();
  pass.reduced.merge();

  const int64_t along_kept = inner_stride(pass.kept, 1);
  const int64_t along_reduced = inner_stride(pass.reduced, 0);
  pass.outer = along_kept != 0 && (along_reduced == 0 || along_kept < along_reduced);

  const int item = int(item_size(launch.in_dtype));
  for (int width = std::max(1, kVectorBytes / item); width > 1; width /= 2) {
    if (can_load(pass, width, item)) {
      apply_vector(pass, width);
      break;
    }
  }
  finish_pass(pass, multiprocessors);
  return pass;
}

// From partial accumulators [split][result] to results in the first pass's order of results.
Pass second_pass(const ReduceLaunch& launch, const Pass& first, int multiprocessors) {
  const int64_t bytes = accumulator_bytes(launch);
  Pass pass;
  pass.stage = 2;
  pass.out = launch.out;
  pass.kept = first.kept;
  Layout& kept = pass.kept;
  if (first.outer && first.vector > 1) {  // groups of results become single ones again
    kept.sizes[kept.ndim - 1] *= first.vector;
    kept.strides[0][kept.ndim - 1] = first.out_step;
  }
  int64_t step = bytes;
  for (int d = kept.ndim; d-- > 0;) {
    kept.strides[1][d] = step;
    step *= kept.sizes[d];
  }
  pass.reduced.operands = 1;
  pass.reduced.ndim = 1;
  pass.reduced.sizes[0] = first.grid_y;
  pass.reduced.strides[0][0] = step;
  pass.outer = kept.count() >= 32;
  finish_pass(pass, multiprocessors);
  return pass;
}

KernelText text_of(const ReduceLaunch& launch, const Pass& pass) {
  const ReduceFormula& formula = launch.formula;
  KernelText text;
  text.file = "reduce.cuh";
  text.entry = kernel_name(launch.name) + (pass.stage == 2 ? "_final" : "");
  text.define("FACULA_COMPUTE", device_type(compute_of(launch)));
  text.define("FACULA_ACC", formula.accumulator ? formula.accumulator : "T");
  text.define("FACULA_OUT", device_type(launch.out_dtype));
  text.define("FACULA_INPUTS", "1");
  text.define("FACULA_IN0", device_type(launch.in_dtype));
  define_params(text, launch.params, compute_of(launch));
  text.define("FACULA_INIT", formula_body(formula.init));
  text.define("FACULA_MAP", formula_body(formula.map));
  text.define("FACULA_COMBINE", formula_body(formula.combine));
  text.define("FACULA_FINALISE", formula_body(formula.finalise));
  text.define("FACULA_STAGE", std::to_string(pass.stage));
  text.define("FACULA_OUTER", pass.outer ? "1" : "0");
  text.define("FACULA_VECTOR", std::to_string(pass.vector));
  text.define("FACULA_KEPT", std::to_string(pass.kept_class));
  text.define("FACULA_REDUCED", std::to_string(pass.reduced_class));
  text.define("FACULA_INDEX", pass.wide ? "uint64" : "uint32");
  text.define("FACULA_UNROLL", "4");
  return text;
}

KernelKey key_of(const ReduceLaunch& launch, const Pass& pass) {
  KernelKey key;
  key.text[0] = launch.formula.init;
  key.text[1] = launch.formula.map;
  key.text[2] = launch.formula.combine;
  key.text[3] = launch.formula.finalise;
  key.text[4] = launch.formula.accumulator;
  key.bits[0] = uint64_t(launch.in_dtype) | uint64_t(launch.out_dtype) << 5 |
                uint64_t(compute_of(launch)) << 10 | uint64_t(pass.stage) << 15 |
                uint64_t(pass.outer) << 17 | uint64_t(pass.wide) << 18 |
                uint64_t(pass.vector) << 19 | uint64_t(pass.kept_class) << 24 |
                uint64_t(pass.reduced_class) << 29;
  key.bits[1] = param_bits(launch.params);
  return key;
}

void write_strides(const Layout& layout, int operand, int dims, bool wide, ArgumentWriter& out) {
  for (int d = 0; d < dims; ++d) {  // innermost first
    const int64_t stride = d < layout.ndim ? layout.strides[operand][layout.ndim - 1 - d] : 0;
    if (wide || dims == 1) out.put<int64_t>(stride);
    else out.put<int32_t>(int32_t(stride));
  }
}

void write_sizes(const Layout& layout, int dims, bool wide, ArgumentWriter& out) {
  if (dims == 1) return;
  for (int d = 0; d < dims; ++d) {
    const int64_t size = d < layout.ndim ? layout.sizes[layout.ndim - 1 - d] : 1;
    if (wide) out.put<uint64_t>(uint64_t(size));
    else out.put<Divider32>(divider(uint32_t(std::max<int64_t>(size, 1))));
  }
}

void write_arguments(const ReduceLaunch& launch, const Pass& pass, ArgumentWriter& out) {
  out.put<const void*>(pass.in);
  out.put<void*>(pass.out);
  write_params(launch.params, out);
  for (int64_t value :
       {pass.kept_groups, pass.reduced_loads, pass.share, pass.rest, pass.out_step}) {
    out.put<int64_t>(value);
  }
  write_strides(pass.kept, 1, pass.kept_class, pass.wide, out);
  write_strides(pass.kept, 0, pass.kept_class, pass.wide, out);
  write_strides(pass.reduced, 0, pass.reduced_class, pass.wide, out);
  write_sizes(pass.kept, pass.kept_class, pass.wide, out);
  write_sizes(pass.reduced, pass.reduced_class, pass.wide, out);
}

Kernel& kernel_of(const ReduceLaunch& launch, const Pass& pass) {
  static auto* kernels = new KernelTable;
  return kernels->find(key_of(launch, pass));
}

// If its kernel has to be compiled, so is that of the pass to come, at once.
void run_pass(const ReduceLaunch& launch, const Pass& pass, int device, CuStream stream,
              const Pass* to_come = nullptr) {
  CuFunction function = kernel_of(launch, pass).on(device, [&] {
    if (to_come) {
      kernel_of(launch, *to_come).prepare(device, [&] { return text_of(launch, *to_come); });
    }
    return text_of(launch, pass);
  });
  ArgumentWriter arguments;
  write_arguments(launch, pass, arguments);
  launch_kernel(function,
                {.grid_x = pass.grid_x,
                 .grid_y = pass.grid_y,
                 .block_x = pass.block_x,
                 .block_y = pass.block_y},
                stream, arguments.data());
}

}  // namespace

void launch_reduce(const ReduceLaunch& launch, int device, CuStream stream) {
  use_device(device);
  const int multiprocessors = device_properties(device).multiprocessors;
  Pass first = first_pass(launch, multiprocessors);
  if (first.kept_groups == 0) return;
  if (first.kept.ndim > kKernelDims || first.reduced.ndim > kKernelDims) {
    throw CudaError(std::string(launch.name) + ": more than " + std::to_string(kKernelDims) +
                    " dimensions that cannot be merged; make the input contiguous first");
  }
  if (first.grid_y == 1) return run_pass(launch, first, device, stream);
  Pass second = second_pass(launch, first, multiprocessors);
  Scratch partial(size_t(second.kept.count()) * first.grid_y * size_t(accumulator_bytes(launch)),
                  device, stream);
  first.stage = 1;
  first.out = partial.get();
  second.in = partial.get();
  run_pass(launch, first, device, stream, &second);
  run_pass(launch, second, device, stream);
}

void launch_reduce(const ReduceLaunch& launch) {
  const int device = current_device();
  launch_reduce(launch, device, current_stream(device));
}

std::vector<KernelText> reduce_texts(const ReduceLaunch& launch, int multiprocessors) {
  Pass first = first_pass(launch, multiprocessors);
  if (first.grid_y == 1) return {text_of(launch, first)};
  Pass second = second_pass(launch, first, multiprocessors);
  first.stage = 1;
  return {text_of(launch, first), text_of(launch, second)};
}

}  // namespace facula::cuda

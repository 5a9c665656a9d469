#include "cuda/attention.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "cpu/attention.h"
#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/kernel_types.h"
#include "cuda/nvrtc.h"
#include "cuda/translate.h"
#include "op/hooks/attention.h"
#include "op/settings.h"

namespace facula::cuda {
namespace {

// The first three serve all devices, the others (see attention_groups.cuh) compute capability 9.0.
enum class Pass {
  Forward,
  QueryGradient,
  KeyGradient,
  ForwardByGroups,
  GradientBegin,
  GradientByGroups,
  GradientEnd
};

// Whether all matrices can be copied 16 bytes at a time.
bool aligned(const Attention& a) {
  const int64_t piece = 16 / int64_t(item_size(a.dtype));
  if (a.width % piece != 0 || a.value_width % piece != 0) return false;
  for (const HeadMatrix* m :
       {&a.q, &a.k, &a.v, &a.out, &a.grad_out, &a.grad_q, &a.grad_k, &a.grad_v}) {
    if (reinterpret_cast<uintptr_t>(m->data) % 16 != 0 || m->batch % piece != 0 ||
        m->head % piece != 0 || m->row % piece != 0)
      return false;
  }
  return true;
}

// Whether the kernels for groups of four warps can be used: their instructions are of compute
// capability 9.0 alone.
bool by_groups(const Attention& a, int device) {
  const DeviceProperties& properties = device_properties(device);
  const int64_t widest = std::max(a.width, a.value_width);
  return properties.major == 9 && properties.minor == 0 && nvrtc_target(90) == "sm_90" &&
         item_size(a.dtype) == 2 && widest > 32 && widest <= 128 && a.scale > 0 && aligned(a);
}

// How a pass is cut into tiles: registers hold the accumulators of M row tiles for each warp, or
// those of 64 rows for each group of warps.
struct Tiling {
  Pass pass;
  int64_t item;  // bytes
  int width, tiles = 1, step, split = 1, groups = 0, stages = 0;

  Tiling(Pass of, DType dtype, int64_t widest, bool masked) : pass(of), item(item_size(dtype)) {
    width = widest <= 32 ? 32 : widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
    if (pass == Pass::ForwardByGroups) {
      width = std::max(width, 64);
      // As far as registers and shared memory go; masks take many instructions.
      step = masked ? 64 : 128;
      groups = masked || width > 64 ? 2 : 3;
      stages = masked || width <= 64 ? 4 : 2;
    } else if (pass >= Pass::GradientBegin) {
      width = std::max(width, 64);
      step = 64 * 128 / width, groups = 2, stages = 3;
    } else {
      split = pass == Pass::KeyGradient && width == 256 ? 2 : 1;
      const int most_for_two = item == 4 ? 0 : pass == Pass::KeyGradient ? 64 : 128;
      tiles = width <= most_for_two ? 2 : 1;
      // Wide heads of float32 leave registers for three blocks of a multiprocessor this way.
      step = pass == Pass::Forward && width * item <= 256 ? 64 : 32;
    }
  }
  bool by_keys() const { return pass == Pass::KeyGradient || pass == Pass::GradientByGroups; }
  int64_t rows() const {  // of a block
    if (pass == Pass::GradientBegin) return 64;
    if (pass == Pass::GradientEnd) return step;
    return 64 * (groups ? groups : tiles);
  }
  unsigned threads() const {
    if (pass == Pass::GradientBegin || pass == Pass::GradientEnd) return 256;
    return 128u * unsigned(groups ? groups + 1 : split);
  }
  int64_t shared_memory() const {
    constexpr int64_t kAlignment = 1024, kFloat = sizeof(float);
    if (pass == Pass::GradientBegin || pass == Pass::GradientEnd) return 0;
    if (pass == Pass::ForwardByGroups)
      return kAlignment + 2 * (rows() + stages * step) * width * item;
    if (pass == Pass::GradientByGroups) {
      return kAlignment + 2 * (rows() + stages * step) * width * item + stages * 2 * step * kFloat +
             2 * rows() * step * item;
    }
    const int64_t own = pass == Pass::Forward ? 1 : 2;  // matrices of which a block keeps its rows
    const int64_t pitch = width + 16 / item, tile_rows = own * rows() + own * 2 * step;
    const int64_t numbers = pass == Pass::KeyGradient ? 4 * step * kFloat : 0;
    return tile_rows * pitch * item + numbers;
  }
};

// The matrix units' instructions came with compute capability 8.0. Tiles of wide heads do not fit
// into the shared memory of every such device.
bool supports(const Tensor& query, int64_t value_width) {
  const DType dtype = query.dtype();
  const int64_t widest = std::max(query.size(-1), value_width);
  const bool half = dtype == DType::Float16 || dtype == DType::BFloat16;
  if (!half && dtype != DType::Float32) return false;
  const DeviceProperties& properties = device_properties(query.device().index);
  if (properties.major < 8 || widest > (half ? 256 : 128)) return false;
  for (Pass pass : {Pass::Forward, Pass::QueryGradient, Pass::KeyGradient}) {
    const Tiling tiling(pass, dtype, widest, false);
    if (size_t(tiling.shared_memory()) > properties.shared_memory_per_block_optin) return false;
  }
  return true;
}

// Memory that lives as long as a pass.
struct Workspace {
  float* delta = nullptr;  // a number for each query, or two
  float* grad_q_sums = nullptr;
  void* counter = nullptr;
};

void write_problem(const Attention& a, const Workspace& workspace, int64_t blocks,
                   ArgumentWriter& out) {
  for (const HeadMatrix* m :
       {&a.q, &a.k, &a.v, &a.out, &a.grad_out, &a.grad_q, &a.grad_k, &a.grad_v}) {
    out.put(m->data);
    for (int64_t stride : {m->batch, m->head, m->row}) out.put(stride);
  }
  out.put(a.mask);
  for (int64_t n : {a.mask_batch, a.mask_head, a.mask_row, a.mask_column}) out.put(n);
  out.put(a.logsumexp);
  out.put(workspace.delta);
  out.put(workspace.grad_q_sums);
  out.put(workspace.counter);
  for (int64_t n : {blocks, a.heads, a.key_heads, a.queries, a.keys, a.width, a.value_width})
    out.put(n);
  out.put(float(a.scale));
}

// Tiles of rows in all heads.
int64_t count_blocks(const Attention& a, const Tiling& tiling) {
  const int64_t rows = tiling.by_keys() ? a.keys : a.queries,
                heads = a.batch * (tiling.by_keys() ? a.key_heads : a.heads);
  return (rows + tiling.rows() - 1) / tiling.rows() * heads;
}

Tiling tiling_of(Pass pass, const Attention& a) {
  return {pass, a.dtype, std::max(a.width, a.value_width), a.mask != nullptr};
}

struct Template {
  const char *file, *name;
};
const Template& template_of(Pass pass) {
  static constexpr Template kTemplates[] = {
      {"attention_forward.cuh", "facula_attention"},
      {"attention_query_grad.cuh", "facula_attention_query_grad"},
      {"attention_key_grad.cuh", "facula_attention_key_grad"},
      {"attention_forward_groups.cuh", "facula_attention"},
      {"attention_grad_begin.cuh", "facula_attention_grad_begin"},
      {"attention_grad_groups.cuh", "facula_attention_grad"},
      {"attention_grad_end.cuh", "facula_attention_grad_end"},
  };
  return kTemplates[int(pass)];
}

// What a pass's kernel knows of the problem when it is compiled.
struct Variant {
  bool causal, whole;
  int mask;

  Variant(Pass pass, const Attention& a) {
    const bool of_queries = pass == Pass::GradientBegin || pass == Pass::GradientEnd;
    causal = a.causal && !of_queries;
    whole = aligned(a);
    mask = !a.mask || of_queries ? 0 : a.mask_is_bool ? 1 : 2;
  }
};

Kernel& kernel_of(const Tiling& tiling, const Attention& a) {
  static auto* kernels = new KernelTable;
  const Variant variant(tiling.pass, a);
  KernelKey key;
  key.text[0] = template_of(tiling.pass).file;
  key.bits[0] = uint64_t(a.dtype) | uint64_t(tiling.width) << 8 | uint64_t(variant.causal) << 20 |
                uint64_t(variant.mask) << 21 | uint64_t(variant.whole) << 23;
  return kernels->find(key);
}

KernelText text_of(const Tiling& tiling, const Attention& a) {
  const Variant variant(tiling.pass, a);
  const Template& chosen = template_of(tiling.pass);
  KernelText text{chosen.file, chosen.name, {}, tiling.groups != 0};
  text.define("FACULA_ITEM", device_type(a.dtype));
  text.define("FACULA_SINGLE", tiling.item == 4 ? "1" : "0");
  text.define("FACULA_WIDTH", std::to_string(tiling.width));
  text.define("FACULA_TILES", std::to_string(tiling.tiles));
  text.define("FACULA_STEP", std::to_string(tiling.step));
  text.define("FACULA_SPLIT", std::to_string(tiling.split));
  text.define("FACULA_GROUPS", std::to_string(tiling.groups));
  text.define("FACULA_STAGES", std::to_string(tiling.stages));
  text.define("FACULA_CAUSAL", variant.causal ? "1" : "0");
  text.define("FACULA_MASK", std::to_string(variant.mask));
  text.define("FACULA_ALIGNED", variant.whole ? "1" : "0");
  return text;
}

// Runs a pass. If its kernel has to be compiled, so are those of the passes to come, at once.
void run(const Tiling& tiling, const Attention& a, const Workspace& workspace, int64_t most_blocks,
         int device, std::span<const Pass> to_come = {}) {
  const auto memory = unsigned(tiling.shared_memory());
  CuFunction function = kernel_of(tiling, a).on(device, [&] {
    for (Pass pass : to_come) {
      const Tiling next = tiling_of(pass, a);
      kernel_of(next, a).prepare(device, [&] { return text_of(next, a); });
    }
    return text_of(tiling, a);
  });
  if (memory > 48u << 10) allow_shared_memory(function, memory);
  const int64_t blocks = count_blocks(a, tiling);
  ArgumentWriter arguments;
  write_problem(a, workspace, blocks, arguments);
  launch_kernel(function,
                {.grid_x = unsigned(std::min(blocks, most_blocks)),
                 .block_x = tiling.threads(),
                 .shared_memory = memory},
                current_stream(device), arguments.data());
}

std::span<const Pass> gradient_passes(const Attention& a, int device) {
  static constexpr Pass kInOrder[] = {Pass::QueryGradient, Pass::KeyGradient};
  static constexpr Pass kByGroups[] = {Pass::GradientBegin, Pass::GradientByGroups,
                                       Pass::GradientEnd};
  // The sums of groups come in no certain order.
  if (settings.deterministic || !by_groups(a, device)) return kInOrder;
  return kByGroups;
}

void forward(const Attention& a, Device on) {
  use_device(on.index);
  std::span<const Pass> to_come;
  if (a.differentiated) to_come = gradient_passes(a, on.index);
  if (!by_groups(a, on.index))
    return run(tiling_of(Pass::Forward, a), a, {}, INT64_MAX, on.index, to_come);
  // Blocks stay where they are and take one tile after the other: a counter tells which ones.
  const Tiling tiling = tiling_of(Pass::ForwardByGroups, a);
  const int64_t places = device_properties(on.index).multiprocessors;
  if (count_blocks(a, tiling) <= places) return run(tiling, a, {}, places, on.index, to_come);
  CuStream stream = current_stream(on.index);
  Scratch counter(sizeof(uint32_t), on.index, stream);
  set_bytes(counter.get(), 0, sizeof(uint32_t), on.index, stream);
  run(tiling, a, {.counter = counter.get()}, places, on.index, to_come);
}

void backward(const Attention& a, Device on) {
  use_device(on.index);
  CuStream stream = current_stream(on.index);
  const int64_t rows = a.batch * a.heads * a.queries;
  Scratch delta(size_t(rows) * 2 * sizeof(float), on.index, stream);
  Workspace workspace{.delta = static_cast<float*>(delta.get())};
  const std::span<const Pass> passes = gradient_passes(a, on.index);
  auto run_all = [&] {
    for (size_t i = 0; i < passes.size(); ++i) {
      run(tiling_of(passes[i], a), a, workspace, INT64_MAX, on.index, passes.subspan(i + 1));
    }
  };
  if (passes[0] != Pass::GradientBegin) return run_all();
  const Tiling tiling = tiling_of(Pass::GradientByGroups, a);
  const int64_t steps = (a.queries + tiling.step - 1) / tiling.step;
  const int64_t sums = a.batch * a.heads * steps * tiling.step * tiling.width;
  Scratch grad_q_sums(size_t(sums) * sizeof(float), on.index, stream);
  workspace.grad_q_sums = static_cast<float*>(grad_q_sums.get());
  run_all();
}

}  // namespace

void register_attention() {
  device_attention.supports.set(translate<supports>);
  device_attention.forward.set(translate<forward>);
  device_attention.backward.set(translate<backward>);
}

}  // namespace facula::cuda

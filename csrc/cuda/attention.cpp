#include "cuda/attention.h"

#include <algorithm>

#include "cpu/attention.h"
#include "cuda/allocator.h"
#include "cuda/kernel_types.h"
#include "cuda/nvrtc.h"
#include "cuda/translate.h"
#include "op/hooks/attention.h"

namespace facula::cuda {
namespace {

enum class Pass { Forward, QueryGradient, KeyGradient };

// Whether all matrices that the kernels read can be copied 16 bytes at a time.
bool aligned(const Attention& a) {
  const int64_t piece = 16 / int64_t(item_size(a.dtype));
  if (a.width % piece != 0 || a.value_width % piece != 0) return false;
  for (const HeadMatrix* m : {&a.q, &a.k, &a.v, &a.out, &a.grad_out}) {
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
  int64_t item;  // bytes
  int width, tiles, step, split, groups;

  Tiling(Pass pass, DType dtype, int64_t widest, bool by_groups)
      : item(int64_t(item_size(dtype))), groups(by_groups ? 2 : 0) {
    const bool forward = pass == Pass::Forward;
    width = widest <= 32 ? 32 : widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
    split = pass == Pass::KeyGradient && width == 256 ? 2 : 1;
    const int most_for_two = item == 4 ? 0 : pass == Pass::KeyGradient ? 64 : 128;
    tiles = !groups && width <= most_for_two ? 2 : 1;
    step = groups || (forward && width <= 128) ? 64 : 32;
  }
  int64_t rows() const { return 64 * (groups ? groups : tiles); }
  unsigned threads() const { return 128u * unsigned(groups ? groups : split); }
  int64_t shared_memory(Pass pass) const {
    const int64_t own = pass == Pass::Forward ? 1 : 2;  // matrices of which a block keeps its rows
    if (groups) {
      constexpr int64_t kStages = 4, kAlignment = 1024;
      const int64_t numbers = pass == Pass::KeyGradient ? 2 * step * int64_t(sizeof(float)) : 0;
      return kAlignment + own * rows() * width * item +
             kStages * (2 * step * width * item + numbers);
    }
    const int64_t pitch = width + 16 / item, tile_rows = own * rows() + own * 2 * step;
    const int64_t numbers = pass == Pass::KeyGradient ? 4 * step * int64_t(sizeof(float)) : 0;
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
    if (size_t(tiling.shared_memory(pass)) > properties.shared_memory_per_block_optin) return false;
  }
  return true;
}

void write_problem(const Attention& a, float* delta, ArgumentWriter& out) {
  for (const HeadMatrix* m :
       {&a.q, &a.k, &a.v, &a.out, &a.grad_out, &a.grad_q, &a.grad_k, &a.grad_v}) {
    out.put(m->data);
    for (int64_t stride : {m->batch, m->head, m->row}) out.put(stride);
  }
  out.put(a.mask);
  for (int64_t n : {a.mask_batch, a.mask_head, a.mask_row, a.mask_column}) out.put(n);
  out.put(a.logsumexp);
  out.put<void*>(delta);
  for (int64_t n : {a.heads, a.key_heads, a.queries, a.keys, a.width, a.value_width}) out.put(n);
  out.put(float(a.scale));
}

void run(Pass pass, const Attention& a, float* delta, int device) {
  struct Template {
    const char *file, *file_for_groups, *name;
  };
  static constexpr Template kTemplates[] = {
      {"attention_forward.cuh", "attention_forward_groups.cuh", "facula_attention"},
      {"attention_query_grad.cuh", "attention_query_grad_groups.cuh",
       "facula_attention_query_grad"},
      {"attention_key_grad.cuh", "attention_key_grad_groups.cuh", "facula_attention_key_grad"},
  };
  static auto* kernels = new KernelTable;
  const bool groups = by_groups(a, device);
  const Tiling tiling(pass, a.dtype, std::max(a.width, a.value_width), groups);
  const Template& chosen = kTemplates[int(pass)];
  const char* file = groups ? chosen.file_for_groups : chosen.file;
  const bool whole = aligned(a);
  const int mask = !a.mask ? 0 : a.mask_is_bool ? 1 : 2;
  KernelKey key;
  key.text[0] = file;
  key.bits[0] = uint64_t(a.dtype) | uint64_t(tiling.width) << 8 | uint64_t(a.causal) << 20 |
                uint64_t(mask) << 21 | uint64_t(whole) << 23;
  const auto memory = unsigned(tiling.shared_memory(pass));
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{file, chosen.name, {}, groups};
    text.define("FACULA_ITEM", device_type(a.dtype));
    text.define("FACULA_SINGLE", tiling.item == 4 ? "1" : "0");
    text.define("FACULA_WIDTH", std::to_string(tiling.width));
    text.define("FACULA_TILES", std::to_string(tiling.tiles));
    text.define("FACULA_STEP", std::to_string(tiling.step));
    text.define("FACULA_SPLIT", std::to_string(tiling.split));
    text.define("FACULA_GROUPS", std::to_string(tiling.groups));
    text.define("FACULA_CAUSAL", a.causal ? "1" : "0");
    text.define("FACULA_MASK", std::to_string(mask));
    text.define("FACULA_ALIGNED", whole ? "1" : "0");
    return text;
  });
  if (memory > 48u << 10) allow_shared_memory(function, memory);
  ArgumentWriter arguments;
  write_problem(a, delta, arguments);
  const bool by_keys = pass == Pass::KeyGradient;
  const int64_t rows = by_keys ? a.keys : a.queries,
                heads = a.batch * (by_keys ? a.key_heads : a.heads);
  const int64_t blocks = (rows + tiling.rows() - 1) / tiling.rows() * heads;
  launch_kernel(function,
                {.grid_x = unsigned(blocks), .block_x = tiling.threads(), .shared_memory = memory},
                current_stream(device), arguments.data());
}

void forward(const Attention& a, Device on) {
  use_device(on.index);
  run(Pass::Forward, a, nullptr, on.index);
}

void backward(const Attention& a, Device on) {
  use_device(on.index);
  // Two numbers for each query, or one.
  Scratch delta(size_t(a.batch * a.heads * a.queries) * 2 * sizeof(float), on.index,
                current_stream(on.index));
  auto* sums = static_cast<float*>(delta.get());
  run(Pass::QueryGradient, a, sums, on.index);
  run(Pass::KeyGradient, a, sums, on.index);
}

}  // namespace

void register_attention() {
  device_attention.supports.set(translate<supports>);
  device_attention.forward.set(translate<forward>);
  device_attention.backward.set(translate<backward>);
}

}  // namespace facula::cuda

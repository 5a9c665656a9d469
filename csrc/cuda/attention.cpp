#include "cuda/attention.h"

#include <algorithm>

#include "cpu/attention.h"
#include "cuda/allocator.h"
#include "cuda/kernel_types.h"
#include "cuda/translate.h"
#include "op/hooks/attention.h"

namespace facula::cuda {
namespace {

constexpr int64_t kMostWidth = 256;

bool supports(const Tensor& query, int64_t value_width) {
  const bool half = query.dtype() == DType::Float16 || query.dtype() == DType::BFloat16;
  // The matrix units' instructions came with compute capability 8.0.
  return half && std::max(query.size(-1), value_width) <= kMostWidth &&
         device_properties(query.device().index).major >= 8;
}

enum class Pass { Forward, QueryGradient, KeyGradient };

// How a pass is cut into tiles: registers hold the accumulators of M row tiles for each warp.
struct Tiling {
  int width, tiles, step, split;

  Tiling(Pass pass, const Attention& a) {
    const int64_t widest = std::max(a.width, a.value_width);
    width = widest <= 32 ? 32 : widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
    split = pass == Pass::KeyGradient && width == 256 ? 2 : 1;
    const bool narrow = width <= (pass == Pass::KeyGradient ? 64 : 128);
    tiles = narrow ? 2 : 1;
    step = pass == Pass::Forward && width <= 128 ? 64 : 32;
  }
  int64_t rows() const { return 64 * tiles; }
  unsigned threads() const { return 128u * unsigned(split); }
  unsigned shared_memory(Pass pass) const {
    const int64_t pitch = width + 8;
    const int64_t tile_rows = pass == Pass::Forward ? rows() + 2 * step : 2 * rows() + 4 * step;
    const int64_t numbers = pass == Pass::KeyGradient ? 4 * step * int64_t(sizeof(float)) : 0;
    return unsigned(tile_rows * pitch * 2 + numbers);
  }
};

bool aligned(const HeadMatrix& m) {
  return reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.batch % 8 == 0 && m.head % 8 == 0 &&
         m.row % 8 == 0;
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

void run(Pass pass, const char* file, const char* name, const Attention& a, float* delta,
         int device) {
  static auto* kernels = new KernelTable;
  const Tiling tiling(pass, a);
  bool whole = a.width % 8 == 0 && a.value_width % 8 == 0;
  for (const HeadMatrix* m : {&a.q, &a.k, &a.v, &a.grad_out}) whole = whole && aligned(*m);
  const int mask = !a.mask ? 0 : a.mask_is_bool ? 1 : 2;
  KernelKey key;
  key.text[0] = file;
  key.bits[0] = uint64_t(a.dtype) | uint64_t(tiling.width) << 8 | uint64_t(a.causal) << 20 |
                uint64_t(mask) << 21 | uint64_t(whole) << 23;
  const unsigned memory = tiling.shared_memory(pass);
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{file, name, {}};
    text.define("FACULA_ITEM", device_type(a.dtype));
    text.define("FACULA_WIDTH", std::to_string(tiling.width));
    text.define("FACULA_TILES", std::to_string(tiling.tiles));
    text.define("FACULA_STEP", std::to_string(tiling.step));
    text.define("FACULA_SPLIT", std::to_string(tiling.split));
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
  run(Pass::Forward, "attention_forward.cuh", "facula_attention", a, nullptr, on.index);
}

void backward(const Attention& a, Device on) {
  use_device(on.index);
  Scratch delta(size_t(a.batch * a.heads * a.queries) * sizeof(float), on.index,
                current_stream(on.index));
  auto* sums = static_cast<float*>(delta.get());
  run(Pass::QueryGradient, "attention_query_grad.cuh", "facula_attention_query_grad", a, sums,
      on.index);
  run(Pass::KeyGradient, "attention_key_grad.cuh", "facula_attention_key_grad", a, sums, on.index);
}

}  // namespace

void register_attention() {
  device_attention.supports.set(translate<supports>);
  device_attention.forward.set(translate<forward>);
  device_attention.backward.set(translate<backward>);
}

}  // namespace facula::cuda

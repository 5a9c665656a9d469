#include "cuda/scan.h"

#include <algorithm>

#include "cuda/allocator.h"
#include "cuda/kernel_types.h"
#include "cuda/walk.h"

namespace facula::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kItems = 4;  // of a thread; see scan.cuh
constexpr int64_t kMostChunks = 1024;

struct Lines {
  const Tensor& in;
  const Tensor& out;
  const Tensor& indices;
  int64_t dim;
  int kind;  // FACULA_SCAN
};

Dims lines_of(const Tensor& t, int64_t dim) {
  Dims shape(t.sizes());
  shape[size_t(dim)] = 1;
  return shape;
}

bool is_fourfold(const Tensor& t, int64_t dim) {
  const auto bytes = int64_t(t.item_size()) * kItems;
  if (bytes > 32 || t.stride(dim) != 1) return false;
  if (reinterpret_cast<uintptr_t>(t.data()) % uintptr_t(std::min<int64_t>(bytes, 16))) return false;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != dim && t.size(d) > 1 && t.stride(d) % kItems) return false;
  return true;
}

void scan(const Lines& s) {
  static auto* kernels = new KernelTable;
  const int device = s.in.device().index;
  const CuStream stream = current_stream(device);
  const int64_t n = s.in.size(s.dim);
  Walk walk(lines_of(s.in, s.dim));
  walk.add(s.in, s.dim);
  walk.add(s.out, s.dim);
  walk.add(s.indices, s.dim);
  walk.finish();
  const int64_t lines = walk.count();
  if (lines == 0 || n == 0) return;
  use_device(device);
  const DType compute = is_reduced_float(s.out.dtype()) ? DType::Float32 : s.out.dtype();
  const int multiprocessors = device_properties(device).multiprocessors;
  // Lines that lie across memory are walked by a thread each, once there are enough of them; short
  // ones by a warp, long ones by a block, and the longest by many.
  const bool across = s.in.stride(s.dim) != 1 && n > 1;
  int lanes = n <= 512 ? 32 : kThreads;
  if ((across && lines >= int64_t(multiprocessors) * 64) || n <= 4) lanes = 1;
  const bool vector = lanes > 1 && is_fourfold(s.in, s.dim);
  const int64_t tile = lanes * kItems, tiles = (n + tile - 1) / tile;
  int64_t chunks = 1;
  if (lanes == kThreads && lines < multiprocessors * 2 && tiles >= 4)
    chunks = std::min({kMostChunks, tiles / 2, std::max<int64_t>(1, multiprocessors * 8 / lines)});
  const int64_t chunk = (tiles + chunks - 1) / chunks * tile;
  chunks = (n + chunk - 1) / chunk;
  const size_t acc = s.kind >= 3 ? 16 : item_size(compute);
  Scratch totals(chunks > 1 ? size_t(lines * chunks) * acc : 0, device, stream);
  for (int stage = chunks > 1 ? 1 : 0; stage < (chunks > 1 ? 3 : 1); ++stage) {
    KernelKey key;
    key.bits[0] = walk.bits() | uint64_t(s.in.dtype()) << 6 | uint64_t(s.out.dtype()) << 11 |
                  uint64_t(s.kind) << 16 | uint64_t(lanes) << 20 | uint64_t(stage) << 30 |
                  uint64_t(vector) << 32;
    CuFunction function = kernels->find(key).on(device, [&] {
      static constexpr const char* kNames[] = {"facula_cumsum", "facula_cumprod",
                                               "facula_logcumsumexp", "facula_cummax",
                                               "facula_cummin"};
      KernelText text{"scan.cuh", kNames[s.kind], {}};
      walk.define(text);
      text.define("FACULA_IN", device_type(s.in.dtype()));
      text.define("FACULA_OUT", device_type(s.out.dtype()));
      text.define("FACULA_COMPUTE", device_type(compute));
      text.define("FACULA_SCAN", std::to_string(s.kind));
      text.define("FACULA_LANES", std::to_string(lanes));
      text.define("FACULA_STAGE", std::to_string(stage));
      text.define("FACULA_VECTOR", vector ? "1" : "0");
      return text;
    });
    ArgumentWriter arguments;
    for (int64_t value : {lines, n, chunk, chunks}) arguments.put(value);
    arguments.put<const void*>(s.in.data());
    arguments.put(s.out.data());
    arguments.put(s.indices.data());
    arguments.put(totals.get());
    for (const Tensor* t : {&s.in, &s.out, &s.indices})
      arguments.put(t->stride(s.dim) * int64_t(t->item_size()));
    walk.write(arguments);
    const int64_t per_block = kThreads / lanes;
    const int64_t blocks = stage ? lines * chunks : (lines + per_block - 1) / per_block;
    launch_kernel(function, {.grid_x = unsigned(blocks), .block_x = kThreads}, stream,
                  arguments.data());
  }
}

}  // namespace

void scan_lines(const Tensor& in, int64_t dim, Scan kind, const Tensor& out) {
  scan({in, out, out, dim, int(kind)});
}

void scan_extremes(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                   const Tensor& indices) {
  scan({in, values, indices, dim, largest ? 3 : 4});
}

}  // namespace facula::cuda

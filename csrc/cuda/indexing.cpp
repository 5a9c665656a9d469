// Smaller kernels of reading and writing by indices, and the table of all of them.
#include "cuda/indexing.h"

#include <algorithm>
#include <bit>

#include "core/device_read.h"
#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/kernel_types.h"
#include "cuda/points.h"
#include "cuda/reduce.h"
#include "cuda/scan.h"
#include "cuda/sort.h"
#include "cuda/translate.h"

namespace facula::cuda {
namespace {

constexpr unsigned kThreads = 256;

unsigned blocks_for(int64_t work, int64_t per_block) {
  return unsigned((work + per_block - 1) / per_block);
}

Tensor true_positions(const Tensor& mask, bool unravel) {
  static auto* kernels = new KernelTable;
  constexpr int64_t kTile = 4096;
  const int device = mask.device().index;
  const CuStream stream = current_stream(device);
  const int64_t n = mask.numel(), tiles = (n + kTile - 1) / kTile;
  const int dims = unravel ? int(mask.dim()) : 0;
  if (dims > kKernelDims)
    throw CudaError("nonzero: more than " + std::to_string(kKernelDims) + " dimensions");
  auto result = [&](int64_t count) {
    if (!unravel) return empty_tensor(Dims{count}, DType::Int64, mask.device());
    return empty_tensor(Dims{count, mask.dim()}, Dims{1, std::max<int64_t>(count, 1)}, DType::Int64,
                        mask.device());
  };
  if (n == 0) return result(0);
  use_device(device);
  Tensor counts = empty_tensor(Dims{tiles}, DType::Int64, mask.device());
  Tensor out;
  for (int stage = 0; stage < 2; ++stage) {
    if (stage == 1) {
      scan_lines(counts, 0, Scan::Sum, counts);
      int64_t found = 0;
      read_device_memory(&found, counts.data_as<int64_t>() + (tiles - 1), 8, device);
      out = result(found);
      if (found == 0 || (unravel && dims == 0)) return out;
    }
    KernelKey key;
    key.bits[0] = uint64_t(mask.dtype()) | uint64_t(stage) << 5 | uint64_t(dims) << 6;
    CuFunction function = kernels->find(key).on(device, [&] {
      KernelText text{"compact.cuh", stage ? "facula_true_positions" : "facula_count_true", {}};
      text.define("FACULA_IN", device_type(mask.dtype()));
      text.define("FACULA_STAGE", std::to_string(stage));
      text.define("FACULA_DIMS", std::to_string(dims));
      return text;
    });
    ArgumentWriter arguments;
    arguments.put<const void*>(mask.data());
    arguments.put(n);
    arguments.put(counts.data());
    arguments.put(stage ? out.data() : nullptr);
    arguments.put(stage && unravel ? out.stride(1) : int64_t(0));
    for (int d = 0; d < std::max(dims, 1); ++d) arguments.put(dims ? mask.size(d) : int64_t(1));
    launch_kernel(function, {.grid_x = unsigned(tiles), .block_x = kThreads}, stream,
                  arguments.data());
  }
  return out;
}

void searchsorted(const Tensor& boundaries, const Tensor& values, const Tensor& sorter, bool right,
                  const Tensor& counts) {
  static auto* kernels = new KernelTable;
  const int device = boundaries.device().index;
  use_device(device);
  KernelKey key;
  key.bits[0] = uint64_t(boundaries.dtype()) | uint64_t(counts.dtype()) << 5 |
                uint64_t(right) << 10 | uint64_t(sorter.defined()) << 11;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"searchsorted.cuh", "facula_searchsorted", {}};
    text.define("FACULA_TYPE", device_type(boundaries.dtype()));
    text.define("FACULA_COUNT", device_type(counts.dtype()));
    text.define("FACULA_RIGHT", right ? "1" : "0");
    text.define("FACULA_SORTER", sorter.defined() ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(values.numel());
  arguments.put(values.size(1));
  arguments.put(boundaries.size(1));
  arguments.put(boundaries.size(0) == 1 ? int64_t(0) : boundaries.size(1));
  arguments.put<const void*>(boundaries.data());
  arguments.put<const void*>(values.data());
  arguments.put<const void*>(sorter.defined() ? sorter.data() : nullptr);
  arguments.put(counts.data());
  launch_kernel(function, {.grid_x = blocks_for(values.numel(), kThreads), .block_x = kThreads},
                current_stream(device), arguments.data());
}

void sum_rows(const Tensor& grad, const Tensor& lookups, int64_t padding, bool by_frequency,
              const Tensor& out) {
  static auto* kernels = new KernelTable;
  const int device = grad.device().index;
  const CuStream stream = current_stream(device);
  const DType dtype = grad.dtype();
  const int64_t count = lookups.numel(), rows = out.size(0), width = out.size(1);
  set_bytes(out.data(), 0, size_t(out.numel()) * out.item_size(), device, stream);
  if (count == 0 || width == 0) return;
  Scratch sorted(size_t(count) * 8, device, stream), order(size_t(count) * 4, device, stream);
  const int bits = std::max(1, int(std::bit_width(uint64_t(rows))));
  sort_keys(reinterpret_cast<const uint64_t*>(lookups.data_as<int64_t>()), count, bits,
            static_cast<uint64_t*>(sorted.get()), static_cast<uint32_t*>(order.get()), device,
            stream);
  KernelKey key;
  key.bits[0] = uint64_t(dtype);
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"sum_rows.cuh", "facula_sum_rows", {}};
    text.define("FACULA_TYPE", device_type(dtype));
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(sorted.get());
  arguments.put(order.get());
  arguments.put(count);
  arguments.put(width);
  arguments.put(uint64_t(rows));
  arguments.put(uint64_t(padding));
  arguments.put(int32_t(by_frequency));
  arguments.put<const void*>(grad.data());
  arguments.put(out.data());
  const auto threads = unsigned(std::clamp<int64_t>((width + 31) / 32 * 32, 32, kThreads));
  launch_kernel(
      function,
      {.grid_x = unsigned(count), .grid_y = blocks_for(width, threads), .block_x = threads}, stream,
      arguments.data());
}

void reduce_bags(const Tensor& table, const Tensor& lookups, const Tensor& limits,
                 const Tensor& factors, int64_t mode, int64_t padding, const Tensor& out,
                 const Tensor& sizes, const Tensor& rows) {
  static auto* kernels = new KernelTable;
  const int device = table.device().index;
  const DType dtype = table.dtype();
  const int64_t bags = out.size(0), width = out.size(1);
  if (bags == 0) return;
  use_device(device);
  KernelKey key;
  key.bits[0] = uint64_t(dtype) | uint64_t(mode) << 5 | uint64_t(factors.defined()) << 7;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"bags.cuh", "facula_embedding_bag", {}};
    text.define("FACULA_TYPE", device_type(dtype));
    text.define("FACULA_MODE", std::to_string(mode));
    text.define("FACULA_FACTORS", factors.defined() ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(fault_site(device, "embedding_bag", table.size(0), 0));
  arguments.put(fault_site(device, "embedding_bag, offsets", lookups.numel() + 1, 0));
  arguments.put<const void*>(table.data());
  arguments.put(table.stride(0));
  arguments.put<const void*>(lookups.data());
  arguments.put<const void*>(limits.data());
  arguments.put<const void*>(factors.defined() ? factors.data() : nullptr);
  arguments.put(lookups.numel());
  arguments.put(width);
  arguments.put(padding);
  arguments.put(out.data());
  arguments.put(sizes.data());
  arguments.put(rows.data());
  const auto threads = unsigned(std::clamp<int64_t>((width + 31) / 32 * 32, 32, kThreads));
  launch_kernel(function,
                {.grid_x = unsigned(bags),
                 .grid_y = std::max(1u, blocks_for(width, threads)),
                 .block_x = threads},
                current_stream(device), arguments.data());
}

// All parts and the result are contiguous: rows of the dimensions before dim.
void cat(TensorSpan parts, int64_t dim, const Tensor& out) {
  static auto* kernels = new KernelTable;
  constexpr int kParts = 128;
  const int device = out.device().index;
  const CuStream stream = current_stream(device);
  const auto item = int64_t(out.item_size());
  int64_t rows = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) rows *= out.size(d);
  for (int64_t d = dim + 1; d < out.dim(); ++d) inner *= out.size(d);
  // As many bytes at once as all addresses and lengths are multiples of.
  auto common = uint64_t(16) | reinterpret_cast<uintptr_t>(out.data()) |
                uint64_t(out.size(dim) * inner * item);
  for (const Tensor& t : parts)
    common |= reinterpret_cast<uintptr_t>(t.data()) | uint64_t(t.size(dim) * inner * item);
  const int64_t unit = int64_t(1) << std::countr_zero(common);
  const DType mover = unit == 16  ? DType::Complex128
                      : unit == 8 ? DType::UInt64
                      : unit == 4 ? DType::UInt32
                      : unit == 2 ? DType::UInt16
                                  : DType::UInt8;
  use_device(device);
  KernelKey key;
  key.bits[0] = uint64_t(mover);
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"cat.cuh", "facula_cat", {}};
    text.define("FACULA_ITEM", device_mover(mover));
    text.define("FACULA_PARTS", std::to_string(kParts));
    return text;
  });
  int64_t at = 0;
  for (size_t first = 0; first < parts.size(); first += kParts) {
    const size_t m = std::min(parts.size() - first, size_t(kParts));
    const void* from[kParts] = {};
    int64_t begin[kParts] = {}, size[kParts] = {}, longest = 0;
    for (size_t k = 0; k < m; ++k) {
      const Tensor& t = parts[first + k];
      from[k] = t.data();
      begin[k] = at;
      size[k] = t.size(dim) * inner * item / unit;
      at += size[k];
      longest = std::max(longest, size[k]);
    }
    if (longest * rows == 0) continue;
    ArgumentWriter arguments;
    arguments.put(out.data());
    arguments.put(rows);
    arguments.put(out.size(dim) * inner * item / unit);
    for (const void* p : from) arguments.put(p);
    for (int64_t b : begin) arguments.put(b);
    for (int64_t s : size) arguments.put(s);
    launch_kernel(function,
                  {.grid_x = blocks_for(longest * rows, kThreads * 4),
                   .grid_y = unsigned(m),
                   .block_x = kThreads},
                  stream, arguments.data());
  }
}

void triangle(const Tensor& self, int64_t diagonal, bool lower, const Tensor& out) {
  const int device = self.device().index;
  ElementwiseLaunch launch;
  launch.name = lower ? "tril" : "triu";
  launch.body = lower ? "const Division place = quotient_and_rest(index, columns); "
                        "const int64 row = quotient_and_rest(place.quotient, rows).rest; "
                        "return place.rest <= row + diagonal ? a : T(0);"
                      : "const Division place = quotient_and_rest(index, columns); "
                        "const int64 row = quotient_and_rest(place.quotient, rows).rest; "
                        "return place.rest >= row + diagonal ? a : T(0);";
  launch.inputs = 1;
  launch.ptrs[0] = out.data();
  launch.ptrs[1] = self.data();
  launch.dtypes[0] = launch.dtypes[1] = launch.compute = mover_type(self.dtype());
  launch.uses_index = true;
  launch.ndim = 1;
  launch.sizes[0] = self.numel();
  launch.strides[0][0] = launch.strides[1][0] = int64_t(self.item_size());
  launch.params.add(DType::Int64, self.size(-1), "columns");
  launch.params.add(DType::Int64, self.size(-2), "rows");
  launch.params.add(DType::Int64, diagonal, "diagonal");
  launch_elementwise(launch, device, current_stream(device));
}

void arg_extreme(const Tensor& in, int64_t dim, bool largest, const Tensor& out) {
  const int device = in.device().index;
  ReduceLaunch launch;
  launch.name = largest ? "argmax" : "argmin";
  launch.formula.init =
      largest ? "return {lowest, 0x7fffffffffffffff};" : "return {highest, 0x7fffffffffffffff};";
  launch.formula.map = "indexed(a, index)";
  launch.formula.combine = largest ? "larger(a, b)" : "smaller(a, b)";
  launch.formula.finalise = "a.index";
  launch.formula.accumulator = "Indexed<T>";
  launch.formula.accumulator_bytes = 16;
  launch.compute = in.dtype();
  launch.uses_index = true;
  launch.in = in.data();
  launch.out = out.data();
  launch.in_dtype = in.dtype();
  launch.out_dtype = DType::Int64;
  launch.ndim = int(in.dim());
  launch.reduced = uint64_t(1) << dim;
  for (int64_t d = 0; d < in.dim(); ++d) {
    launch.sizes[d] = in.size(d);
    launch.in_strides[d] = in.stride(d) * int64_t(in.item_size());
    launch.out_strides[d] = d == dim ? 0 : out.stride(d) * 8;
  }
  launch_reduce(launch, device, current_stream(device));
}

}  // namespace

void register_indexing() {
  device_indexing.read.set(translate<read_points>);
  device_indexing.write.set(translate<write_points>);
  device_indexing.combine.set(translate<combine_points>);
  device_indexing.true_positions.set(translate<true_positions>);
  device_indexing.searchsorted.set(translate<searchsorted>);
  device_indexing.sum_rows.set(translate<sum_rows>);
  device_indexing.reduce_bags.set(translate<reduce_bags>);
  device_indexing.cat.set(translate<cat>);
  device_indexing.triangle.set(translate<triangle>);
  device_sorting.sort.set(translate<sort_lines>);
  device_sorting.scan.set(translate<scan_lines>);
  device_sorting.cumulative_extreme.set(translate<scan_extremes>);
  device_sorting.arg_extreme.set(translate<arg_extreme>);
}

}  // namespace facula::cuda

#include "cuda/sort.h"

#include <algorithm>
#include <bit>

#include "cuda/allocator.h"
#include "cuda/copy.h"
#include "cuda/kernel_types.h"
#include "cuda/points.h"
#include "cuda/walk.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostSelected = 1024;  // of the kernel that selects

// The lines of several tensors along one dimension. Tensors have one rank, at least 1.
struct Lines {
  Walk walk;
  int64_t n;

  Lines(const Tensor& in, int64_t dim, const Tensor& values, const Tensor& indices)
      : walk(shape_of(in, dim)), n(in.size(dim)) {
    walk.add(in, dim);
    walk.add(values, dim);
    walk.add(indices, dim);
    walk.finish();
  }
  int64_t count() const { return walk.count(); }

 private:
  static Dims shape_of(const Tensor& in, int64_t dim) {
    Dims shape(in.sizes());
    shape[size_t(dim)] = 1;
    return shape;
  }
};

struct LineSort {
  const Tensor& in;
  int64_t dim;
  bool descending;
  int64_t k;
  const Tensor& values;
  const Tensor& indices;

  int64_t step(const Tensor& t) const { return t.stride(dim) * int64_t(t.item_size()); }
  void put(ArgumentWriter& arguments) const {
    arguments.put<int32_t>(descending);
    arguments.put<const void*>(in.data());
    arguments.put(values.data());
    arguments.put(indices.data());
    arguments.put(step(in));
    arguments.put(step(values));
    arguments.put(indices.stride(dim));
  }
};

// What one block or less sorts at once.
int64_t most_in_block(DType dtype) {
  return item_size(dtype) == 8 ? 2048 : 4096;
}

void sort_short(const LineSort& s, const Lines& lines) {
  static auto* kernels = new KernelTable;
  const int device = s.in.device().index;
  const DType dtype = s.in.dtype();
  const auto capacity = int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(lines.n, 4))));
  const int items = capacity <= 512 ? 4 : capacity <= 2048 ? 8 : 16;
  const int lanes = int(capacity / items);
  const int threads = std::max(lanes, lanes <= 32 ? 256 : 0);
  use_device(device);
  KernelKey key;
  key.bits[0] = lines.walk.bits() | uint64_t(dtype) << 6 | uint64_t(capacity) << 11;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"sort_rows.cuh", "facula_sort_rows", {}};
    lines.walk.define(text);
    text.define("FACULA_TYPE", device_type(dtype));
    text.define("FACULA_WIDE_KEY", item_size(dtype) == 8 ? "1" : "0");
    text.define("FACULA_LANES", std::to_string(lanes));
    text.define("FACULA_ITEMS", std::to_string(items));
    text.define("FACULA_THREADS", std::to_string(threads));
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(lines.count());
  arguments.put(int32_t(lines.n));
  arguments.put(int32_t(s.k));
  s.put(arguments);
  lines.walk.write(arguments);
  const int64_t per_block = threads / lanes;
  launch_kernel(function,
                {.grid_x = unsigned((lines.count() + per_block - 1) / per_block),
                 .block_x = unsigned(threads)},
                current_stream(device), arguments.data());
}

void select_long(const LineSort& s, const Lines& lines) {
  static auto* kernels = new KernelTable;
  const int device = s.in.device().index;
  const DType dtype = s.in.dtype();
  const auto kept = std::max<uint64_t>(std::bit_ceil(uint64_t(s.k)), 2);
  use_device(device);
  KernelKey key;
  key.bits[0] = lines.walk.bits() | uint64_t(dtype) << 6 | kept << 11;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"select_rows.cuh", "facula_select_rows", {}};
    lines.walk.define(text);
    text.define("FACULA_TYPE", device_type(dtype));
    text.define("FACULA_KEPT", std::to_string(kept));
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(lines.count());
  arguments.put(lines.n);
  arguments.put(int32_t(s.k));
  s.put(arguments);
  lines.walk.write(arguments);
  launch_kernel(function, {.grid_x = unsigned(lines.count()), .block_x = kThreads},
                current_stream(device), arguments.data());
}

// Passes over lines of n elements that lie one after the other.
class Radix {
 public:
  Radix(DType dtype, int passes, int64_t lines, int64_t n, bool descending, int device,
        CuStream stream)
      : dtype_(dtype),
        passes_(passes),
        lines_(lines),
        n_(n),
        tiles_((n + tile_size() - 1) / tile_size()),
        descending_(descending),
        device_(device),
        stream_(stream),
        counts_(size_t(lines * 256 * tiles_) * 4, device, stream),
        totals_(size_t(lines * 256) * 4, device, stream) {}

  // From elements, or keys where `positions` are given, to keys and positions.
  void pass(const void* in, const uint32_t* positions, int shift, void* out,
            uint32_t* out_positions) {
    for (int stage = 0; stage < 3; ++stage) {
      ArgumentWriter arguments;
      arguments.put(n_);
      arguments.put(tiles_);
      arguments.put(int32_t(shift));
      arguments.put(int32_t(descending_));
      arguments.put(in);
      arguments.put<const void*>(positions);
      arguments.put(out);
      arguments.put<void*>(out_positions);
      arguments.put(counts_.get());
      arguments.put(totals_.get());
      const auto blocks = unsigned(stage != 1 ? tiles_ : tiles_ <= 32 ? 1 : 256);
      launch_kernel(kernel(stage, positions == nullptr),
                    {.grid_x = blocks, .grid_y = unsigned(lines_), .block_x = kThreads}, stream_,
                    arguments.data());
    }
  }

  int key_bytes() const { return int(item_size(dtype_)); }

 private:
  int64_t tile_size() const { return int64_t(kThreads) * (item_size(dtype_) == 8 ? 8 : 16); }

  DType type(bool first) const { return first ? dtype_ : mover_type(dtype_); }
  Kernel& kernel_of(int stage, bool first) const {
    static auto* kernels = new KernelTable;
    KernelKey key;
    key.bits[0] = uint64_t(type(first)) | uint64_t(first) << 5 | uint64_t(stage) << 6;
    return kernels->find(key);
  }
  KernelText text_of(int stage, bool first) const {
    static constexpr const char* kNames[] = {"facula_radix_count", "facula_radix_sum",
                                             "facula_radix_move"};
    KernelText text{"radix.cuh", kNames[stage], {}};
    text.define("FACULA_TYPE", device_type(type(first)));
    text.define("FACULA_FIRST", first ? "1" : "0");
    text.define("FACULA_STAGE", std::to_string(stage));
    return text;
  }
  CuFunction kernel(int stage, bool first) const {
    return kernel_of(stage, first).on(device_, [&] {
      if (stage == 0 && first) prepare_others();
      return text_of(stage, first);
    });
  }
  // All kernels of a sort are compiled at once. The slowest one begins.
  void prepare_others() const {
    auto prepare = [&](int stage, bool first) {
      kernel_of(stage, first).prepare(device_, [&] { return text_of(stage, first); });
    };
    for (int stage = 2; stage >= 0; --stage) {
      if (stage > 0) prepare(stage, true);
      if (passes_ > 1) prepare(stage, false);
    }
  }

  DType dtype_;
  int passes_;
  int64_t lines_, n_, tiles_;
  bool descending_;
  int device_;
  CuStream stream_;
  Scratch counts_, totals_;
};

// The positions of all elements of a dense matrix's rows in order, as uint32.
Tensor sorted_positions(const Tensor& matrix, bool descending) {
  const int device = matrix.device().index;
  const CuStream stream = current_stream(device);
  const int64_t lines = matrix.size(0), n = matrix.size(1);
  const auto item = matrix.item_size();
  use_device(device);
  Radix radix(matrix.dtype(), int(item), lines, n, descending, device, stream);
  const size_t count = size_t(lines * n);
  Scratch keys(count * item, device, stream), other_keys(count * item, device, stream);
  Tensor positions = empty_tensor(matrix.sizes(), DType::UInt32, matrix.device());
  Tensor other_positions = empty_tensor(matrix.sizes(), DType::UInt32, matrix.device());
  const void* from = matrix.data();
  const uint32_t* from_positions = nullptr;
  for (int digit = 0; digit < int(item); ++digit) {
    void* to = digit % 2 ? other_keys.get() : keys.get();
    const Tensor& there = digit % 2 ? other_positions : positions;
    radix.pass(from, from_positions, 8 * digit, to, there.data_as<uint32_t>());
    from = to;
    from_positions = there.data_as<uint32_t>();
  }
  return item == 1 ? positions : other_positions;
}

void sort_long(const LineSort& s, const Lines& lines) {
  if (lines.n >= int64_t(UINT32_MAX))
    throw CudaError("sort: more than " + std::to_string(UINT32_MAX) + " elements in one line");
  GradGuard off(false);
  const Tensor moved = op::movedim(s.in, Dims{s.dim}, Dims{-1});
  const Tensor matrix = op::reshape(op::contiguous(moved), Dims{-1, lines.n});
  // Counters of the passes are 1/8 of the data or less; lines of a launch are limited.
  constexpr int64_t kLinesAtOnce = 32768;
  Dims shape(moved.sizes());
  Tensor order = empty_tensor(matrix.sizes(), DType::UInt32, matrix.device());
  for (int64_t first = 0; first < lines.count(); first += kLinesAtOnce) {
    const int64_t m = std::min(kLinesAtOnce, lines.count() - first);
    const Tensor found = sorted_positions(op::narrow(matrix, 0, first, m), s.descending);
    if (m == lines.count()) order = found;
    else op::copy_(op::narrow(order, 0, first, m), found);
  }
  const Tensor back = op::movedim(op::reshape(order, shape), Dims{-1}, Dims{s.dim});
  op::copy_(s.indices, s.k == lines.n ? back : op::narrow(back, s.dim, 0, s.k));
  read_points(points_along("sort", s.in, s.dim, s.indices), s.values);
}

}  // namespace

void sort_lines(const Tensor& in, int64_t dim, bool descending, int64_t k, const Tensor& values,
                const Tensor& indices) {
  const LineSort s{in, dim, descending, k, values, indices};
  const Lines lines(in, dim, values, indices);
  if (lines.count() == 0 || lines.n == 0 || k == 0) return;
  const bool fits = lines.n <= most_in_block(in.dtype());
  // One block per line selects faster than it sorts; a few long lines occupy too few blocks.
  const bool select = k <= kMostSelected && k * 4 <= lines.n && lines.n > 1024 &&
                      lines.n < int64_t(UINT32_MAX) &&
                      (fits || lines.count() >= 64 || lines.n <= 65536);
  if (select) return select_long(s, lines);
  if (fits) return sort_short(s, lines);
  sort_long(s, lines);
}

void sort_keys(const uint64_t* keys, int64_t n, int bits, uint64_t* sorted, uint32_t* order,
               int device, CuStream stream) {
  if (n >= int64_t(UINT32_MAX)) throw CudaError("more than 2**32 indices at once");
  use_device(device);
  const int passes = std::max(1, (bits + 7) / 8);
  Radix radix(DType::UInt64, passes, 1, n, false, device, stream);
  Scratch other_keys(size_t(n) * 8, device, stream), other_order(size_t(n) * 4, device, stream);
  const void* from = keys;
  const uint32_t* from_order = nullptr;
  for (int digit = 0; digit < passes; ++digit) {
    const bool here = (passes - digit) % 2 == 1;  // the last pass ends in the results
    void* to = here ? static_cast<void*>(sorted) : other_keys.get();
    auto* to_order = here ? order : static_cast<uint32_t*>(other_order.get());
    radix.pass(from, from_order, 8 * digit, to, to_order);
    from = to;
    from_order = to_order;
  }
}

}  // namespace facula::cuda

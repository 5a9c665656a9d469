#include "cuda/points.h"

#include <algorithm>
#include <bit>

#include "cuda/allocator.h"
#include "cuda/fault.h"
#include "cuda/kernel_types.h"
#include "cuda/sort.h"
#include "cuda/walk.h"
#include "op/ops/copying.h"
#include "op/settings.h"
#include "op/tensor_operators.h"

namespace facula::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kMostIndices = kLaunchOperands - 2;

void check_count(const PointSet& points) {
  if (points.along.size() > size_t(kMostIndices))
    throw CudaError(std::string(points.name) + ": more than " + std::to_string(kMostIndices) +
                    " dimensions indexed by tensors at once");
}

struct ByteStrides {
  int64_t at[kLaunchDims];
};
ByteStrides in_bytes(const Dims& strides, int64_t item) {
  ByteStrides bytes;
  for (size_t d = 0; d < strides.size(); ++d) bytes.at[d] = strides[d] * item;
  return bytes;
}

// Values and tensor over the points' shape, and how many bytes are moved at once: 16 where elements
// that no index separates lie together in both.
struct Moves {
  Dims shape;
  ByteStrides values, tensor, index[kMostIndices];
  int64_t step[kMostIndices];
  DType mover;

  Moves(const PointSet& points, const Tensor& given)
      : shape(points.shape),
        values(in_bytes(Dims(given.strides()), int64_t(given.item_size()))),
        tensor(in_bytes(points.strides, int64_t(given.item_size()))),
        mover(mover_type(given.dtype())) {
    const auto item = int64_t(given.item_size());
    for (size_t k = 0; k < points.along.size(); ++k) {
      index[k] = in_bytes(points.along[k].strides, 8);
      step[k] = points.along[k].step * item;
    }
    widen(points, given, item);
  }

 private:
  void widen(const PointSet& points, const Tensor& given, int64_t item) {
    const auto rank = int64_t(shape.size());
    if (rank == 0 || item == 16) return;
    const int64_t inner = rank - 1;
    auto& size = shape[size_t(inner)];
    bool fits = values.at[inner] == item && tensor.at[inner] == item && size * item % 16 == 0;
    fits = fits && reinterpret_cast<uintptr_t>(given.data()) % 16 == 0 &&
           reinterpret_cast<uintptr_t>(points.tensor.data()) % 16 == 0;
    for (size_t k = 0; k < points.along.size(); ++k)
      fits = fits && index[k].at[inner] == 0 && step[k] % 16 == 0;
    for (int64_t d = 0; d < inner; ++d)
      fits = fits && values.at[d] % 16 == 0 && tensor.at[d] % 16 == 0;
    if (!fits) return;
    size = size * item / 16;
    values.at[inner] = tensor.at[inner] = 16;
    mover = DType::Complex128;
  }
};

void put_points(ArgumentWriter& arguments, const PointSet& points, const int64_t* step,
                int device) {
  for (const PointSet::Along& a : points.along) arguments.put<const void*>(a.index.data());
  for (size_t k = 0; k < points.along.size(); ++k) arguments.put(step[k]);
  for (const PointSet::Along& a : points.along)
    arguments.put(fault_site(device, points.name, a.size, int32_t(a.dim), points.negative));
}

void move_points(const PointSet& points, const Tensor& values, bool write) {
  static auto* kernels = new KernelTable;
  check_count(points);
  const int device = points.tensor.device().index;
  const Moves moves(points, values);
  const int count = int(points.along.size());
  Walk walk(moves.shape);
  walk.add(moves.values.at);
  walk.add(moves.tensor.at);
  for (int k = 0; k < count; ++k) walk.add(moves.index[k].at);
  walk.finish();
  if (walk.count() == 0) return;
  use_device(device);
  KernelKey key;
  key.bits[0] =
      walk.bits() | uint64_t(moves.mover) << 6 | uint64_t(write) << 11 | uint64_t(count) << 12;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"points.cuh", write ? "facula_write_points" : "facula_read_points", {}};
    walk.define(text);
    text.define("FACULA_POINTS", std::to_string(count));
    text.define("FACULA_ITEM", device_mover(moves.mover));
    text.define("FACULA_WRITE", write ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(walk.count());
  arguments.put(values.data());
  arguments.put(points.tensor.data());
  put_points(arguments, points, moves.step, device);
  walk.write(arguments);
  const int64_t per_block = kThreads * 4;
  launch_kernel(
      function,
      {.grid_x = unsigned((walk.count() + per_block - 1) / per_block), .block_x = kThreads},
      current_stream(device), arguments.data());
}

// The walk of a combination: values, tensor, indices.
Walk combine_walk(const PointSet& points, const Tensor& values, int64_t* step) {
  const auto item = int64_t(values.item_size());
  Walk walk(points.shape);
  walk.add(in_bytes(Dims(values.strides()), item).at);
  walk.add(in_bytes(points.strides, item).at);
  for (size_t k = 0; k < points.along.size(); ++k) {
    walk.add(in_bytes(points.along[k].strides, 8).at);
    step[k] = points.along[k].step * item;
  }
  walk.finish();
  return walk;
}

// Bits of the farthest place in bytes, and one more that only places nowhere have set.
int place_bits(const PointSet& points, int64_t item) {
  int64_t farthest = 0;
  for (size_t d = 0; d < points.shape.size(); ++d)
    farthest += std::max<int64_t>(points.shape[d] - 1, 0) * points.strides[d] * item;
  for (const PointSet::Along& a : points.along)
    farthest += std::max<int64_t>(a.size - 1, 0) * a.step * item;
  return std::min(64, int(std::bit_width(uint64_t(farthest))) + 1);
}

struct Combination {
  const PointSet& points;
  const Tensor& values;
  Combine combine;
  const Scalar& alpha;
  bool scaled;  // alpha is not 1
};

void put_alpha(ArgumentWriter& arguments, const Scalar& alpha, DType dtype) {
  alignas(16) unsigned char slot[16] = {};
  alpha.store(is_reduced_float(dtype) ? DType::Float32 : dtype, slot);
  arguments.put_slot(slot);
}

// Each value by itself, with atomic operations.
void combine_freely(const Combination& c) {
  static auto* kernels = new KernelTable;
  const int device = c.values.device().index;
  const DType dtype = c.values.dtype();
  int64_t step[kMostIndices];
  const Walk walk = combine_walk(c.points, c.values, step);
  if (walk.count() == 0) return;
  const int count = int(c.points.along.size());
  use_device(device);
  KernelKey key;
  key.bits[0] = walk.bits() | uint64_t(dtype) << 6 | uint64_t(c.combine) << 11 |
                uint64_t(c.scaled) << 14 | uint64_t(count) << 15;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"combine_points.cuh", "facula_combine_points", {}};
    walk.define(text);
    text.define("FACULA_POINTS", std::to_string(count));
    text.define("FACULA_TYPE", device_type(dtype));
    text.define("FACULA_COMBINE", std::to_string(int(c.combine)));
    text.define("FACULA_ALPHA", c.scaled ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(walk.count());
  arguments.put<const void*>(c.values.data());
  arguments.put(c.points.tensor.data());
  put_points(arguments, c.points, step, device);
  put_alpha(arguments, c.alpha, dtype);
  walk.write(arguments);
  launch_kernel(function,
                {.grid_x = unsigned((walk.count() + kThreads - 1) / kThreads), .block_x = kThreads},
                current_stream(device), arguments.data());
}

// By place, in the order of the values, as the host does: places are sorted, then one thread
// combines those that are equal.
void combine_in_order(const Combination& c) {
  static auto* kernels = new KernelTable;
  const int device = c.values.device().index;
  const CuStream stream = current_stream(device);
  const DType dtype = c.values.dtype();
  int64_t step[kMostIndices];
  const Walk walk = combine_walk(c.points, c.values, step);
  const int64_t n = walk.count();
  if (n == 0) return;
  const int count = int(c.points.along.size());
  use_device(device);
  Scratch places(size_t(n) * 8, device, stream), sorted(size_t(n) * 8, device, stream),
      order(size_t(n) * 4, device, stream);
  for (int stage = 0; stage < 2; ++stage) {
    if (stage == 1)
      sort_keys(static_cast<const uint64_t*>(places.get()), n,
                place_bits(c.points, int64_t(c.values.item_size())),
                static_cast<uint64_t*>(sorted.get()), static_cast<uint32_t*>(order.get()), device,
                stream);
    KernelKey key;
    key.bits[0] = walk.bits() | uint64_t(dtype) << 6 | uint64_t(c.combine) << 11 |
                  uint64_t(c.scaled) << 14 | uint64_t(count) << 15 | uint64_t(stage) << 20;
    CuFunction function = kernels->find(key).on(device, [&] {
      KernelText text{"combine_sorted.cuh", stage ? "facula_combine_sorted" : "facula_places", {}};
      walk.define(text);
      text.define("FACULA_POINTS", std::to_string(count));
      text.define("FACULA_TYPE", device_type(dtype));
      text.define("FACULA_COMBINE", std::to_string(int(c.combine)));
      text.define("FACULA_ALPHA", c.scaled ? "1" : "0");
      text.define("FACULA_STAGE", std::to_string(stage));
      return text;
    });
    ArgumentWriter arguments;
    arguments.put(n);
    arguments.put<const void*>(c.values.data());
    arguments.put(c.points.tensor.data());
    put_points(arguments, c.points, step, device);
    arguments.put(stage ? sorted.get() : places.get());
    arguments.put<const void*>(order.get());
    put_alpha(arguments, c.alpha, dtype);
    walk.write(arguments);
    launch_kernel(function,
                  {.grid_x = unsigned((n + kThreads - 1) / kThreads), .block_x = kThreads}, stream,
                  arguments.data());
  }
}

}  // namespace

void read_points(const PointSet& points, const Tensor& values) {
  move_points(points, values, false);
}
void write_points(const PointSet& points, const Tensor& values) {
  // Of values that meet the last one wins, as on the host, where programs ask for that.
  if (settings.deterministic && values.numel() < int64_t(UINT32_MAX)) {
    check_count(points);
    return combine_in_order({points, values, Combine::Assign, Scalar(1), false});
  }
  move_points(points, values, true);
}

void combine_points(const PointSet& points, const Tensor& values, Combine combine,
                    const Scalar& alpha) {
  check_count(points);
  const DType dtype = values.dtype();
  const Combination given{points, values, combine, alpha, !alpha.equals(1)};
  // No atomic operation multiplies 16 bytes.
  const bool ordered =
      settings.deterministic || (dtype == DType::Complex128 && combine == Combine::Multiply);
  if (ordered && values.numel() < int64_t(UINT32_MAX)) return combine_in_order(given);
  if (!is_reduced_float(dtype)) return combine_freely(given);
  // Small floats are added up in float32 and rounded once.
  GradGuard off(false);
  PointSet wide = points;
  wide.tensor = op::_to_copy(points.tensor, DType::Float32);
  const Tensor& from = points.tensor;
  if (!same(wide.tensor.strides(), from.strides())) {
    wide.tensor = empty_tensor(from.sizes(), from.strides(), DType::Float32, from.device());
    op::copy_(wide.tensor, from);
  }
  const Tensor wide_values = op::_to_copy(values, DType::Float32);
  combine_freely({wide, wide_values, combine, alpha, given.scaled});
  op::copy_(from, wide.tensor);
}

}  // namespace facula::cuda

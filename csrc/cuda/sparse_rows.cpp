#include "cuda/sparse_rows.h"

#include <algorithm>
#include <bit>

#include "cuda/kernel_types.h"
#include "cuda/line.h"
#include "cuda/translate.h"
#include "op/hooks/sparse.h"

namespace facula::cuda {
namespace {

constexpr int64_t kThreads = 256, kWarp = 32;

int64_t power_at_least(int64_t n) {
  return int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(n, 1))));
}

// The threads of a row: `lanes` have its columns, `shares` its elements. Together they are at most
// a warp, or a block where rows are long and warps would be few. That depends on shapes alone, and
// so does the order of sums.
struct RowThreads {
  int64_t lanes, shares;

  RowThreads(int64_t rows, int64_t nnz, int64_t loads)
      : lanes(std::min(power_at_least(loads), kWarp)),
        shares(std::min(power_at_least(nnz / rows), kWarp / lanes)) {
    constexpr int64_t kFewWarps = 4096, kEach = 4;  // a device's warps, elements of a share
    const int64_t tiles = (loads + lanes - 1) / lanes, all = kThreads / lanes;
    if (rows * tiles <= kFewWarps && nnz / rows >= kEach * all) shares = all;
  }
};

enum class Rows { Multiply, Sample };

void run_rows(Rows kind, const Tensor& starts, const Tensor& columns, const Tensor& first,
              const Tensor& second, const Tensor& out) {
  static auto* kernels = new KernelTable;
  const int device = out.device().index;
  const int64_t rows = starts.numel() - 1, nnz = columns.numel(), width = second.size(1);
  if (out.numel() == 0) return;
  const bool multiply = kind == Rows::Multiply;
  const int vector = vector_width(width, {&second, multiply ? &out : &first});
  const RowThreads threads(rows, nnz, width / vector);
  KernelKey key;
  key.bits[0] = uint64_t(out.dtype()) | uint64_t(kind) << 5 | uint64_t(vector) << 6;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"sparse_rows.cuh", multiply ? "facula_sparse_mm" : "facula_sampled_mm", {}};
    text.define("FACULA_TYPE", device_type(out.dtype()));
    text.define("FACULA_VECTOR", std::to_string(vector));
    text.define("FACULA_KIND", std::to_string(int(kind)));
    return text;
  });
  ArgumentWriter arguments;
  for (const Tensor* t : {&starts, &columns, &first, &second, &out}) arguments.put(t->data());
  for (int64_t n : {rows, width}) arguments.put(n);
  arguments.put(int32_t(threads.lanes));
  arguments.put(int32_t(threads.shares));
  const int64_t rows_of_block = kThreads / (threads.lanes * threads.shares);
  const int64_t tiles = (width / vector + threads.lanes - 1) / threads.lanes;
  launch_kernel(function,
                {.grid_x = unsigned((rows + rows_of_block - 1) / rows_of_block),
                 .grid_y = multiply ? unsigned(std::min<int64_t>(tiles, 65535)) : 1,
                 .block_x = unsigned(kThreads)},
                current_stream(device), arguments.data());
}

void multiply_rows(const Tensor& starts, const Tensor& columns, const Tensor& values,
                   const Tensor& matrix, const Tensor& out) {
  run_rows(Rows::Multiply, starts, columns, values, matrix, out);
}
void sample_rows(const Tensor& starts, const Tensor& columns, const Tensor& a, const Tensor& b,
                 const Tensor& out) {
  run_rows(Rows::Sample, starts, columns, a, b, out);
}

}  // namespace

void register_sparse_rows() {
  device_sparse.multiply_rows.set(translate<multiply_rows>);
  device_sparse.sample_rows.set(translate<sample_rows>);
}

}  // namespace facula::cuda

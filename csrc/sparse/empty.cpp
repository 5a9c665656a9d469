// Sparse tensors without elements.
#include "op/ops/creation.h"
#include "op/ops/sparse.h"
#include "sparse/convert.h"

namespace facula::sparse {

namespace {

struct Form {
  SparseLayout layout;
  int64_t dense_dim = 0;
  IntSpan block = {};
  DType positions = DType::Int64;
};

Tensor zeros(const Dims& size, DType dtype, Device device) {
  return op::zeros(size, dtype, std::nullopt, device);
}

Tensor make(IntSpan size, const Form& form, DType dtype, Device device) {
  const Device place = device_of_positions(device);
  const size_t rest = size.size() - size_t(form.dense_dim);
  Dims shape;  // of the values
  const auto finish_shape = [&] {
    for (int64_t n : size.subspan(rest)) shape.push_back(n);
    return shape;
  };
  if (form.layout == SparseLayout::Coo) {
    shape.push_back(0);
    return from_coo(zeros(Dims{int64_t(rest), 0}, DType::Int64, place),
                    zeros(finish_shape(), dtype, device), size, true);
  }
  if (rest < 2)
    runtime_error("Only batched sparse compressed (non-block) tensors are supported, but got size ",
                  size);
  const bool by_rows = form.layout == SparseLayout::Csr || form.layout == SparseLayout::Bsr;
  int64_t lines = size[rest - (by_rows ? 2 : 1)];
  if (!form.block.empty()) lines /= form.block[by_rows ? 0 : 1];
  for (int64_t n : size.first(rest - 2)) shape.push_back(n);
  Dims starts(shape);
  starts.push_back(lines + 1);
  shape.push_back(0);
  const Dims plain(shape);
  for (int64_t n : form.block) shape.push_back(n);
  return from_compressed(form.layout, zeros(starts, form.positions, place),
                         zeros(plain, form.positions, place), zeros(finish_shape(), dtype, device),
                         size, true);
}

bool in_blocks(SparseLayout layout) {
  return layout == SparseLayout::Bsr || layout == SparseLayout::Bsc;
}

}  // namespace

Tensor without_elements(IntSpan size, SparseLayout layout, DType dtype, Device device) {
  if (in_blocks(layout))
    runtime_error("expected sparse compressed (non-block) tensor layout but got facula.",
                  layout_name(layout), ": the size of its blocks is not known");
  return make(size, {layout}, dtype, device);
}

Tensor without_elements(const Tensor& like, SparseLayout layout, DType dtype, Device device) {
  const SparseParts& parts = sparse_parts(like);
  const DType wanted = dtype == DType::None ? like.dtype() : dtype;
  if (in_blocks(layout) && !parts.in_blocks())
    return without_elements(like.sizes(), layout, wanted, device);
  Form form{layout, parts.dense_dim};
  if (parts.layout != SparseLayout::Coo) form.positions = parts.indices.dtype();
  if (in_blocks(layout)) form.block = parts.values.sizes().subspan(size_t(parts.batch_dim) + 1, 2);
  return make(like.sizes(), form, wanted, device);
}

}  // namespace facula::sparse

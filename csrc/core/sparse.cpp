#include "core/sparse.h"

namespace facula {

static void release_parts(Storage* s) {
  delete static_cast<SparseParts*>(s->context);
}

const char* layout_name(SparseLayout layout) {
  static const char* const names[] = {"strided",    "sparse_coo", "sparse_csr",
                                      "sparse_csc", "sparse_bsr", "sparse_bsc"};
  return names[int(layout)];
}

const SparseParts& sparse_parts(const Tensor& t) {
  if (!is_sparse(t)) runtime_error("expected a sparse tensor, but got a strided one");
  return *static_cast<const SparseParts*>(t->storage->context);
}

SparseParts& record_of(const Tensor& t) {
  sparse_parts(t);
  return *static_cast<SparseParts*>(t->storage->context);
}

SparseLayout layout_of(const Tensor& t) {
  return is_sparse(t) ? sparse_parts(t).layout : SparseLayout::Strided;
}

Tensor make_sparse(IntSpan sizes, SparseParts parts) {
  checked_numel(sizes);
  const DType dtype = parts.values.dtype();
  const Device device = parts.values.device();
  parts.mark_positions();
  auto* record = new SparseParts(std::move(parts));
  Storage* storage = borrow_storage(nullptr, 0, device, release_parts, record);
  Tensor t = tensor_on_storage(storage, sizes, contiguous_strides(sizes), 0, dtype);
  t->keys |= kKeySparse;
  return t;
}

void replace_parts(const Tensor& t, IntSpan sizes, SparseParts parts) {
  checked_numel(sizes);
  t->dtype = parts.values.dtype();
  parts.mark_positions();
  *static_cast<SparseParts*>(t->storage->context) = std::move(parts);
  if (!same(sizes, t.sizes())) t->set_geometry(sizes, contiguous_strides(sizes));
}

}  // namespace facula

// Sparse tensors: sizes as usual, and in the place of memory a record of the parts that say where
// the elements are and what they are. The record hangs on a storage without bytes, so versions,
// aliases and lifetimes are those of any tensor. Parts are plain tensors off the tape.
#pragma once
#include "core/tensor.h"

namespace facula {

// The last free bit of TensorImpl::keys (see Key): `call` hands such tensors to csrc/sparse.
inline constexpr uint8_t kKeySparse = 128;

enum class SparseLayout : uint8_t { Strided, Coo, Csr, Csc, Bsr, Bsc };  // numbered as in Python
const char* layout_name(SparseLayout layout);

struct SparseParts {
  SparseLayout layout = SparseLayout::Coo;
  // Coo: indices (sparse_dim, nnz), values (nnz, *dense sizes).
  // Csr, Csc: where each row (column) begins (rows + 1), the columns (rows) of the elements (nnz),
  // values (nnz, *dense sizes). Bsr, Bsc: likewise for blocks, values (nnz, height, width, ...).
  // Of a batch of matrices each of these has batch_dim dimensions more in front.
  Tensor indices, plain, values;
  int64_t sparse_dim = 0, dense_dim = 0, batch_dim = 0;
  bool coalesced = false;  // Coo: positions are sorted and distinct
  // The versions of indices and plain at which they were known to lie within the sizes: programs
  // can write to them.
  uint32_t indices_version = 0, plain_version = 0;

  bool positions_written() const {
    return indices.version() != indices_version ||
           (plain.defined() && plain.version() != plain_version);
  }
  void mark_positions() {
    indices_version = indices.version();
    if (plain.defined()) plain_version = plain.version();
  }

  int64_t nnz() const { return layout == SparseLayout::Coo ? indices.size(1) : plain.size(-1); }
  // Compressed by rows: the first dimension is the compressed one.
  bool by_rows() const { return layout == SparseLayout::Csr || layout == SparseLayout::Bsr; }
  bool in_blocks() const { return layout == SparseLayout::Bsr || layout == SparseLayout::Bsc; }
};

inline bool is_sparse(const Tensor& t) {
  return t->keys & kKeySparse;
}
const SparseParts& sparse_parts(const Tensor& t);
SparseParts& record_of(const Tensor& t);  // the same, to be changed
SparseLayout layout_of(const Tensor& t);
Tensor make_sparse(IntSpan sizes, SparseParts parts);
// Gives `t`, and all tensors that share its record, other parts.
void replace_parts(const Tensor& t, IntSpan sizes, SparseParts parts);

}  // namespace facula

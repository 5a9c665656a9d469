// Sparse tensors from parts and in other layouts, in terms of operators, so on the tape.
#pragma once
#include "sparse/pattern.h"

namespace facula::sparse {

Tensor values_of(const Tensor& t);
Tensor from_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced);
Tensor from_keys(const Tensor& keys, const Tensor& values, IntSpan sizes, bool coalesced);
Tensor from_compressed(SparseLayout layout, const Tensor& starts, const Tensor& plain,
                       const Tensor& values, IntSpan sizes, bool sorted);
// The elements of `t` where they are, with other values.
Tensor with_values(const Tensor& t, const Tensor& values);

// Nothing but zeros: of a size, where what is not sparse are batches, and of the size of a sparse
// tensor, whose dense dimensions and blocks they have as well.
Tensor without_elements(IntSpan size, SparseLayout layout, DType dtype, Device device);
Tensor without_elements(const Tensor& like, SparseLayout layout, DType dtype, Device device);

int64_t sparse_numel(const Tensor& t);  // of the sparse dimensions together
IntSpan sparse_sizes(const Tensor& t);
IntSpan dense_sizes(const Tensor& t);
// One linear position for each element (or row of dense dimensions), in the order of the values.
Tensor element_keys(const Tensor& t);
// The values in that order, (elements, *dense sizes): blocks are taken apart.
Tensor element_values(const Tensor& t);

Tensor to_coo(const Tensor& t);
Tensor coalesce(const Tensor& t);  // in Coo
// In the layout of `like`, which has the same number of dimensions; where its blocks do not fit the
// size, as `t` is.
Tensor in_layout_of(const Tensor& t, const Tensor& like);

// Matrices of one compressed layout, with as many elements each, as a batch.
Tensor stacked_matrices(const std::vector<Tensor>& matrices);

// A matrix by rows.
struct Csr {
  Tensor starts, columns, values;
  int64_t rows, width;
};
Csr csr_of(const Tensor& t);
Csr turned(const Csr& m);

// Values at places. On the meta device nothing is known of places, and tensors have no elements.
Tensor rows_at(const Tensor& values, const Tensor& index);
// The rows of (groups, ...) that entries belong to, added up.
Tensor add_groups(const Tensor& values, const Tensor& member, int64_t groups);
// The same where the order of members is known (undefined: they are in it); sums of floats on
// devices do not vary then.
Tensor add_in_order(const Tensor& values, const Tensor& member, const Tensor& order,
                    int64_t groups);

}  // namespace facula::sparse

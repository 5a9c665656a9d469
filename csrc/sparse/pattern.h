// Positions of elements: their order, their groups and the forms they are written in. Everything
// here is int64 on the host and off the tape.
#pragma once
#include "core/sparse.h"

namespace facula::sparse {

// Contiguous int64, whatever dtype and strides the indices came in.
Tensor plain_indices(const Tensor& t);

// The positions (dims, n) as one number each, in row-major order of `sizes`.
Tensor linear_keys(const Tensor& indices, IntSpan sizes);
// The way back: (dims, n) from numbers.
Tensor positions_of(const Tensor& keys, IntSpan sizes);

// Equal keys brought together, in rising order; stable.
struct Groups {
  Tensor keys;    // the distinct ones
  Tensor order;   // the entries in the order of their keys; undefined when they are in it
  Tensor member;  // for each entry its group; undefined when entry i is group i
  bool distinct = true;
};
Groups group_keys(const Tensor& keys);
// The same for two lists of sorted, distinct keys, one behind the other.
Groups merge_keys(const Tensor& a, const Tensor& b);

// From sorted rows to where each of `count` rows begins, (count + 1), and back.
Tensor row_starts(const Tensor& rows, int64_t count);
Tensor rows_of(const Tensor& starts, int64_t nnz);

// A pattern compressed the other way, and for each of its entries the place of the old one.
struct Turned {
  Tensor starts, plain, order;
};
Turned turn_pattern(const Tensor& starts, const Tensor& plain, int64_t columns);

// Where the sorted keys `wanted` are among the sorted, distinct keys `known`: pairs of places.
struct Matches {
  Tensor wanted, known;
};
Matches match_keys(const Tensor& wanted, const Tensor& known);

// Raise when the parts do not describe a tensor of `sizes`. The latter returns whether the plain
// indices are sorted and distinct in every row.
void check_coo(const Tensor& indices, const Tensor& values, IntSpan sizes);
bool check_compressed(SparseLayout layout, const Tensor& starts, const Tensor& plain,
                      const Tensor& values, IntSpan sizes);

// Other sizes for a COO tensor in place: elements stay unless `clear`.
void resize(const Tensor& t, IntSpan sizes, int64_t sparse_dim, int64_t dense_dim, bool clear);

}  // namespace facula::sparse

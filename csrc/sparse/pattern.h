// Positions of elements: their order, their groups and the forms they are written in. Everything
// here is int64 and off the tape. Positions lie where the values do, those of meta tensors in host
// memory; there loops deal with them, on devices operators (device_pattern.h).
#pragma once
#include <atomic>

#include "core/sparse.h"

namespace facula::sparse {

Device device_of_positions(Device values);

// For tests: positions in host memory are dealt with as those on devices are.
inline std::atomic<bool> host_as_device{false};
// Whether loops may read positions.
inline bool has_loops(const Tensor& positions) {
  return positions.is_cpu() && !host_as_device.load(std::memory_order_relaxed);
}

// Contiguous int64, whatever dtype and strides the indices came in.
Tensor plain_indices(const Tensor& t);
// The same for loops: copied to the host where it is not.
Tensor in_host_memory(const Tensor& t);
// Of two tensors of one shape.
bool same_numbers(const Tensor& a, const Tensor& b);

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
// The same for two lists of sorted, distinct keys, one behind the other; always with members.
Groups merge_keys(const Tensor& a, const Tensor& b);
// The first entry of each of `count` groups.
Tensor first_entries(const Tensor& member, int64_t count);

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

// Blocks of a matrix, or single elements as blocks of 1 x 1.
struct BlockShape {
  int64_t height, width;
};
// Linear keys of the elements of blocks in given rows and columns of blocks; `columns` is the width
// of the matrix.
Tensor keys_in_blocks(const Tensor& row, const Tensor& column, int64_t columns, BlockShape block);
// The other way: for each key its block, row by row of blocks or column by column (each has `inner`
// of them), and its place in memory where block b is the members' number b (undefined: key i's is
// i).
Tensor block_keys(const Tensor& keys, int64_t columns, BlockShape block, bool by_rows,
                  int64_t inner);
Tensor places_in_blocks(const Tensor& keys, const Tensor& member, int64_t columns,
                        BlockShape block);

// Every product of an element of a and one of b that meet, and the element of the result that it
// is a part of. Matrices are by rows; b has `width` columns.
struct Meetings {
  Tensor a, b, slot;
  Tensor order;            // of the slots, as in Groups
  Tensor starts, columns;  // of the result
};
Meetings meetings(const Tensor& a_starts, const Tensor& a_columns, const Tensor& b_starts,
                  const Tensor& b_columns, int64_t width);

// The entries whose position is among start, start + step, ... below end: which they are, and how
// many steps they are from start.
struct Cut {
  Tensor kept, positions;
};
Cut cut_positions(const Tensor& row, int64_t start, int64_t end, int64_t step);

// For one after the other of the positions `wanted`, which lie below `size`, the entries that have
// it: the entry, and the place of the position in `wanted`.
struct Picks {
  Tensor entries, places;
};
Picks pick_positions(const Tensor& row, const Tensor& wanted, int64_t size);
void check_wanted(const Tensor& wanted, int64_t dim, int64_t size);

// Raise when the parts do not describe a tensor of `sizes` (pattern_checks.cpp). The latter returns
// whether the plain indices are sorted and distinct in every row.
void check_coo(const Tensor& indices, const Tensor& values, IntSpan sizes);
bool check_compressed(SparseLayout layout, const Tensor& starts, const Tensor& plain,
                      const Tensor& values, IntSpan sizes);

// Other sizes for a COO tensor in place: elements stay unless `clear`.
void resize(const Tensor& t, IntSpan sizes, int64_t sparse_dim, int64_t dense_dim, bool clear);

}  // namespace facula::sparse

// The functions of pattern.h for positions on devices. They are made of operators, and wait for the
// device only where the size of a result, or an error, depends on positions.
#pragma once
#include <optional>

#include "sparse/pattern.h"

namespace facula::sparse::device {

bool same_numbers(const Tensor& a, const Tensor& b);
Tensor linear_keys(const Tensor& indices, IntSpan sizes);
Tensor positions_of(const Tensor& keys, IntSpan sizes);
Groups group_keys(const Tensor& keys);
Groups merge_keys(const Tensor& a, const Tensor& b);
Tensor first_entries(const Tensor& member, int64_t count);
Tensor row_starts(const Tensor& rows, int64_t count);
Tensor rows_of(const Tensor& starts, int64_t nnz);
Turned turn_pattern(const Tensor& starts, const Tensor& plain, int64_t columns);
Matches match_keys(const Tensor& wanted, const Tensor& known);
Tensor keys_in_blocks(const Tensor& row, const Tensor& column, int64_t columns, BlockShape block);
Tensor block_keys(const Tensor& keys, int64_t columns, BlockShape block, bool by_rows,
                  int64_t inner);
Tensor places_in_blocks(const Tensor& keys, const Tensor& member, int64_t columns,
                        BlockShape block);
Meetings meetings(const Tensor& a_starts, const Tensor& a_columns, const Tensor& b_starts,
                  const Tensor& b_columns, int64_t width);
Cut cut_positions(const Tensor& row, int64_t start, int64_t end, int64_t step);
Picks pick_positions(const Tensor& row, const Tensor& wanted, int64_t size);

// Whether each row of `indices` (dims, n) is within [0, size).
bool within(const Tensor& indices, IntSpan sizes);
// Whether the plain indices are sorted and distinct in every row; nothing when the pattern is not
// one of so many rows and columns.
std::optional<bool> sorted_pattern(const Tensor& starts, const Tensor& plain, int64_t columns);

}  // namespace facula::sparse::device

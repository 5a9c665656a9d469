#include "sparse/device_pattern.h"

#include <climits>
#include <vector>

#include "kernels/destination.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/reductions.h"
#include "op/ops/selection.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::sparse::device {
namespace {

Tensor empty_like(const Tensor& t, IntSpan sizes) {
  return empty_tensor(sizes, DType::Int64, t.device());
}
Tensor counting(int64_t n, Device device) {
  return op::arange(Scalar(n), DType::Int64, std::nullopt, device);
}
Tensor picked(const Tensor& t, const Tensor& index) {
  return op::index_select(t, 0, index);
}
Tensor from_second(const Tensor& t) {
  return op::slice(t, 0, 1);
}
Tensor but_last(const Tensor& t) {
  return op::slice(t, 0, 0, t.numel() - 1);
}
Tensor quotient(const Tensor& a, int64_t b) {
  return op::div_mode(a, Scalar(b), "floor");
}
// The places of what is true. Waits for the device.
Tensor places_of(const Tensor& mask) {
  return plain_indices(op::select(op::nonzero(mask), 1, 0));
}
// The values where `places`, which are all places of the result, say.
Tensor scattered(const Tensor& values, const Tensor& places) {
  return op::index_copy_(empty_like(values, values.sizes()), 0, places, values);
}

// Numbers without dimensions, on the host. Waits for the device, once.
std::vector<int64_t> read(const std::vector<Tensor>& numbers) {
  const Tensor host = op::_to_copy(op::stack(numbers, 0), DType::Int64, Device{});
  return {host.data_as<int64_t>(), host.data_as<int64_t>() + host.numel()};
}

// Numbers and places, stable. What fits is sorted as int32, which takes half the passes.
std::pair<Tensor, Tensor> in_order(const Tensor& numbers, int64_t largest) {
  if (largest > INT32_MAX) {
    const auto [sorted, order] = op::sort(numbers, 0, false);
    return {sorted, order};
  }
  const auto [sorted, order] = op::sort(op::_to_copy(numbers, DType::Int32), 0, false);
  return {op::_to_copy(sorted, DType::Int64), order};
}

// Of sorted keys, at least one: the distinct ones, and which of these each is.
struct Runs {
  Tensor keys, member;
};
Runs runs_of(const Tensor& sorted) {
  const Tensor first =
      op::cat(std::vector<Tensor>{op::ones(Dims{1}, DType::Bool, std::nullopt, sorted.device()),
                                  op::ne(from_second(sorted), but_last(sorted))},
              0);
  return {picked(sorted, places_of(first)), op::cumsum(first, 0, DType::Int64) - Value(1)};
}

// The numbers of all ranges from begins[i] to below ends[i], one range after the other, and the i
// of each.
struct Spread {
  Tensor range, number;
};
Spread spread(const Tensor& begins, const Tensor& ends) {
  const int64_t n = begins.numel();
  if (n == 0) return {empty_like(begins, Dims{0}), empty_like(begins, Dims{0})};
  const Tensor until = op::cumsum(ends - begins, 0);
  const int64_t total = read({op::select(until, 0, n - 1)})[0];
  const Tensor place = counting(total, begins.device());
  const Tensor range = op::searchsorted(until, place, false, true);
  // Range i ends with number ends[i] - 1 at place until[i] - 1.
  return {range, place + picked(ends - until, range)};
}

}  // namespace

bool same_numbers(const Tensor& a, const Tensor& b) {
  return read({op::sum(op::ne(a, b))})[0] == 0;
}

Tensor linear_keys(const Tensor& indices, IntSpan sizes) {
  if (sizes.empty())
    return op::zeros(Dims{indices.size(1)}, DType::Int64, std::nullopt, indices.device());
  Tensor keys = plain_indices(op::select(indices, 0, 0));
  for (size_t d = 1; d < sizes.size(); ++d)
    keys = op::add(op::select(indices, 0, int64_t(d)), keys, Scalar(sizes[d]));
  return plain_indices(keys);
}

Tensor positions_of(const Tensor& keys, IntSpan sizes) {
  if (sizes.empty() || keys.numel() == 0)
    return empty_like(keys, Dims{int64_t(sizes.size()), keys.numel()});
  std::vector<Tensor> rows(sizes.size());
  Tensor rest = keys;
  for (size_t d = sizes.size(); d-- > 1;) {
    const Tensor outer = quotient(rest, sizes[d]);
    rows[d] = op::sub(rest, outer, Scalar(sizes[d]));
    rest = outer;
  }
  rows[0] = rest;
  return op::stack(rows, 0);
}

Groups group_keys(const Tensor& keys) {
  Groups groups;
  groups.keys = keys;
  if (keys.numel() < 2) return groups;
  const std::vector<int64_t> seen =
      read({op::amin(from_second(keys) - but_last(keys)), op::amax(keys)});
  const int64_t least_step = seen[0], largest = seen[1];
  if (least_step > 0) return groups;
  Tensor sorted = keys;
  if (least_step < 0) std::tie(sorted, groups.order) = in_order(keys, largest);
  const Runs runs = runs_of(sorted);
  groups.keys = runs.keys;
  groups.distinct = runs.keys.numel() == keys.numel();
  groups.member = groups.order.defined() ? scattered(runs.member, groups.order) : runs.member;
  return groups;
}

Groups merge_keys(const Tensor& a, const Tensor& b) {
  const int64_t n = a.numel(), m = b.numel();
  Groups groups;
  groups.keys = groups.member = empty_like(a, Dims{n + m});
  if (n + m == 0) return groups;
  // Of equal keys that of a comes first.
  const Tensor places =
      op::cat(std::vector<Tensor>{op::searchsorted(b, a) + counting(n, a.device()),
                                  op::searchsorted(a, b, false, true) + counting(m, a.device())},
              0);
  const Runs runs = runs_of(scattered(op::cat(std::vector<Tensor>{a, b}, 0), places));
  groups.keys = runs.keys;
  groups.member = picked(runs.member, places);
  groups.distinct = runs.keys.numel() == n + m;
  return groups;
}

Tensor first_entries(const Tensor& member, int64_t count) {
  const int64_t n = member.numel();
  const Tensor last = op::full(Dims{count}, Scalar(n), DType::Int64, std::nullopt, member.device());
  return op::index_reduce(last, 0, member, counting(n, member.device()), "amin");
}

Tensor row_starts(const Tensor& rows, int64_t count) {
  return op::searchsorted(plain_indices(rows), counting(count + 1, rows.device()));
}

Tensor rows_of(const Tensor& starts, int64_t nnz) {
  return op::searchsorted(from_second(starts), counting(nnz, starts.device()), false, true);
}

Turned turn_pattern(const Tensor& starts, const Tensor& plain, int64_t columns) {
  const auto [sorted, order] = in_order(plain, columns);
  return {row_starts(sorted, columns), picked(rows_of(starts, plain.numel()), order), order};
}

Matches match_keys(const Tensor& wanted, const Tensor& known) {
  const int64_t m = known.numel();
  if (wanted.numel() == 0 || m == 0) {
    const Tensor none = empty_like(wanted, Dims{0});
    return {none, none};
  }
  const Tensor place = op::clamp_max(op::searchsorted(known, wanted), m - 1);
  const Tensor found = places_of(op::eq(picked(known, place), wanted));
  return {found, picked(place, found)};
}

Tensor keys_in_blocks(const Tensor& row, const Tensor& column, int64_t columns, BlockShape block) {
  if (block.height == 1 && block.width == 1) return op::add(column, row, Scalar(columns));
  auto spread_out = [](const Tensor& t, int64_t step, int64_t n) {  // (entries, n)
    return op::unsqueeze(t * Value(step), 1) + counting(n, t.device());
  };
  const Tensor rows = op::unsqueeze(spread_out(row, block.height, block.height), 2),
               inner = op::unsqueeze(spread_out(column, block.width, block.width), 1);
  return op::reshape(op::add(inner, rows, Scalar(columns)), Dims{-1});
}

Tensor block_keys(const Tensor& keys, int64_t columns, BlockShape block, bool by_rows,
                  int64_t inner) {
  if (keys.numel() == 0) return keys;
  const Tensor row = quotient(keys, columns), column = op::sub(keys, row, Scalar(columns));
  const Tensor r = quotient(row, block.height), c = quotient(column, block.width);
  return by_rows ? op::add(c, r, Scalar(inner)) : op::add(r, c, Scalar(inner));
}

Tensor places_in_blocks(const Tensor& keys, const Tensor& member, int64_t columns,
                        BlockShape block) {
  if (keys.numel() == 0) return keys;
  const Tensor row = quotient(keys, columns), column = op::sub(keys, row, Scalar(columns));
  const Tensor of = member.defined() ? member : counting(keys.numel(), keys.device());
  const Tensor line = op::add(op::remainder(row, block.height), of, Scalar(block.height));
  return op::add(op::remainder(column, block.width), line, Scalar(block.width));
}

Meetings meetings(const Tensor& a_starts, const Tensor& a_columns, const Tensor& b_starts,
                  const Tensor& b_columns, int64_t width) {
  const int64_t rows = a_starts.numel() - 1;
  const Spread all = spread(picked(b_starts, a_columns), picked(from_second(b_starts), a_columns));
  const Tensor row = picked(rows_of(a_starts, a_columns.numel()), all.range);
  const Groups groups = group_keys(op::add(picked(b_columns, all.number), row, Scalar(width)));
  const Tensor at = positions_of(groups.keys, Dims{rows, width});
  const Tensor slot =
      groups.member.defined() ? groups.member : counting(all.range.numel(), a_starts.device());
  return {all.range,
          all.number,
          slot,
          groups.order,
          row_starts(op::select(at, 0, 0), rows),
          plain_indices(op::select(at, 0, 1))};
}

Cut cut_positions(const Tensor& row, int64_t start, int64_t end, int64_t step) {
  Tensor inside = op::logical_and(op::ge(row, start), op::lt(row, end));
  if (step > 1)
    inside = op::logical_and(inside, op::eq(op::remainder(row - Value(start), step), 0));
  const Tensor kept = places_of(inside);
  return {kept, quotient(picked(row, kept) - Value(start), step)};
}

Picks pick_positions(const Tensor& row, const Tensor& wanted, int64_t size) {
  const auto [sorted, order] = in_order(row, size);
  const Spread all =
      spread(op::searchsorted(sorted, wanted), op::searchsorted(sorted, wanted, false, true));
  return {picked(order, all.number), all.range};
}

bool within(const Tensor& indices, IntSpan sizes) {
  if (indices.numel() == 0) return true;
  const Tensor ends =
      op::stack(std::vector<Tensor>{op::amin(indices, Dims{1}), op::amax(indices, Dims{1})}, 0);
  const Tensor host = op::_to_copy(ends, DType::Int64, Device{});
  const int64_t* end = host.data_as<int64_t>();
  for (int64_t d = 0, dims = indices.size(0); d < dims; ++d)
    if (end[d] < 0 || end[dims + d] >= sizes[size_t(d)]) return false;
  return true;
}

std::optional<bool> sorted_pattern(const Tensor& starts, const Tensor& plain, int64_t columns) {
  const int64_t rows = starts.numel() - 1, n = plain.numel();
  std::vector<Tensor> facts{op::select(starts, 0, 0), op::select(starts, 0, rows)};
  if (rows) facts.push_back(op::amin(from_second(starts) - but_last(starts)));
  if (n) {
    const Tensor row = rows_of(starts, n);
    const Tensor falls = op::logical_and(op::ge(but_last(plain), from_second(plain)),
                                         op::eq(but_last(row), from_second(row)));
    for (const Tensor& fact : {op::amin(plain), op::amax(plain), op::sum(falls)})
      facts.push_back(fact);
  }
  const std::vector<int64_t> seen = read(facts);
  if (seen[0] != 0 || seen[1] != n || (rows && seen[2] < 0)) return std::nullopt;
  if (n == 0) return true;
  const size_t at = seen.size() - 3;
  if (seen[at] < 0 || seen[at + 1] >= columns) return std::nullopt;
  return seen[at + 2] == 0;
}

}  // namespace facula::sparse::device

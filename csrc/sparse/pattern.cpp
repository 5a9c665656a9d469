#include "sparse/pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/destination.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "sparse/device_pattern.h"

namespace facula::sparse {
namespace {

Tensor integers(IntSpan sizes) {
  return empty_tensor(sizes, DType::Int64, Device{});
}

int64_t* numbers(const Tensor& t) {
  return t.data_as<int64_t>();
}

Tensor integers(const std::vector<int64_t>& given) {
  Tensor t = integers(Dims{int64_t(given.size())});
  std::copy(given.begin(), given.end(), numbers(t));
  return t;
}

Tensor first_of(const Tensor& t, int64_t count) {
  return alias_tensor(t, Dims{count}, Dims{1}, 0);
}

// Stable order of the keys: counting passes over 11 bits at a time, as many as the largest needs.
void radix_order(const int64_t* keys, int64_t n, int64_t largest, int64_t* order) {
  constexpr int kBits = 11;
  constexpr int64_t kBuckets = 1 << kBits;
  struct Entry {
    int64_t key, place;
  };
  std::unique_ptr<Entry[]> from(new Entry[size_t(n)]), to(new Entry[size_t(n)]);
  for (int64_t i = 0; i < n; ++i) from[size_t(i)] = {keys[i], i};
  const int width = std::bit_width(uint64_t(largest));
  std::unique_ptr<int64_t[]> first(new int64_t[kBuckets]);
  for (int shift = 0; shift < width; shift += kBits) {
    std::fill_n(first.get(), kBuckets, 0);
    for (int64_t i = 0; i < n; ++i) ++first[size_t(from[size_t(i)].key >> shift & (kBuckets - 1))];
    int64_t at = 0;
    for (int64_t b = 0; b < kBuckets; ++b) at += std::exchange(first[size_t(b)], at);
    for (int64_t i = 0; i < n; ++i) {
      const Entry e = from[size_t(i)];
      to[size_t(first[size_t(e.key >> shift & (kBuckets - 1))]++)] = e;
    }
    std::swap(from, to);
  }
  for (int64_t i = 0; i < n; ++i) order[i] = from[size_t(i)].place;
}

void comparison_order(const int64_t* keys, int64_t n, int64_t* order) {
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order, order + n, [keys](int64_t a, int64_t b) { return keys[a] < keys[b]; });
}

}  // namespace

Device device_of_positions(Device values) {
  return values.is_meta() ? Device{} : values;
}

Tensor plain_indices(const Tensor& t) {
  return dense_int64(t);
}

Tensor in_host_memory(const Tensor& t) {
  return plain_indices(t.is_cpu() ? t : op::_to_copy(t, DType::None, Device{}));
}

bool same_numbers(const Tensor& a, const Tensor& b) {
  if (!has_loops(a)) return device::same_numbers(a, b);
  const Tensor x = plain_indices(a), y = plain_indices(b);
  return std::equal(numbers(x), numbers(x) + x.numel(), numbers(y));
}

Tensor linear_keys(const Tensor& indices, IntSpan sizes) {
  if (!has_loops(indices)) return device::linear_keys(indices, sizes);
  const int64_t n = indices.size(1);
  Tensor keys = integers(Dims{n});
  int64_t* to = numbers(keys);
  std::fill_n(to, n, 0);
  const Tensor dense = plain_indices(indices);
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t* from = numbers(dense) + int64_t(d) * n;
    const int64_t size = sizes[d];
    for (int64_t i = 0; i < n; ++i) to[i] = to[i] * size + from[i];
  }
  return keys;
}

Tensor positions_of(const Tensor& keys, IntSpan sizes) {
  if (!has_loops(keys)) return device::positions_of(keys, sizes);
  const int64_t n = keys.numel();
  Tensor indices = integers(Dims{int64_t(sizes.size()), n});
  const int64_t* from = numbers(keys);
  int64_t* to = numbers(indices);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = from[i];
    for (size_t d = sizes.size(); d-- > 1;) {
      to[int64_t(d) * n + i] = rest % sizes[d];
      rest /= sizes[d];
    }
    if (!sizes.empty()) to[i] = rest;
  }
  return indices;
}

Groups group_keys(const Tensor& keys) {
  if (!has_loops(keys)) return device::group_keys(keys);
  const int64_t n = keys.numel();
  const int64_t* k = numbers(keys);
  Groups groups;
  bool sorted = true, distinct = true;
  int64_t largest = n ? k[0] : 0;
  for (int64_t i = 1; i < n; ++i) {
    sorted &= k[i - 1] <= k[i];
    distinct &= k[i - 1] < k[i];
    largest = std::max(largest, k[i]);
  }
  if (distinct) {
    groups.keys = keys;
    return groups;
  }
  const int64_t* order = nullptr;
  if (!sorted) {
    groups.order = integers(Dims{n});
    // Few keys do not fill the buckets.
    if (n < 512) comparison_order(k, n, numbers(groups.order));
    else radix_order(k, n, largest, numbers(groups.order));
    order = numbers(groups.order);
  }
  Tensor member = integers(Dims{n}), found = integers(Dims{n});
  int64_t* m = numbers(member);
  int64_t* f = numbers(found);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = order ? order[i] : i;
    if (!count || f[count - 1] != k[at]) f[count++] = k[at];
    m[at] = count - 1;
  }
  groups.keys = first_of(found, count);
  groups.distinct = count == n;
  if (order || !groups.distinct) groups.member = member;
  return groups;
}

Groups merge_keys(const Tensor& a, const Tensor& b) {
  if (!has_loops(a)) return device::merge_keys(a, b);
  const int64_t n = a.numel(), m = b.numel();
  Groups groups;
  groups.keys = integers(Dims{n + m});
  groups.member = integers(Dims{n + m});
  const int64_t *x = numbers(a), *y = numbers(b);
  int64_t *keys = numbers(groups.keys), *member = numbers(groups.member), count = 0;
  for (int64_t i = 0, j = 0; i < n || j < m; ++count) {
    const bool left = i < n && (j == m || x[i] <= y[j]), right = j < m && (i == n || y[j] <= x[i]);
    keys[count] = left ? x[i] : y[j];
    if (left) member[i++] = count;
    if (right) member[n + j++] = count;
  }
  groups.distinct = count == n + m;
  groups.keys = first_of(groups.keys, count);
  return groups;
}

Tensor first_entries(const Tensor& member, int64_t count) {
  if (!has_loops(member)) return device::first_entries(member, count);
  Tensor first = integers(Dims{count});
  for (int64_t i = member.numel(); i-- > 0;) numbers(first)[numbers(member)[i]] = i;
  return first;
}

Tensor row_starts(const Tensor& rows, int64_t count) {
  if (!has_loops(rows)) return device::row_starts(rows, count);
  Tensor starts = integers(Dims{count + 1});
  int64_t* to = numbers(starts);
  const int64_t* from = numbers(rows);
  const int64_t n = rows.numel();
  std::fill_n(to, count + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++to[from[i] + 1];
  for (int64_t r = 0; r < count; ++r) to[r + 1] += to[r];
  return starts;
}

Tensor rows_of(const Tensor& starts, int64_t nnz) {
  if (!has_loops(starts)) return device::rows_of(starts, nnz);
  Tensor rows = integers(Dims{nnz});
  const int64_t* from = numbers(starts);
  for (int64_t r = 0; r + 1 < starts.numel(); ++r)
    std::fill(numbers(rows) + from[r], numbers(rows) + from[r + 1], r);
  return rows;
}

Turned turn_pattern(const Tensor& starts, const Tensor& plain, int64_t columns) {
  if (!has_loops(starts)) return device::turn_pattern(starts, plain, columns);
  const int64_t n = plain.numel(), rows = starts.numel() - 1;
  Turned t{row_starts(plain, columns), integers(Dims{n}), integers(Dims{n})};
  std::unique_ptr<int64_t[]> next(new int64_t[size_t(columns) + 1]);
  std::copy_n(numbers(t.starts), columns + 1, next.get());
  const int64_t *s = numbers(starts), *c = numbers(plain);
  int64_t *p = numbers(t.plain), *o = numbers(t.order);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = s[r]; k < s[r + 1]; ++k) {
      const int64_t at = next[size_t(c[k])]++;
      p[at] = r;
      o[at] = k;
    }
  return t;
}

Matches match_keys(const Tensor& wanted, const Tensor& known) {
  if (!has_loops(wanted)) return device::match_keys(wanted, known);
  const int64_t n = wanted.numel(), m = known.numel();
  Tensor a = integers(Dims{n}), b = integers(Dims{n});
  const int64_t *w = numbers(wanted), *k = numbers(known);
  int64_t count = 0, j = 0;
  for (int64_t i = 0; i < n && j < m; ++i) {
    while (j < m && k[j] < w[i]) ++j;
    if (j < m && k[j] == w[i]) {
      numbers(a)[count] = i;
      numbers(b)[count++] = j;
    }
  }
  return {first_of(a, count), first_of(b, count)};
}

Tensor keys_in_blocks(const Tensor& row, const Tensor& column, int64_t columns, BlockShape block) {
  if (!has_loops(row)) return device::keys_in_blocks(row, column, columns, block);
  const int64_t n = row.numel(), *r = numbers(row), *c = numbers(column);
  Tensor keys = integers(Dims{n * block.height * block.width});
  int64_t* to = numbers(keys);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < block.height; ++i)
      for (int64_t j = 0; j < block.width; ++j)
        *to++ = (r[k] * block.height + i) * columns + c[k] * block.width + j;
  return keys;
}

Tensor block_keys(const Tensor& keys, int64_t columns, BlockShape block, bool by_rows,
                  int64_t inner) {
  if (!has_loops(keys)) return device::block_keys(keys, columns, block, by_rows, inner);
  const int64_t n = keys.numel(), *k = numbers(keys);
  Tensor of = integers(Dims{n});
  int64_t* to = numbers(of);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t r = k[i] / columns / block.height, c = k[i] % columns / block.width;
    to[i] = by_rows ? r * inner + c : c * inner + r;
  }
  return of;
}

Tensor places_in_blocks(const Tensor& keys, const Tensor& member, int64_t columns,
                        BlockShape block) {
  if (!has_loops(keys)) return device::places_in_blocks(keys, member, columns, block);
  const int64_t n = keys.numel(), *k = numbers(keys);
  const int64_t* m = member.defined() ? numbers(member) : nullptr;
  Tensor places = integers(Dims{n});
  int64_t* to = numbers(places);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t r = k[i] / columns, c = k[i] % columns;
    to[i] = ((m ? m[i] : i) * block.height + r % block.height) * block.width + c % block.width;
  }
  return places;
}

Meetings meetings(const Tensor& a_starts, const Tensor& a_columns, const Tensor& b_starts,
                  const Tensor& b_columns, int64_t width) {
  if (!has_loops(a_starts))
    return device::meetings(a_starts, a_columns, b_starts, b_columns, width);
  const int64_t *as = numbers(a_starts), *ac = numbers(a_columns), *bs = numbers(b_starts),
                *bc = numbers(b_columns);
  const int64_t rows = a_starts.numel() - 1;
  int64_t total = 0;
  for (int64_t k = 0; k < a_columns.numel(); ++k) total += bs[ac[k] + 1] - bs[ac[k]];
  Meetings m{integers(Dims{total}),    integers(Dims{total}),
             integers(Dims{total}),    Tensor(),
             integers(Dims{rows + 1}), Tensor()};
  std::vector<int64_t> columns, last(size_t(width), -1), slots(last.size()), row;
  int64_t *a = numbers(m.a), *b = numbers(m.b), *slot = numbers(m.slot),
          *starts = numbers(m.starts);
  starts[0] = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < rows; ++i) {
    row.clear();
    for (int64_t k = as[i]; k < as[i + 1]; ++k)
      for (int64_t l = bs[ac[k]]; l < bs[ac[k] + 1]; ++l)
        if (last[size_t(bc[l])] != i) {
          last[size_t(bc[l])] = i;
          row.push_back(bc[l]);
        }
    std::sort(row.begin(), row.end());
    for (int64_t c : row) {
      slots[size_t(c)] = int64_t(columns.size());
      columns.push_back(c);
    }
    for (int64_t k = as[i]; k < as[i + 1]; ++k)
      for (int64_t l = bs[ac[k]]; l < bs[ac[k] + 1]; ++l, ++at) {
        a[at] = k;
        b[at] = l;
        slot[at] = slots[size_t(bc[l])];
      }
    starts[i + 1] = int64_t(columns.size());
  }
  m.columns = integers(columns);
  return m;
}

Cut cut_positions(const Tensor& row, int64_t start, int64_t end, int64_t step) {
  if (!has_loops(row)) return device::cut_positions(row, start, end, step);
  const int64_t n = row.numel(), *at = numbers(row);
  Tensor kept = integers(Dims{n}), positions = integers(Dims{n});
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i)
    if (at[i] >= start && at[i] < end && (at[i] - start) % step == 0) {
      numbers(kept)[count] = i;
      numbers(positions)[count++] = (at[i] - start) / step;
    }
  return {first_of(kept, count), first_of(positions, count)};
}

Picks pick_positions(const Tensor& row, const Tensor& wanted, int64_t size) {
  if (!has_loops(row)) return device::pick_positions(row, wanted, size);
  // Row v of a table has the entries with position v.
  Tensor whole = integers(Dims{2});
  numbers(whole)[0] = 0;
  numbers(whole)[1] = row.numel();
  const Turned table = turn_pattern(whole, row, size);
  const int64_t *starts = numbers(table.starts), *entry = numbers(table.order),
                *w = numbers(wanted);
  std::vector<int64_t> entries, places;
  for (int64_t i = 0; i < wanted.numel(); ++i)
    for (int64_t k = starts[w[i]]; k < starts[w[i] + 1]; ++k) {
      entries.push_back(entry[k]);
      places.push_back(i);
    }
  return {integers(entries), integers(places)};
}

void check_wanted(const Tensor& wanted, int64_t dim, int64_t size) {
  if (!has_loops(wanted) && device::within(op::unsqueeze(wanted, 0), IntSpan(&size, 1))) return;
  const Tensor host = in_host_memory(wanted);
  for (int64_t i = 0; i < host.numel(); ++i)
    if (const int64_t at = numbers(host)[i]; at < 0 || at >= size) index_range_error(at, dim, size);
}

}  // namespace facula::sparse

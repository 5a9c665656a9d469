#include "cpu/index_sort.h"

#include <algorithm>

#include "cpu/along_dim.h"
#include "cpu/index_items.h"
#include "cpu/index_order.h"

namespace facula {
namespace {

// Calls f(TypeTag<E>) with the entry type of the dtype.
template <class F>
void with_entry_type(const Tensor& in, int64_t line, F&& f) {
  if (has_wide_entries(in.dtype())) return f(TypeTag<WideEntry>{});
  if (line > int64_t(UINT32_MAX))
    runtime_error("sorting more than 2**32 - 1 elements of ", in.dtype(), " is not supported");
  f(TypeTag<NarrowEntry>{});
}

int64_t byte_stride(const Tensor& t, int64_t dim) {
  return t.strides()[dim] * int64_t(t.item_size());
}

// The k lowest entries of each line, in order, become the result.
template <class E>
void sort_lines(const Tensor& in, int64_t dim, bool descending, int64_t k, const Tensor& values,
                const Tensor& indices) {
  const int64_t n = in.sizes()[dim], item = int64_t(in.item_size());
  const int64_t is = byte_stride(in, dim), vs = byte_stride(values, dim),
                xs = byte_stride(indices, dim);
  for_each_line<3>({&in, &values, &indices}, dim, 8 * n, [&](const int64_t* at) {
    EntryBuffer<E> buffer(2 * n);
    E* entries = buffer.data();
    const char* line = in.data() + at[0];
    load_entries(in.dtype(), entries, line, is, n, descending);
    if (k == n) sort_entries(entries, entries + n, n);
    else sort_lowest(entries, entries + n, n, k);
    char* v = values.data() + at[1];
    char* x = indices.data() + at[2];
    for (int64_t i = 0; i < k; ++i) *reinterpret_cast<int64_t*>(x + i * xs) = entries[i].index();
    with_item_type(item, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < k; ++i)
        *reinterpret_cast<T*>(v + i * vs) =
            *reinterpret_cast<const T*>(line + entries[i].index() * is);
    });
  });
}

// The position in the line of the element that `pick` asks for. NaN has the highest key.
template <class E>
int64_t pick_index(E* entries, int64_t n, DType dtype, Pick pick, int64_t k) {
  int64_t numbers = n;
  if (is_floating(dtype) && (pick == Pick::Median || pick == Pick::NanMedian)) {
    int64_t first = -1;
    for (int64_t i = 0; i < n; ++i)
      if (entries[i].key() == nan_key(dtype)) {
        if (first < 0) first = i;
        --numbers;
      }
    if (first >= 0 && (pick == Pick::Median || numbers == 0)) return first;
  }
  if (pick == Pick::Mode) {
    std::sort(entries, entries + n);
    int64_t best = 0, last = 0;
    for (int64_t begin = 0, end; begin < n; begin = end) {
      for (end = begin + 1; end < n && entries[end].key() == entries[begin].key();) ++end;
      if (end - begin > best) {
        best = end - begin;
        last = end - 1;
      }
    }
    return entries[last].index();
  }
  const int64_t at = pick == Pick::Kth ? k - 1 : (numbers - 1) / 2;
  std::nth_element(entries, entries + at, entries + n);
  return entries[at].index();
}

// Groups of rows that follow each other in `order` and have equal keys.
void find_starts(const uint64_t* keys, int64_t width, DType dtype, Grouping& g) {
  const bool has_nan = is_floating(dtype);
  const uint64_t nan = nan_key(dtype);
  auto equal = [&](int64_t a, int64_t b) {
    for (int64_t i = 0; i < width; ++i) {
      const uint64_t x = keys[a * width + i], y = keys[b * width + i];
      if (x != y || (has_nan && x == nan)) return false;
    }
    return true;
  };
  const int64_t n = int64_t(g.order.size());
  for (int64_t i = 0; i < n; ++i)
    if (i == 0 || !equal(g.order[size_t(i)], g.order[size_t(i - 1)])) g.starts.push_back(i);
  g.starts.push_back(n);
}

}  // namespace

void cpu_sort(const Tensor& in, int64_t dim, bool descending, const Tensor& values,
              const Tensor& indices) {
  with_entry_type(in, in.sizes()[dim], [&](auto tag) {
    sort_lines<typename decltype(tag)::type>(in, dim, descending, in.sizes()[dim], values, indices);
  });
}

void cpu_topk(const Tensor& in, int64_t dim, int64_t k, bool largest, const Tensor& values,
              const Tensor& indices) {
  with_entry_type(in, in.sizes()[dim], [&](auto tag) {
    sort_lines<typename decltype(tag)::type>(in, dim, largest, k, values, indices);
  });
}

void cpu_pick(const Tensor& in, int64_t dim, Pick pick, int64_t k, const Tensor& values,
              const Tensor& indices) {
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim);
  with_entry_type(in, n, [&](auto tag) {
    using E = typename decltype(tag)::type;
    for_each_line<3>({&in, &values, &indices}, dim, 4 * n, [&](const int64_t* at) {
      EntryBuffer<E> buffer(n);
      const char* line = in.data() + at[0];
      load_entries(in.dtype(), buffer.data(), line, is, n, false);
      const int64_t from = pick_index(buffer.data(), n, in.dtype(), pick, k);
      std::memcpy(values.data() + at[1], line + from * is, in.item_size());
      *reinterpret_cast<int64_t*>(indices.data() + at[2]) = from;
    });
  });
}

Grouping cpu_group_sorted(const Tensor& matrix) {
  const int64_t n = matrix.sizes()[0], width = matrix.sizes()[1],
                item = int64_t(matrix.item_size());
  std::vector<uint64_t> keys(size_t(n * width));
  load_keys(matrix.dtype(), keys.data(), matrix.data(), item, n * width);
  Grouping g;
  g.order.resize(size_t(n));
  if (width == 1) {
    with_entry_type(matrix, n, [&](auto tag) {
      EntryBuffer<typename decltype(tag)::type> buffer(2 * n);
      load_entries(matrix.dtype(), buffer.data(), matrix.data(), item, n, false);
      sort_entries(buffer.data(), buffer.data() + n, n);
      for (int64_t i = 0; i < n; ++i) g.order[size_t(i)] = buffer.data()[i].index();
    });
  } else {
    for (int64_t i = 0; i < n; ++i) g.order[size_t(i)] = i;
    std::stable_sort(g.order.begin(), g.order.end(), [&](int64_t a, int64_t b) {
      const uint64_t* x = keys.data() + a * width;
      const uint64_t* y = keys.data() + b * width;
      return std::lexicographical_compare(x, x + width, y, y + width);
    });
  }
  find_starts(keys.data(), width, matrix.dtype(), g);
  return g;
}

Grouping cpu_group_neighbours(const Tensor& matrix) {
  const int64_t n = matrix.sizes()[0], width = matrix.sizes()[1];
  std::vector<uint64_t> keys(size_t(n * width));
  load_keys(matrix.dtype(), keys.data(), matrix.data(), int64_t(matrix.item_size()), n * width);
  Grouping g;
  g.order.resize(size_t(n));
  for (int64_t i = 0; i < n; ++i) g.order[size_t(i)] = i;
  find_starts(keys.data(), width, matrix.dtype(), g);
  return g;
}

}  // namespace facula

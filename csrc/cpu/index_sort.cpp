#include "cpu/index_sort.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/along_dim.h"
#include "cpu/index_entries.h"

namespace facula {
namespace {

int64_t byte_stride(const Tensor& t, int64_t dim) {
  return t.strides()[dim] * int64_t(t.item_size());
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

std::vector<uint64_t> keys_of(const Tensor& matrix) {
  std::vector<uint64_t> keys(size_t(matrix.numel()));
  load_keys({matrix.dtype(), matrix.data(), int64_t(matrix.item_size()), matrix.numel()},
            keys.data());
  return keys;
}

// Lines of a few elements: each one's place is how many come before it.
template <class T>
void sort_short_lines(const Tensor& in, int64_t dim, bool descending, int64_t k,
                      const Tensor& values, const Tensor& indices) {
  using Key = decltype(order_key(T()));
  constexpr int64_t kMost = IndexLoops::kShortLine;
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim);
  const int64_t vs = byte_stride(values, dim), xs = byte_stride(indices, dim);
  const Key flip = descending ? ~Key(0) : Key(0);
  const IndexLoops& loops = index_loops();
  for_each_line<3>({&in, &values, &indices}, dim, 4 * n, [&](const int64_t* at) {
    alignas(64) Key keys[kMost], rank[kMost];
    const char* x = in.data() + at[0];
    char* value = values.data() + at[1];
    char* position = indices.data() + at[2];
    for (int64_t i = 0; i < n; ++i)
      keys[i] = order_key(*reinterpret_cast<const T*>(x + i * is)) ^ flip;
    if constexpr (sizeof(Key) == 4) loops.rank_32(keys, n, rank);
    else loops.rank_64(keys, n, rank);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t place = int64_t(rank[i]);
      if (place >= k) continue;
      *reinterpret_cast<T*>(value + place * vs) = *reinterpret_cast<const T*>(x + i * is);
      *reinterpret_cast<int64_t*>(position + place * xs) = i;
    }
  });
}

}  // namespace

void cpu_sort(const Tensor& in, int64_t dim, bool descending, int64_t k, const Tensor& values,
              const Tensor& indices) {
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim);
  const int64_t vs = byte_stride(values, dim), xs = byte_stride(indices, dim);
  if (n <= IndexLoops::kShortLine) {
    dispatch_dtype(in.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!is_complex_v<T>) sort_short_lines<T>(in, dim, descending, k, values, indices);
    });
    return;
  }
  for_each_line<3>({&in, &values, &indices}, dim, 8 * n, [&](const int64_t* at) {
    sort_line({in.dtype(), in.data() + at[0], is, n}, descending, k,
              {values.data() + at[1], vs, indices.data() + at[2], xs});
  });
}

void cpu_pick(const Tensor& in, int64_t dim, Pick pick, int64_t k, const Tensor& values,
              const Tensor& indices) {
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim);
  for_each_line<3>({&in, &values, &indices}, dim, 4 * n, [&](const int64_t* at) {
    const char* line = in.data() + at[0];
    const int64_t from = pick_position({in.dtype(), line, is, n}, pick, k);
    std::memcpy(values.data() + at[1], line + from * is, in.item_size());
    *reinterpret_cast<int64_t*>(indices.data() + at[2]) = from;
  });
}

Grouping cpu_group_sorted(const Tensor& matrix) {
  const int64_t n = matrix.sizes()[0], width = matrix.sizes()[1];
  Grouping g;
  std::vector<uint64_t> keys = keys_of(matrix);
  g.order.resize(size_t(n));
  std::iota(g.order.begin(), g.order.end(), int64_t(0));
  std::stable_sort(g.order.begin(), g.order.end(), [&](int64_t a, int64_t b) {
    const uint64_t* x = keys.data() + a * width;
    const uint64_t* y = keys.data() + b * width;
    return std::lexicographical_compare(x, x + width, y, y + width);
  });
  find_starts(keys.data(), width, matrix.dtype(), g);
  return g;
}

Grouping cpu_group_neighbours(const Tensor& matrix) {
  std::vector<uint64_t> keys = keys_of(matrix);
  Grouping g;
  g.order.resize(size_t(matrix.sizes()[0]));
  std::iota(g.order.begin(), g.order.end(), int64_t(0));
  find_starts(keys.data(), matrix.sizes()[1], matrix.dtype(), g);
  return g;
}

}  // namespace facula

#include "cpu/index_sort.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/along_dim.h"
#include "cpu/index_entries.h"
#include "cpu/turn_block.h"

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

// ---- lines of a few elements, one in each lane of a sorting network

using Network = std::vector<IndexLoops::Comparator>;

// Sorts n entries: Batcher's merge exchange (Knuth, The Art of Computer Programming, 5.2.2M).
void append_sort(Network& network, int n) {
  for (int p = 1; p < n; p *= 2)
    for (int k = p; k >= 1; k /= 2)
      for (int j = k % p; j + k < n; j += 2 * k)
        for (int i = j; i < std::min(j + k, n - k); ++i)
          if ((i ^ (i + k)) < 2 * p)  // both in one block of 2 p
            network.push_back({uint8_t(i), uint8_t(i + k)});
}

// Brings the k lowest of n entries to the front, in order.
Network network_of(int n, int k) {
  Network all;
  append_sort(all, n);
  if (k == n) return all;
  // Only steps on which the first k depend.
  bool needed[IndexLoops::kShortLine] = {};
  std::fill_n(needed, k, true);
  Network network;
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    if (!needed[step->low] && !needed[step->high]) continue;
    needed[step->low] = needed[step->high] = true;
    network.push_back(*step);
  }
  std::reverse(network.begin(), network.end());
  // Few are found sooner by taking the others through them, one by one.
  Network few;
  append_sort(few, k);
  if (int(few.size()) + k * (n - k) >= int(network.size())) return network;
  for (int i = k; i < n; ++i)
    for (int j = 0; j < k; ++j) few.push_back({uint8_t(j), uint8_t(i)});
  return few;
}

// A key of 32 bits and the position make one word, one of 64 bits needs two.
template <class T>
class LaneSort {
 public:
  using Key = decltype(order_key(T()));

  void load(const char* const* lines, int count, int64_t stride, int64_t n, Key flip) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int32_t>) {
      if (count == L && stride == 4 && load_turned(lines, n, flip)) return;
    }
    if (count < L) std::fill_n(entries_, (kWide ? kSecond : 0) + n * L, 0);
    for (int w = 0; w < count; ++w) {
      const char* x = lines[w];
      for (int64_t i = 0; i < n; ++i, x += stride) {
        const Key key = order_key(*reinterpret_cast<const T*>(x)) ^ flip;
        int64_t& entry = entries_[i * L + w];
        if constexpr (kWide) {
          entry = int64_t(key ^ Key(1) << 63);
          (&entry)[kSecond] = i;
        } else {
          entry = int64_t(key) * IndexLoops::kShortLine + i;
        }
      }
    }
  }
  void sort(const Network& network) {
    const int64_t steps = int64_t(network.size());
    if constexpr (kWide) index_loops().run_wide_network(network.data(), steps, entries_, kSecond);
    else index_loops().run_network(network.data(), steps, entries_);
  }

  // The positions of all lines as rows, `step` bytes apart.
  void store_positions(char* to, int64_t step, int64_t k) const {
    const int64_t* from = entries_ + (kWide ? kSecond : 0);
    int64_t* rows = reinterpret_cast<int64_t*>(to);
    turn_matrix(rows, step / 8, from, L, L, k);
    if constexpr (!kWide)
      for (int w = 0; w < L; ++w)
        for (int64_t i = 0; i < k; ++i) rows[w * (step / 8) + i] &= IndexLoops::kShortLine - 1;
  }
  int64_t position(int64_t i, int w) const {
    if constexpr (kWide) return entries_[kSecond + i * L + w];
    else return entries_[i * L + w] & (IndexLoops::kShortLine - 1);
  }
  // Of ascending order.
  Key key(int64_t i, int w) const {
    if constexpr (kWide) return Key(entries_[i * L + w]) ^ Key(1) << 63;
    else return Key(uint64_t(entries_[i * L + w]) / IndexLoops::kShortLine);
  }
  // How many entries of a sorted line are no NaN.
  int64_t numbers(int64_t n, int w) const {
    if constexpr (!std::is_integral_v<T>)
      while (n > 0 && key(n - 1, w) == ~Key(0)) --n;
    return n;
  }

 private:
  static constexpr int L = int(IndexLoops::kSortLanes);
  // Dense lines at equal distances.
  bool load_turned(const char* const* lines, int64_t n, Key flip) {
    const int64_t pitch = lines[1] - lines[0];
    for (int w = 2; w < L; ++w)
      if (lines[w] != lines[w - 1] + pitch) return false;
    if (pitch % 4) return false;
    alignas(64) uint32_t turned[IndexLoops::kShortLine * L];
    turn_matrix(turned, L, reinterpret_cast<const uint32_t*>(lines[0]), pitch / 4, n, L);
    if constexpr (std::is_same_v<T, float>) index_loops().load_floats(turned, n, flip, entries_);
    else index_loops().load_words(turned, n, flip ^ Key(1) << 31, entries_);
    return true;
  }
  static constexpr bool kWide = sizeof(Key) == 8;
  static constexpr int64_t kSecond = IndexLoops::kShortLine * L;
  alignas(128) int64_t entries_[kSecond * (kWide ? 2 : 1)];
};

// Where in a sorted line the picked element stands.
template <class T>
int64_t picked(const LaneSort<T>& sorted, int64_t n, int w, Pick pick, int64_t k) {
  if (pick == Pick::Kth) return k - 1;
  if (pick == Pick::Mode) {  // the last of the first of the longest runs
    int64_t best = 0, last = 0;
    for (int64_t begin = 0, end; begin < n; begin = end) {
      for (end = begin + 1; end < n && sorted.key(end, w) == sorted.key(begin, w);) ++end;
      if (end - begin <= best) continue;
      best = end - begin;
      last = end - 1;
    }
    return last;
  }
  const int64_t numbers = sorted.numbers(n, w);
  if (numbers == 0) return 0;
  return pick == Pick::Median && numbers < n ? numbers : (numbers - 1) / 2;
}

// Sorts the lines, as far as the first k elements go, and calls f(sorted, offsets, how many).
template <class T, class F>
void for_each_sorted(const Tensor& in, int64_t dim, bool descending, int64_t k,
                     const Tensor& values, const Tensor& indices, F&& f) {
  constexpr int L = int(IndexLoops::kSortLanes);
  const int64_t n = in.sizes()[dim], stride = byte_stride(in, dim);
  const Network network = network_of(int(n), int(k));
  for_each_bundle<3, L>({&in, &values, &indices}, dim, 4 * n,
                        [&](const int64_t (&at)[L][3], int count) {
                          LaneSort<T> lanes;
                          const char* lines[L];
                          for (int w = 0; w < count; ++w) lines[w] = in.data() + at[w][0];
                          using Key = typename LaneSort<T>::Key;
                          lanes.load(lines, count, stride, n, descending ? ~Key(0) : Key(0));
                          lanes.sort(network);
                          f(lanes, at, count);
                        });
}

struct Along {  // a tensor and its stride in bytes along the dimension
  const Tensor& tensor;
  int64_t step;
};

template <class T, int W>
void write_sorted(const LaneSort<T>& sorted, const int64_t (&at)[W][3], int count, int64_t k,
                  const Along& in, const Along& values, const Along& indices) {
  const int64_t pitch = at[W > 1 ? 1 : 0][2] - at[0][2];
  bool rows = count == W && indices.step == 8 && values.step == int64_t(sizeof(T));
  for (int w = 2; w < count; ++w) rows &= at[w][2] == at[w - 1][2] + pitch;
  if (rows) sorted.store_positions(indices.tensor.data() + at[0][2], pitch, k);
  for (int w = 0; w < count; ++w) {
    const char* line = in.tensor.data() + at[w][0];
    char* value = values.tensor.data() + at[w][1];
    char* position = indices.tensor.data() + at[w][2];
    if (rows) {
      const int64_t* from = reinterpret_cast<const int64_t*>(position);
      for (int64_t i = 0; i < k; ++i)
        reinterpret_cast<T*>(value)[i] = *reinterpret_cast<const T*>(line + from[i] * in.step);
      continue;
    }
    for (int64_t i = 0; i < k; ++i) {
      const int64_t from = sorted.position(i, w);
      *reinterpret_cast<T*>(value + i * values.step) =
          *reinterpret_cast<const T*>(line + from * in.step);
      *reinterpret_cast<int64_t*>(position + i * indices.step) = from;
    }
  }
}

// Whether the network is worth its making.
bool has_short_lines(const Tensor& in, int64_t dim) {
  constexpr int64_t kVeryShort = 32;
  const int64_t n = in.sizes()[dim];
  return n <= kVeryShort ||
         (n <= IndexLoops::kShortLine && in.numel() >= n * IndexLoops::kSortLanes);
}

}  // namespace

void cpu_sort(const Tensor& in, int64_t dim, bool descending, int64_t k, const Tensor& values,
              const Tensor& indices) {
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim);
  const int64_t vs = byte_stride(values, dim), xs = byte_stride(indices, dim);
  if (!has_short_lines(in, dim)) {
    for_each_line<3>({&in, &values, &indices}, dim, 8 * n, [&](const int64_t* at) {
      sort_line({in.dtype(), in.data() + at[0], is, n}, descending, k,
                {values.data() + at[1], vs, indices.data() + at[2], xs});
    });
    return;
  }
  dispatch_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>)
      for_each_sorted<T>(in, dim, descending, k, values, indices,
                         [&](const LaneSort<T>& sorted, const auto& at, int count) {
                           write_sorted(sorted, at, count, k, {in, is}, {values, vs},
                                        {indices, xs});
                         });
  });
}

void cpu_pick(const Tensor& in, int64_t dim, Pick pick, int64_t k, const Tensor& values,
              const Tensor& indices) {
  const int64_t n = in.sizes()[dim], is = byte_stride(in, dim);
  auto deliver = [&](const int64_t* at, int64_t from) {
    std::memcpy(values.data() + at[1], in.data() + at[0] + from * is, in.item_size());
    *reinterpret_cast<int64_t*>(indices.data() + at[2]) = from;
  };
  if (!has_short_lines(in, dim)) {
    for_each_line<3>({&in, &values, &indices}, dim, 4 * n, [&](const int64_t* at) {
      deliver(at, pick_position({in.dtype(), in.data() + at[0], is, n}, pick, k));
    });
    return;
  }
  dispatch_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>)
      for_each_sorted<T>(in, dim, false, pick == Pick::Kth ? k : n, values, indices,
                         [&](const LaneSort<T>& sorted, const auto& at, int count) {
                           for (int w = 0; w < count; ++w)
                             deliver(at[w], sorted.position(picked(sorted, n, w, pick, k), w));
                         });
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

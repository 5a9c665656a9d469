#include "cpu/index_order.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/host_allocator.h"
#include "core/thread_pool.h"

namespace facula {
namespace {

constexpr int64_t kShort = 256;         // below this a comparison sort wins
constexpr int64_t kParallel = 1 << 16;  // elements per thread that make threads worth it
constexpr int64_t kStream = 32;         // fewer than n / kStream elements are picked while reading

template <class T>
auto order_key(T x) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  if constexpr (is_small_float_v<T>) {
    return order_key(float(x));
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
    const Key bits = std::bit_cast<Key>(x + T(0));  // -0 + 0 is 0
    const Key key = bits & sign ? ~bits : bits | sign;
    return x != x ? ~Key(0) : key;
  } else if constexpr (std::is_signed_v<T>) {
    return Key(Key(std::make_signed_t<Key>(x)) ^ Key(1) << (8 * sizeof(Key) - 1));
  } else {
    return Key(x);
  }
}

// Calls f(i, key) for elements [from, n).
template <class F>
void for_each_key(const Line& line, int64_t from, F&& f) {
  dispatch_dtype(line.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>)
      for (int64_t i = from; i < line.n; ++i)
        f(i, order_key(*reinterpret_cast<const T*>(line.data + i * line.stride)));
  });
}

// A key of 32 bits above its position, in one word.
struct NarrowEntry {
  uint64_t bits;
  using Key = uint32_t;
  static NarrowEntry make(Key key, int64_t index) {
    return {uint64_t(key) << 32 | uint64_t(index)};
  }
  uint64_t key() const { return bits >> 32; }
  int64_t index() const { return int64_t(bits & 0xffffffff); }
  uint8_t digit(int i) const { return uint8_t(bits >> (32 + 8 * i)); }
  bool operator<(NarrowEntry o) const { return bits < o.bits; }
};

struct WideEntry {
  uint64_t order, position;
  using Key = uint64_t;
  static WideEntry make(Key key, int64_t index) { return {key, uint64_t(index)}; }
  uint64_t key() const { return order; }
  int64_t index() const { return int64_t(position); }
  uint8_t digit(int i) const { return uint8_t(order >> (8 * i)); }
  bool operator<(const WideEntry& o) const {
    return order != o.order ? order < o.order : position < o.position;
  }
};

template <class E>
class EntryBuffer {  // uninitialised
 public:
  explicit EntryBuffer(int64_t n)
      : bytes_(size_t(n) * sizeof(E)), data_(static_cast<E*>(host_allocate(bytes_))) {}
  ~EntryBuffer() { host_free(data_, bytes_); }
  EntryBuffer(const EntryBuffer&) = delete;
  EntryBuffer& operator=(const EntryBuffer&) = delete;
  E* data() { return data_; }

 private:
  size_t bytes_;
  E* data_;
};

template <class E>
struct MakeEntry {
  bool descending;
  uint64_t base;  // subtracted from every key
  E operator()(uint64_t key, int64_t index) const {
    const auto k = typename E::Key(key - base);
    return E::make(descending ? typename E::Key(~k) : k, index);
  }
};

// Calls f(MakeEntry<E>) with the smallest entry type that holds the line's keys.
template <class F>
void with_entry_type(const Line& line, bool descending, F&& f) {
  const bool wide_keys = item_size(line.dtype) == 8;
  if (line.n <= int64_t(UINT32_MAX)) {
    if (!wide_keys) return f(MakeEntry<NarrowEntry>{descending, 0});
    if (is_integral(line.dtype)) {
      uint64_t low = ~uint64_t(0), high = 0;
      for_each_key(line, 0, [&](int64_t, uint64_t key) {
        low = std::min(low, key);
        high = std::max(high, key);
      });
      if (high - low <= UINT32_MAX) return f(MakeEntry<NarrowEntry>{descending, low});
    }
  }
  f(MakeEntry<WideEntry>{descending, 0});
}

// Radix sort from the lowest byte of the key; bytes that all keys share cost nothing.
template <class E>
void radix_sort(E* entries, E* spare, int64_t n) {
  constexpr int kDigits = sizeof(typename E::Key);
  uint32_t counts[kDigits][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++counts[d][entries[i].digit(d)];
  E* from = entries;
  E* to = spare;
  for (int d = 0; d < kDigits; ++d) {
    if (counts[d][from[0].digit(d)] == uint32_t(n)) continue;
    uint32_t at[256], sum = 0;
    for (int b = 0; b < 256; ++b) {
      at[b] = sum;
      sum += counts[d][b];
    }
    for (int64_t i = 0; i < n; ++i) to[at[from[i].digit(d)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, size_t(n) * sizeof(E));
}

template <class E>
void sort_part(E* entries, E* spare, int64_t n) {
  if (n <= kShort || n > int64_t(UINT32_MAX)) std::sort(entries, entries + n);
  else radix_sort(entries, spare, n);
}

// Sorted parts, one per thread, are merged in pairs until one is left.
template <class E>
void sort_all(E* entries, E* spare, int64_t n) {
  const int64_t parts = in_parallel_region() ? 1 : std::min<int64_t>(num_threads(), n / kParallel);
  if (parts < 2) return sort_part(entries, spare, n);
  auto bound = [&](int64_t i) { return n * std::min(i, parts) / parts; };
  parallel_for(0, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      sort_part(entries + bound(i), spare + bound(i), bound(i + 1) - bound(i));
  });
  E* from = entries;
  E* to = spare;
  for (int64_t width = 1; width < parts; width *= 2) {
    parallel_for(0, (parts + 2 * width - 1) / (2 * width), 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t left = bound(2 * i * width), middle = bound((2 * i + 1) * width),
                right = bound((2 * i + 2) * width);
        std::merge(from + left, from + middle, from + middle, from + right, to + left);
      }
    });
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, size_t(n) * sizeof(E));
}

// The k lowest entries in order, kept in a heap while the line is read once.
template <class E>
void stream_lowest(const Line& line, MakeEntry<E> make, int64_t k, E* lowest) {
  for_each_key({line.dtype, line.data, line.stride, k}, 0,
               [&](int64_t i, uint64_t key) { lowest[i] = make(key, i); });
  std::make_heap(lowest, lowest + k);
  for_each_key(line, k, [&](int64_t i, uint64_t key) {
    const E entry = make(key, i);
    if (!(entry < lowest[0])) return;
    std::pop_heap(lowest, lowest + k);
    lowest[k - 1] = entry;
    std::push_heap(lowest, lowest + k);
  });
  std::sort_heap(lowest, lowest + k);
}

template <class E>
int64_t pick_entry(const Line& line, E* entries, Pick pick, int64_t k) {
  int64_t numbers = line.n;
  if (is_floating(line.dtype) && (pick == Pick::Median || pick == Pick::NanMedian)) {
    int64_t first = -1;
    for (int64_t i = 0; i < line.n; ++i)
      if (entries[i].key() == nan_key(line.dtype)) {
        if (first < 0) first = i;
        --numbers;
      }
    if (first >= 0 && (pick == Pick::Median || numbers == 0)) return first;
  }
  if (pick == Pick::Mode) {  // the first of the longest runs, by its last position
    std::sort(entries, entries + line.n);
    int64_t best = 0, last = 0;
    for (int64_t begin = 0, end; begin < line.n; begin = end) {
      for (end = begin + 1; end < line.n && entries[end].key() == entries[begin].key();) ++end;
      if (end - begin > best) {
        best = end - begin;
        last = end - 1;
      }
    }
    return entries[last].index();
  }
  const int64_t at = pick == Pick::Kth ? k - 1 : (numbers - 1) / 2;
  std::nth_element(entries, entries + at, entries + line.n);
  return entries[at].index();
}

}  // namespace

void sort_line(const Line& line, bool descending, int64_t k, char* positions, int64_t step) {
  if (k == 0) return;
  const int64_t n = line.n;
  with_entry_type(line, descending, [&]<class E>(MakeEntry<E> make) {
    const bool stream = k <= n / kStream;
    EntryBuffer<E> buffer(stream ? k : 2 * n);
    E* entries = buffer.data();
    if (stream) {
      stream_lowest(line, make, k, entries);
    } else {
      for_each_key(line, 0, [&](int64_t i, uint64_t key) { entries[i] = make(key, i); });
      if (k < n) std::nth_element(entries, entries + k, entries + n);
      sort_all(entries, entries + n, k);
    }
    for (int64_t i = 0; i < k; ++i)
      *reinterpret_cast<int64_t*>(positions + i * step) = entries[i].index();
  });
}

int64_t pick_position(const Line& line, Pick pick, int64_t k) {
  int64_t position = 0;
  with_entry_type(line, false, [&]<class E>(MakeEntry<E> make) {
    EntryBuffer<E> buffer(line.n);
    E* entries = buffer.data();
    for_each_key(line, 0, [&](int64_t i, uint64_t key) { entries[i] = make(key, i); });
    position = pick_entry(line, entries, pick, k);
  });
  return position;
}

void group_line(const Line& line, std::vector<int64_t>& order, std::vector<int64_t>& starts) {
  const int64_t n = line.n;
  order.resize(size_t(n));
  with_entry_type(line, false, [&]<class E>(MakeEntry<E> make) {
    EntryBuffer<E> buffer(2 * n);
    E* entries = buffer.data();
    for_each_key(line, 0, [&](int64_t i, uint64_t key) { entries[i] = make(key, i); });
    sort_all(entries, entries + n, n);
    const bool has_nan = is_floating(line.dtype);
    for (int64_t i = 0; i < n; ++i) {
      order[size_t(i)] = entries[i].index();
      if (i == 0 || entries[i].key() != entries[i - 1].key() ||
          (has_nan && entries[i].key() == nan_key(line.dtype)))
        starts.push_back(i);
    }
  });
  starts.push_back(n);
}

void load_keys(const Line& line, uint64_t* keys) {
  for_each_key(line, 0, [&](int64_t i, uint64_t key) { keys[i] = key; });
}

}  // namespace facula

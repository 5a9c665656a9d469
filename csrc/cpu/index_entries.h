// The elements of a line as entries to sort: each is turned into an unsigned key of the same order
// and packed with its position, into one word where both fit.
#pragma once
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/index_loops.h"
#include "cpu/index_order.h"
#include "cpu/radix_sort.h"

namespace facula {

constexpr int64_t kLongLine = 1 << 15;  // elements per thread that make threads worth it

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

// Whether elements of one key are the same bits: not 0, which may be -0, not NaN, and no small
// floats, whose keys are those of float32.
template <class T>
bool is_exact_key(uint64_t key) {
  if constexpr (std::is_integral_v<T>) return true;
  else if constexpr (std::is_floating_point_v<T>)
    return key != order_key(T(0)) && key != decltype(order_key(T(0)))(~uint64_t(0));
  else return false;
}

// The element of an exact key.
template <class T>
T value_of_key(uint64_t given) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
  const Key key = Key(given);
  if constexpr (std::is_same_v<T, bool>) return key != 0;
  else if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<T>(Key(key & sign ? key ^ sign : ~key));
  else if constexpr (std::is_signed_v<T>) return T(key ^ sign);
  else return T(key);
}

// Calls f(i, key) for elements [from, to).
template <class F>
void for_each_key(const Line& line, int64_t from, int64_t to, F&& f) {
  dispatch_dtype(line.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) {
      if (line.stride == int64_t(sizeof(T))) {
        const T* x = reinterpret_cast<const T*>(line.data);
        for (int64_t i = from; i < to; ++i) f(i, order_key(x[i]));
      } else {
        for (int64_t i = from; i < to; ++i)
          f(i, order_key(*reinterpret_cast<const T*>(line.data + i * line.stride)));
      }
    }
  });
}

// Keys relative to a base above their positions.
struct PackedForm {
  using Entry = uint64_t;
  uint64_t base;
  bool descending;
  int low, high;  // the bits of the key; those below are the position's

  Entry make(uint64_t key, int64_t index) const {
    return (descending ? base - key : key - base) << low | uint64_t(index);
  }
  int64_t index(Entry e) const { return int64_t(e & ((uint64_t(1) << low) - 1)); }
  uint64_t key(Entry e) const { return descending ? base - (e >> low) : base + (e >> low); }
  bool equal(Entry a, Entry b) const { return a >> low == b >> low; }
};

struct WideForm {
  using Entry = WideEntry;
  bool descending;
  static constexpr int low = 0, high = 64;

  Entry make(uint64_t key, int64_t index) const {
    return {descending ? ~key : key, uint64_t(index)};
  }
  int64_t index(const Entry& e) const { return int64_t(e.position); }
  uint64_t key(const Entry& e) const { return descending ? ~e.order : e.order; }
  bool equal(const Entry& a, const Entry& b) const { return a.order == b.order; }
};

struct KeyRange {
  uint64_t low = ~uint64_t(0), high = 0;
};
KeyRange key_range(const Line& line);  // of integers of 64 bits; otherwise that of the dtype

// Calls f with the form that fits keys of this range and `index_bits` bits of position.
template <class F>
void with_form(KeyRange range, bool descending, int index_bits, F&& f) {
  const int bits = std::bit_width(range.high - range.low);
  if (bits + index_bits <= 64 && index_bits < 64)
    f(PackedForm{descending ? range.high : range.low, descending, index_bits, index_bits + bits});
  else f(WideForm{descending});
}

inline int index_bits(int64_t n) {
  return std::bit_width(uint64_t(n - 1));
}

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

template <class Form>
void load_entries(const Line& line, const Form& form, typename Form::Entry* entries) {
  parallel_for(0, line.n, kLongLine, [&](int64_t b, int64_t e) {
    for_each_key(line, b, e, [&](int64_t i, uint64_t key) { entries[i] = form.make(key, i); });
  });
}

}  // namespace facula

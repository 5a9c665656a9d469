// Elements as unsigned integers of the same order, each packed with its position. Sorting these
// pairs is stable by itself, needs no comparison function per dtype, and has one answer whichever
// algorithm finds it.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "core/host_allocator.h"

namespace facula {

// NaN is above every number; -0 and 0 are equal.
template <class T>
auto order_key(T x) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  if constexpr (is_small_float_v<T>) {
    return order_key(float(x));
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
    const Key bits = x == 0 ? 0 : std::bit_cast<Key>(x);
    const Key key = bits & sign ? ~bits : bits | sign;
    return x != x ? ~Key(0) : key;
  } else if constexpr (std::is_signed_v<T>) {
    using Signed = std::make_signed_t<Key>;
    return Key(Key(Signed(x)) ^ Key(1) << (8 * sizeof(Key) - 1));
  } else {
    return Key(x);
  }
}

// The key of NaN in keys of a floating-point dtype; integers may have it as an ordinary one.
constexpr uint64_t nan_key(DType d) { return item_size(d) == 8 ? ~uint64_t(0) : 0xffffffffu; }

// A key of 32 bits above its position, in one word.
struct NarrowEntry {
  uint64_t bits;
  static NarrowEntry make(uint32_t key, int64_t index) {
    return {uint64_t(key) << 32 | uint64_t(index)};
  }
  static constexpr int kKeyBytes = 4;
  uint64_t key() const { return bits >> 32; }
  int64_t index() const { return int64_t(bits & 0xffffffff); }
  uint8_t digit(int i) const { return uint8_t(bits >> (32 + 8 * i)); }
  bool operator<(NarrowEntry o) const { return bits < o.bits; }
};

struct WideEntry {
  uint64_t order, position;
  static WideEntry make(uint64_t key, int64_t index) { return {key, uint64_t(index)}; }
  static constexpr int kKeyBytes = 8;
  uint64_t key() const { return order; }
  int64_t index() const { return int64_t(position); }
  uint8_t digit(int i) const { return uint8_t(order >> (8 * i)); }
  bool operator<(const WideEntry& o) const {
    return order != o.order ? order < o.order : position < o.position;
  }
};

// 8-byte items have wide entries, all others narrow ones, whose lines must be shorter than 2**32.
constexpr bool has_wide_entries(DType d) { return item_size(d) == 8; }

// The n elements of a line; `descending` turns the order around but keeps that of equal elements.
// Complex dtypes have no order and must not come here.
void load_entries(DType d, NarrowEntry* to, const char* line, int64_t stride, int64_t n,
                  bool descending);
void load_entries(DType d, WideEntry* to, const char* line, int64_t stride, int64_t n,
                  bool descending);
void load_keys(DType d, uint64_t* to, const char* line, int64_t stride, int64_t n);

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

// Sorts in place; `spare` has room for n more. A long array is sorted on all threads.
void sort_entries(NarrowEntry* entries, NarrowEntry* spare, int64_t n);
void sort_entries(WideEntry* entries, WideEntry* spare, int64_t n);
// Brings the k lowest to the front, in order.
void sort_lowest(NarrowEntry* entries, NarrowEntry* spare, int64_t n, int64_t k);
void sort_lowest(WideEntry* entries, WideEntry* spare, int64_t n, int64_t k);

}  // namespace facula

#include "cpu/index_distinct.h"

#include <vector>

#include "cpu/index_entries.h"
#include "cpu/index_items.h"

namespace facula {
namespace {

Tensor int64_vector(int64_t n) {
  return empty_tensor(Dims{n}, DType::Int64, Device{});
}

// Groups in a sequence of n: each block of it knows the number of the first group that begins in
// it, so that all can be visited in parallel.
class Groups {
 public:
  // count(b, e): how many groups begin in [b, e).
  template <class Count>
  Groups(int64_t n, Count&& count) : n_(n), before_(size_t((n + kBlock - 1) / kBlock + 1), 0) {
    for_blocks(
        [&](int64_t block, int64_t b, int64_t e) { before_[size_t(block) + 1] = count(b, e); });
    for (size_t i = 1; i < before_.size(); ++i) before_[i] += before_[i - 1];
  }
  int64_t count() const { return before_.back(); }

  // f(group, b, e) for each block [b, e): the first group that begins in it.
  template <class F>
  void for_each_block(F&& f) const {
    for_blocks([&](int64_t block, int64_t b, int64_t e) { f(before_[size_t(block)], b, e); });
  }

  // begin(group, i) for each, and then place(i, group) for its elements if `places`.
  template <class IsFirst, class Begin, class Place>
  void visit(bool places, IsFirst&& is_first, Begin&& begin, Place&& place) const {
    for_blocks([&](int64_t block, int64_t b, int64_t e) {
      // Where groups begin, listed without branches: they come at no regular distance.
      uint16_t firsts[kBlock + 1];
      int64_t count = 0;
      for (int64_t i = b; i < e; ++i) {
        firsts[count] = uint16_t(i - b);
        count += is_first(i);
      }
      int64_t group = before_[size_t(block)] - 1, i = b;
      for (int64_t k = 0; k <= count; ++k, ++group) {
        const int64_t end = k < count ? b + firsts[k] : e;
        for (; places && i < end; ++i) place(i, group);
        if (k < count) begin(group + 1, end);
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 1 << 14;

  template <class F>
  void for_blocks(F&& f) const {
    parallel_for(0, int64_t(before_.size()) - 1, 2, [&](int64_t b, int64_t e) {
      for (; b < e; ++b) f(b, b * kBlock, std::min(n_, (b + 1) * kBlock));
    });
  }
  int64_t n_;
  std::vector<int64_t> before_;
};

// value(i): the element that begins a group; position(i): where the i-th of the sequence was.
template <class T, class IsFirst, class Value, class Position>
Distinct collect(const Groups& groups, DType dtype, int64_t n, bool want_inverse, bool want_counts,
                 IsFirst&& is_first, Value&& value, Position&& position) {
  const int64_t count = groups.count();
  Distinct d{empty_tensor(Dims{count}, dtype, Device{}), int64_vector(want_inverse ? n : 0),
             int64_vector(want_counts ? count : 0)};
  T* values = d.values.data_as<T>();
  int64_t* inverse = d.inverse.data_as<int64_t>();
  int64_t* counts = d.counts.data_as<int64_t>();  // at first where each group begins
  auto begin = [&](int64_t group, int64_t i) {
    values[group] = value(i);
    if (want_counts) counts[group] = i;
  };
  groups.visit(want_inverse, is_first, begin,
               [&](int64_t i, int64_t group) { inverse[position(i)] = group; });
  if (want_counts)
    for (int64_t g = 0; g < count; ++g) counts[g] = (g + 1 < count ? counts[g + 1] : n) - counts[g];
  return d;
}

template <class Form>
void load_keys_alone(const Line& line, const Form& form, typename Form::Entry* entries) {
  parallel_for(0, line.n, kLongLine, [&](int64_t b, int64_t e) {
    for_each_key(line, b, e, [&](int64_t i, uint64_t key) { entries[i] = form.make(key, 0); });
  });
}

// Integers are found in their keys, where `flip` undoes what order_key did; other elements are
// moved. Item: of the elements' size.
template <class Item, bool kIntegers, class Form>
Distinct distinct_entries(const Tensor& x, const Form& form, uint64_t flip, bool with_positions,
                          bool want_inverse, bool want_counts) {
  using E = typename Form::Entry;
  const int64_t n = x.numel();
  EntryBuffer<E> buffer(2 * n);
  E* entries = buffer.data();
  const Line line{x.dtype(), x.data(), int64_t(x.item_size()), n};
  if (with_positions) load_entries(line, form, entries);
  else load_keys_alone(line, form, entries);
  entries = radix_sort(entries, entries + n, n, form.low, form.high);
  const E nan = form.make(nan_key(x.dtype()), 0);
  auto is_first = [&](int64_t i) {
    if (i == 0 || !form.equal(entries[i], entries[i - 1])) return true;
    return !kIntegers && form.equal(entries[i], nan);
  };
  Groups groups(n, [&](int64_t b, int64_t e) {
    int64_t c = 0;
    for (; b < e; ++b) c += is_first(b);
    return c;
  });
  const Item* elements = x.data_as<Item>();
  auto value = [&](int64_t i) -> Item {
    if constexpr (kIntegers) return {decltype(Item::bits)(form.key(entries[i]) ^ flip)};
    else return elements[form.index(entries[i])];
  };
  return collect<Item>(groups, x.dtype(), n, want_inverse, want_counts, is_first, value,
                       [&](int64_t i) { return form.index(entries[i]); });
}

template <class T>
bool differ(T a, T b) {
  using C = std::conditional_t<is_small_float_v<T>, float, T>;
  return C(a) != C(b);
}

// Neighbours x[i], x[i + 1] that differ, i in [b, e).
template <class T>
int64_t count_changes(const T* x, int64_t b, int64_t e) {
  const IndexLoops& loops = index_loops();
  if constexpr (std::is_same_v<T, float>) return loops.changes_f32(x + b, e - b);
  else if constexpr (std::is_same_v<T, double>) return loops.changes_f64(x + b, e - b);
  else if constexpr (std::is_same_v<T, int32_t>) return loops.changes_i32(x + b, e - b);
  else if constexpr (std::is_same_v<T, int64_t>) return loops.changes_i64(x + b, e - b);
  int64_t count = 0;
  for (; b < e; ++b) count += differ(x[b], x[b + 1]);
  return count;
}

template <class T>
Distinct distinct_neighbours(const Tensor& x, bool want_inverse, bool want_counts) {
  const T* elements = x.data_as<T>();
  auto is_first = [&](int64_t i) { return i == 0 || differ(elements[i], elements[i - 1]); };
  Groups groups(x.numel(), [&](int64_t b, int64_t e) {
    return b == 0 ? 1 + count_changes(elements, 0, e - 1) : count_changes(elements, b - 1, e - 1);
  });
  if (want_inverse || want_counts)
    return collect<T>(
        groups, x.dtype(), x.numel(), want_inverse, want_counts, is_first,
        [&](int64_t i) { return elements[i]; }, [](int64_t i) { return i; });
  Distinct d{empty_tensor(Dims{groups.count()}, x.dtype(), Device{}), int64_vector(0),
             int64_vector(0)};
  T* values = d.values.data_as<T>();
  groups.for_each_block([&](int64_t group, int64_t b, int64_t e) {
    constexpr int64_t kStep = 512;
    T kept[kStep];  // without branches: what begins no group is overwritten
    if (b == 0) values[group++] = elements[b++];
    for (; b < e; b += kStep) {
      const T* from = elements + b;
      int64_t count = 0;
      for (int64_t i = 0; i < std::min(kStep, e - b); ++i) {
        kept[count] = from[i];
        count += differ(from[i], from[i - 1]);
      }
      std::copy_n(kept, count, values + group);
      group += count;
    }
  });
  return d;
}

}  // namespace

Distinct cpu_distinct_sorted(const Tensor& x, bool want_inverse, bool want_counts) {
  Distinct d;
  dispatch_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) {
      // Equal integers are the same; of floats the first is shown.
      const bool with_positions = want_inverse || !std::is_integral_v<T>;
      const int64_t n = x.numel();
      const Line line{x.dtype(), x.data(), int64_t(x.item_size()), n};
      const uint64_t flip = std::is_integral_v<T> ? order_key(T(0)) : 0;
      with_form(key_range(line), false, with_positions && n ? index_bits(n) : 0,
                [&](const auto& form) {
                  d = distinct_entries<ItemOf<T>, std::is_integral_v<T>>(
                      x, form, flip, with_positions, want_inverse, want_counts);
                });
    }
  });
  return d;
}

Distinct cpu_distinct_neighbours(const Tensor& x, bool want_inverse, bool want_counts) {
  Distinct d;
  dispatch_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>)
      d = distinct_neighbours<uint8_t>(x, want_inverse, want_counts);
    else if constexpr (std::is_integral_v<T>)
      d = distinct_neighbours<std::make_signed_t<T>>(x, want_inverse, want_counts);
    else if constexpr (!is_complex_v<T>) d = distinct_neighbours<T>(x, want_inverse, want_counts);
  });
  return d;
}

}  // namespace facula

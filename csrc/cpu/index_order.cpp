#include "cpu/index_order.h"

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "cpu/index_entries.h"

namespace facula {
namespace {

constexpr int64_t kFewKeys = 256;
constexpr int64_t kStream = 32;  // fewer than n / kStream elements are picked while reading
constexpr int64_t kInsert = 64;  // as many are kept in order; more, in a heap

// The next element in [from, n) of a dense line that may come before the one at `worst`.
int64_t next_candidate(const Line& line, int64_t from, int64_t worst, bool descending) {
  const IndexLoops& loops = index_loops();
  auto search = [&](auto f, auto* x) { return f(x, from, line.n, x[worst], descending); };
  switch (line.dtype) {
    case DType::Float32: return search(loops.beyond_f32, reinterpret_cast<const float*>(line.data));
    case DType::Float64:
      return search(loops.beyond_f64, reinterpret_cast<const double*>(line.data));
    case DType::Int32: return search(loops.beyond_i32, reinterpret_cast<const int32_t*>(line.data));
    case DType::Int64: return search(loops.beyond_i64, reinterpret_cast<const int64_t*>(line.data));
    case DType::Float16:
    case DType::BFloat16: {
      const uint16_t* x = reinterpret_cast<const uint16_t*>(line.data);
      const uint16_t infinity = line.dtype == DType::Float16 ? 0xfc00 : 0xff80;
      return loops.beyond_halves(x, from, line.n, x[worst], descending, infinity);
    }
    default: return from;
  }
}

template <class E>
void insert_sorted(E* lowest, int64_t k, const E& entry) {  // in place of the last
  int64_t at = k - 1;
  for (; at > 0 && entry < lowest[at - 1]; --at) lowest[at] = lowest[at - 1];
  lowest[at] = entry;
}

// The k lowest entries in order, kept while the line is read once.
template <class Form, class E = typename Form::Entry>
void stream_lowest(const Line& line, const Form& form, bool descending, int64_t k, E* lowest) {
  for_each_key(line, 0, k, [&](int64_t i, uint64_t key) { lowest[i] = form.make(key, i); });
  std::sort(lowest, lowest + k);
  const bool heap = k > kInsert;
  if (heap) std::make_heap(lowest, lowest + k);
  const E& worst = heap ? lowest[0] : lowest[k - 1];
  auto consider = [&](int64_t i, uint64_t key) {
    const E entry = form.make(key, i);
    if (!(entry < worst)) return;
    if (!heap) return insert_sorted(lowest, k, entry);
    std::pop_heap(lowest, lowest + k);
    lowest[k - 1] = entry;
    std::push_heap(lowest, lowest + k);
  };
  const bool skips =
      line.stride == int64_t(item_size(line.dtype)) &&
      (line.dtype == DType::Float32 || line.dtype == DType::Float64 || line.dtype == DType::Int32 ||
       line.dtype == DType::Int64 || line.dtype == DType::Float16 || line.dtype == DType::BFloat16);
  if (skips) {
    for (int64_t i = k; (i = next_candidate(line, i, form.index(worst), descending)) < line.n; ++i)
      for_each_key(line, i, i + 1, consider);
  } else {
    for_each_key(line, k, line.n, consider);
  }
  if (heap) std::sort_heap(lowest, lowest + k);
}

// After a selection entries are in no order, so positions count, too.
template <class Form, class E = typename Form::Entry>
E* sort_selected(const Form& form, E* entries, int64_t n) {
  if constexpr (std::is_same_v<Form, PackedForm>)
    return radix_sort(entries, entries + n, n, 0, form.high);
  std::sort(entries, entries + n);
  return entries;
}

// Values come from the keys where these tell all: the elements lie in no order.
template <class T, bool kDense, class Form, class E>
void write_elements(const Line line, const Form form, const E* entries, int64_t n,
                    const SortedLine out) {
  const int64_t value_step = kDense ? int64_t(sizeof(T)) : out.value_step;
  const int64_t position_step = kDense ? 8 : out.position_step;
  char* value = out.values;
  char* position = out.positions;
  for (int64_t i = 0; i < n; ++i, value += value_step, position += position_step) {
    const int64_t from = form.index(entries[i]);
    *reinterpret_cast<int64_t*>(position) = from;
    if constexpr (std::is_arithmetic_v<T>) {
      if (const uint64_t key = form.key(entries[i]); is_exact_key<T>(key)) {
        *reinterpret_cast<T*>(value) = value_of_key<T>(key);
        continue;
      }
    }
    std::memcpy(value, line.data + from * line.stride, sizeof(T));
  }
}

template <class Form>
void write_sorted(const Line& line, const Form& form, const typename Form::Entry* entries,
                  int64_t k, const SortedLine& out) {
  dispatch_dtype(line.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool dense = out.value_step == int64_t(sizeof(T)) && out.position_step == 8;
    parallel_for(0, k, kLongLine, [&](int64_t b, int64_t e) {
      const SortedLine part{out.values + b * out.value_step, out.value_step,
                            out.positions + b * out.position_step, out.position_step};
      if (dense) write_elements<T, true>(line, form, entries + b, e - b, part);
      else write_elements<T, false>(line, form, entries + b, e - b, part);
    });
  });
}

// A whole line of integers with few keys: how many there are of each says where they go.
void sort_few_keys(const Line& line, KeyRange range, bool descending, const SortedLine& out) {
  auto bucket = [&](uint64_t key) { return descending ? range.high - key : key - range.low; };
  const int64_t n = line.n;
  const int64_t parts =
      in_parallel_region() ? 1 : std::clamp<int64_t>(n / kLongLine, 1, num_threads());
  std::vector<int64_t> places(size_t(parts * kFewKeys), 0);
  auto for_parts = [&](auto&& f) {
    parallel_for(0, parts, 1, [&](int64_t b, int64_t e) {
      for (; b < e; ++b) f(n * b / parts, n * (b + 1) / parts, places.data() + b * kFewKeys);
    });
  };
  for_parts([&](int64_t from, int64_t to, int64_t* own) {
    for_each_key(line, from, to, [=](int64_t, uint64_t key) { ++own[bucket(key)]; });
  });
  int64_t sum = 0, starts[kFewKeys + 1];
  for (int64_t key = 0; key < kFewKeys; ++key) {
    starts[key] = sum;
    for (int64_t p = 0; p < parts; ++p)
      sum += std::exchange(places[size_t(p * kFewKeys + key)], sum);
  }
  starts[kFewKeys] = sum;
  for_parts([&](int64_t from, int64_t to, int64_t* own) {
    for_each_key(line, from, to, [=](int64_t i, uint64_t key) {
      const int64_t place = own[bucket(key)]++;
      *reinterpret_cast<int64_t*>(out.positions + place * out.position_step) = i;
    });
  });
  // The values of a key are all the same and stand together.
  dispatch_dtype(line.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      parallel_for(
          0, kFewKeys, std::max<int64_t>(1, kFewKeys * kLongLine / n), [&](int64_t b, int64_t e) {
            for (int64_t k = b; k < e; ++k) {
              const T value =
                  value_of_key<T>(descending ? range.high - uint64_t(k) : range.low + uint64_t(k));
              char* to = out.values + starts[k] * out.value_step;
              if (out.value_step == int64_t(sizeof(T))) {
                std::fill_n(reinterpret_cast<T*>(to), starts[k + 1] - starts[k], value);
                continue;
              }
              for (int64_t i = starts[k]; i < starts[k + 1]; ++i, to += out.value_step)
                *reinterpret_cast<T*>(to) = value;
            }
          });
  });
}

// Two of a sample of n elements between which, most likely, the one stands that is `at` in order.
struct Bounds {
  static constexpr int64_t kMost = 1024;
  int64_t low, high;
  Bounds(int64_t n, int64_t at, int64_t sample) {
    const int64_t middle = at * sample / n, margin = sample > 256 ? 48 : 8;
    low = std::max<int64_t>(0, middle - margin);
    high = std::min(sample - 1, middle + margin);
  }
  static int64_t sample_of(int64_t n) { return n >= 64 * kMost ? kMost : 64; }
};
constexpr int64_t kWorthSample = 512;

// The entry that is `at` in the order of n. `spare` has room for as many; both lose their order.
// What lies between two of a sample is kept, without a branch on what comes next.
template <class E>
E select_entry(E* entries, E* spare, int64_t n, int64_t at) {
  while (n > kWorthSample) {
    const int64_t count = Bounds::sample_of(n);
    E sample[Bounds::kMost];
    for (int64_t i = 0; i < count; ++i) sample[i] = entries[i * n / count];
    std::sort(sample, sample + count);
    const Bounds bounds(n, at, count);
    const E low = sample[bounds.low], high = sample[bounds.high];
    int64_t below = 0, inside = 0;
    for (int64_t i = 0; i < n; ++i) {
      const E entry = entries[i];
      const bool is_below = entry < low;
      spare[inside] = entry;
      below += is_below;
      inside += !is_below & !(high < entry);
    }
    if (at < below || at >= below + inside || inside > n - n / 8) break;
    std::swap(entries, spare);
    at -= below;
    n = inside;
  }
  std::nth_element(entries, entries + at, entries + n);
  return entries[at];
}

struct Kept {
  int64_t below = 0, inside = 0, nans = 0;
};
// Makes entries of the elements with keys in [low, low + range]; there is room for twice as many.
template <class T, class Form>
Kept keep_between(const Line& line, Form form, uint64_t low, uint64_t range,
                  typename Form::Entry* entries) {
  Kept kept;
  const char* x = line.data;
  if constexpr (std::is_same_v<T, float>) {
    if (line.stride == 4 && line.n < int64_t(1) << 31) {
      const float* v = reinterpret_cast<const float*>(x);
      int32_t* where = reinterpret_cast<int32_t*>(entries + line.n);
      kept.inside = index_loops().between_f32(v, line.n, value_of_key<float>(low),
                                              value_of_key<float>(low + range), where, &kept.below,
                                              &kept.nans);
      for (int64_t i = 0; i < kept.inside; ++i)
        entries[i] = form.make(order_key(v[where[i]]), where[i]);
      return kept;
    }
  }
  for (int64_t i = 0; i < line.n; ++i, x += line.stride) {
    const uint64_t key = order_key(*reinterpret_cast<const T*>(x));
    entries[kept.inside] = form.make(key, i);
    kept.below += key < low;
    kept.inside += key - low <= range;
    if constexpr (!std::is_integral_v<T>) kept.nans += key == nan_key(DTypeOf<T>::value);
  }
  return kept;
}

// As select_entry, while a line is read. Returns -1 where that does not do.
template <class Form>
int64_t pick_between(const Line& line, const Form& form, Pick pick, int64_t k) {
  const int64_t n = line.n;
  int64_t count = Bounds::sample_of(n), at = pick == Pick::Kth ? k - 1 : (n - 1) / 2;
  uint64_t sample[Bounds::kMost];
  for (int64_t i = 0; i < count; ++i)
    for_each_key(line, i * n / count, i * n / count + 1,
                 [&](int64_t, uint64_t key) { sample[i] = key; });
  std::sort(sample, sample + count);
  if (pick == Pick::NanMedian && is_floating(line.dtype)) {
    while (count && sample[count - 1] == nan_key(line.dtype)) --count;
    if (count == 0) return -1;
  }
  const Bounds bounds(n, at, count);
  const uint64_t low = sample[bounds.low], range = sample[bounds.high] - low;
  EntryBuffer<typename Form::Entry> buffer(2 * n);
  Kept kept;
  dispatch_dtype(line.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) kept = keep_between<T>(line, form, low, range, buffer.data());
  });
  if (pick == Pick::NanMedian) at = (n - kept.nans - 1) / 2;
  if ((pick == Pick::Median && kept.nans) || at < kept.below || at >= kept.below + kept.inside)
    return -1;
  return form.index(select_entry(buffer.data(), buffer.data() + n, kept.inside, at - kept.below));
}

template <class Form, class E = typename Form::Entry>
int64_t pick_entry(const Line& line, const Form& form, E* entries, Pick pick, int64_t k) {
  int64_t numbers = line.n;
  if (is_floating(line.dtype) && (pick == Pick::Median || pick == Pick::NanMedian)) {
    const E nan = form.make(nan_key(line.dtype), 0);
    for (int64_t i = 0; i < line.n; ++i) numbers -= form.equal(entries[i], nan);
    if (numbers < line.n && (pick == Pick::Median || numbers == 0)) {
      int64_t first = 0;
      while (!form.equal(entries[first], nan)) ++first;
      return first;
    }
  }
  if (pick == Pick::Mode) {  // the first of the longest runs, by its last position
    entries = radix_sort(entries, entries + line.n, line.n, form.low, form.high);
    int64_t best = 0, last = 0;
    for (int64_t begin = 0, end; begin < line.n; begin = end) {
      for (end = begin + 1; end < line.n && form.equal(entries[end], entries[begin]);) ++end;
      if (end - begin > best) {
        best = end - begin;
        last = end - 1;
      }
    }
    return form.index(entries[last]);
  }
  const int64_t at = pick == Pick::Kth ? k - 1 : (numbers - 1) / 2;
  return form.index(select_entry(entries, entries + line.n, line.n, at));
}

}  // namespace

KeyRange key_range(const Line& line) {
  KeyRange range;
  if (line.dtype == DType::Float64) return {0, ~uint64_t(0)};
  if (is_floating(line.dtype)) return {0, 0xffffffffu};
  if (item_size(line.dtype) < 8) {
    dispatch_dtype(line.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>)
        range = {order_key(std::numeric_limits<T>::min()),
                 order_key(std::numeric_limits<T>::max())};
    });
    return range;
  }
  std::mutex mutex;
  parallel_for(0, line.n, kLongLine, [&](int64_t b, int64_t e) {
    KeyRange own;
    if (line.dtype == DType::Int64 && line.stride == 8) {
      int64_t low = std::numeric_limits<int64_t>::max(), high = std::numeric_limits<int64_t>::min();
      index_loops().extremes(reinterpret_cast<const int64_t*>(line.data) + b, e - b, &low, &high);
      own = {order_key(low), order_key(high)};
    } else {
      for_each_key(line, b, e, [&](int64_t, uint64_t key) {
        own.low = std::min(own.low, key);
        own.high = std::max(own.high, key);
      });
    }
    std::lock_guard lock(mutex);
    range.low = std::min(range.low, own.low);
    range.high = std::max(range.high, own.high);
  });
  return range;
}

void sort_line(const Line& line, bool descending, int64_t k, const SortedLine& out) {
  if (k == 0) return;
  const int64_t n = line.n;
  const KeyRange range = key_range(line);
  if (k == n && n >= 4 * kFewKeys && range.high - range.low < kFewKeys)
    return sort_few_keys(line, range, descending, out);
  with_form(range, descending, index_bits(n), [&]<class Form>(const Form& form) {
    using E = typename Form::Entry;
    const bool stream = k <= n / kStream;
    EntryBuffer<E> buffer(stream ? k : 2 * n);
    E* entries = buffer.data();
    if (stream) {
      stream_lowest(line, form, descending, k, entries);
    } else {
      load_entries(line, form, entries);
      if (k < n) {
        std::nth_element(entries, entries + k, entries + n);
        entries = sort_selected(form, entries, k);
      } else {
        entries = radix_sort(entries, entries + n, n, form.low, form.high);
      }
    }
    write_sorted(line, form, entries, k, out);
  });
}

int64_t pick_position(const Line& line, Pick pick, int64_t k) {
  int64_t position = 0;
  with_form(key_range(line), false, index_bits(line.n), [&]<class Form>(const Form& form) {
    if (pick != Pick::Mode && line.n > kWorthSample) {
      position = pick_between(line, form, pick, k);
      if (position >= 0) return;
    }
    EntryBuffer<typename Form::Entry> buffer(2 * line.n);
    load_entries(line, form, buffer.data());
    position = pick_entry(line, form, buffer.data(), pick, k);
  });
  return position;
}

void load_keys(const Line& line, uint64_t* keys) {
  for_each_key(line, 0, line.n, [&](int64_t i, uint64_t key) { keys[i] = key; });
}

}  // namespace facula

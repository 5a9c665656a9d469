#include "cpu/index_scatter.h"

#include <algorithm>
#include <vector>

#include "cpu/index_items.h"
#include "cpu/index_loops.h"
#include "cpu/index_points.h"
#include "cpu/iterate.h"
#include "cpu/stream.h"

namespace facula {
namespace {

[[noreturn]] void bad_index(int64_t index, int64_t dim, int64_t size) {
  runtime_error("index ", index, " is out of bounds for dimension ", dim, " with size ", size,
                "; valid are 0 to ", size - 1);
}

constexpr int64_t kShortLine = 64;  // index values, fewer than pay for a run of their own

int64_t read_index(const char* p) {
  return *reinterpret_cast<const int64_t*>(p);
}

// Looks at the whole run without leaving early, which vectorises, and only then for the culprit.
void check_range(const char* p, int64_t stride, int64_t n, int64_t size, int64_t dim) {
  bool bad = false;
  if (stride == 8)
    bad = !index_loops().all_inside(reinterpret_cast<const int64_t*>(p), n, 0, uint64_t(size));
  else
    for (int64_t i = 0; i < n; ++i) bad |= uint64_t(read_index(p + i * stride)) >= uint64_t(size);
  for (int64_t i = 0; bad && i < n; ++i)
    if (int64_t at = read_index(p + i * stride); uint64_t(at) >= uint64_t(size))
      bad_index(at, dim, size);
}

// Asks for a line that is about to be read or written in no order, which the processor does not
// foresee, where that touches most of it and it fits the cache.
void prefetch_line(const char* p, int64_t bytes, int64_t touched) {
  constexpr int64_t kMostBytes = 16384;
  if (bytes > kMostBytes || touched < bytes / 64) return;
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

Dims without(IntSpan all, int64_t dim) {
  Dims d(all);
  d.erase(size_t(dim));
  return d;
}

struct ReadOp {  // gather: what stands at the place goes to the value's element
  template <class T>
  static void run(const T& at, T& value) {
    value = at;
  }
};
struct AssignOp {
  template <class T>
  static void run(T& to, const T& from) {
    to = from;
  }
};
struct AddOp {
  template <class T>
  static void run(T& to, const T& from) {
    if constexpr (std::is_same_v<T, bool>) to = to | from;
    else to = T(to + from);
  }
};
struct MultiplyOp {
  template <class T>
  static void run(T& to, const T& from) {
    if constexpr (std::is_same_v<T, bool>) to = to & from;
    else to = T(to * from);
  }
};
struct MaximumOp {  // NaN wins; written so that only NaN branches
  template <class T>
  static void run(T& to, const T& from) {
    T larger = from > to ? from : to;
    if (from != from) larger = from;
    to = larger;
  }
};
struct MinimumOp {
  template <class T>
  static void run(T& to, const T& from) {
    T smaller = from < to ? from : to;
    if (from != from) smaller = from;
    to = smaller;
  }
};

// Whether all elements of a slice have one index, as index_select has it: whole slices are moved
// then. If so, `work` are the slices of the tensor and of the values; its points are the index, or
// lie in `points`.
bool slice_points(const Tensor& tensor, int64_t dim, const Tensor& index, const Tensor& values,
                  std::vector<int64_t>& points, PointWork& work) {
  constexpr int64_t kFew = 4;
  const int64_t count = index.sizes()[dim];
  if (count == 0 || index.numel() / count < kFew) return false;
  for (int64_t d = 0; d < index.dim(); ++d)
    if (d != dim && index.sizes()[d] != 1 && index.strides()[d] != 0) return false;
  const int64_t* index_values = index.data_as<int64_t>();
  const int64_t step = index.strides()[dim];
  for (int64_t i = 0; step != 1 && i < count; ++i) points.push_back(index_values[i * step]);
  const int64_t item = int64_t(tensor.item_size());
  work.points = step == 1 ? index_values : points.data();
  work.count = count;
  work.scale = tensor.strides()[dim] * item;
  work.step = values.strides()[dim] * item;
  work.item = item;
  Dims rest = without(index.sizes(), dim);
  work.rest.begin(rest);
  work.rest.add(tensor.data(), rest, without(tensor.strides(), dim), item);
  work.rest.add(values.data(), rest, without(values.strides(), dim), item);
  work.rest.finish();
  return true;
}

struct Line {
  int64_t count, out, index, src;  // extent along the dimension and byte strides there
  int64_t size, dim;               // what index values are checked against
};

template <class Op, class T>
FACULA_INLINE void scatter_run(char* out, int64_t out_step, int64_t out_scale, const char* index,
                               int64_t index_step, char* src, int64_t src_step, int64_t n) {
  if (out_step == 0 && out_scale == int64_t(sizeof(T)) && index_step == 8 &&
      src_step == int64_t(sizeof(T))) {  // dense lines
    T* to = reinterpret_cast<T*>(out);
    const int64_t* at = reinterpret_cast<const int64_t*>(index);
    T* from = reinterpret_cast<T*>(src);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      Op::run(to[at[i]], from[i]);
      Op::run(to[at[i + 1]], from[i + 1]);
      Op::run(to[at[i + 2]], from[i + 2]);
      Op::run(to[at[i + 3]], from[i + 3]);
    }
#pragma GCC unroll 1
    for (; i < n; ++i) Op::run(to[at[i]], from[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i, out += out_step, index += index_step, src += src_step)
    Op::run(*reinterpret_cast<T*>(out + read_index(index) * out_scale), *reinterpret_cast<T*>(src));
}

// Dense lines of `count` index values that follow each other.
template <class Op, class T>
void run_short_lines(int64_t count, char* out, int64_t out_step, const int64_t* index, char* src,
                     int64_t src_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i, out += out_step, src += src_step, index += count) {
    T* to = reinterpret_cast<T*>(out);
    T* from = reinterpret_cast<T*>(src);
#pragma GCC unroll 1
    for (int64_t k = 0; k < count; ++k) Op::run(to[index[k]], from[k]);
  }
}

// Lines along the dimension are independent; within one the order of the index decides. Of the two
// loops the one along memory goes inside.
template <class Op, class T>
void scatter_lines(const Line& line, char* const* p, const int64_t* s, int64_t n) {
  constexpr int64_t kBlock = 1024;  // index values that are checked and read while in the cache
  if (n > 1 && (line.index > s[1] || line.count == 1)) {
    for (int64_t k = 0; k < line.count; ++k) {
      check_range(p[1] + k * line.index, s[1], n, line.size, line.dim);
      scatter_run<Op, T>(p[0], s[0], line.out, p[1] + k * line.index, s[1], p[2] + k * line.src,
                         s[2], n);
    }
    return;
  }
  // Short lines whose index values follow each other are checked together.
  const bool adjoin = s[1] == line.count * line.index;
  const int64_t together = adjoin ? std::max<int64_t>(1, kBlock / line.count) : 1;
  for (int64_t first = 0; first < n; first += together) {
    const int64_t end = std::min(n, first + together);
    if (together > 1)
      check_range(p[1] + first * s[1], line.index, (end - first) * line.count, line.size, line.dim);
    if (together > 1 && line.index == 8 && line.out == int64_t(sizeof(T)) && line.src == line.out) {
      run_short_lines<Op, T>(line.count, p[0] + first * s[0], s[0],
                             reinterpret_cast<const int64_t*>(p[1] + first * s[1]),
                             p[2] + first * s[2], s[2], end - first);
      continue;
    }
    for (int64_t i = first; i < end; ++i) {
      if (line.count >= kShortLine && line.out == int64_t(sizeof(T)))
        prefetch_line(p[0] + i * s[0], line.size * line.out, line.count);
      for (int64_t k = 0; k < line.count; k += kBlock) {
        const char* index = p[1] + i * s[1] + k * line.index;
        const int64_t m = std::min(kBlock, line.count - k);
        if (together == 1) check_range(index, line.index, m, line.size, line.dim);
        scatter_run<Op, T>(p[0] + i * s[0], 0, line.out, index, line.index,
                           p[2] + i * s[2] + k * line.src, line.src, m);
      }
    }
  }
}

// All lines of an index, with those of what it points into and of the values.
struct LineWork {
  Line line;
  Iteration it;  // over lines

  LineWork(const Tensor& tensor, int64_t dim, const Tensor& index, const Tensor& values)
      : line{index.sizes()[dim],       tensor.strides()[dim] * int64_t(tensor.item_size()),
             index.strides()[dim] * 8, values.strides()[dim] * int64_t(tensor.item_size()),
             tensor.sizes()[dim],      dim} {
    const int64_t item = int64_t(tensor.item_size());
    const Dims shape = without(index.sizes(), dim);
    it.begin(shape);
    it.add(tensor.data(), shape, without(tensor.strides(), dim), item);
    it.add(index.data(), shape, without(index.strides(), dim), 8);
    it.add(values.data(), shape, without(values.strides(), dim), item);
    it.finish();
  }
  template <class Op, class T>
  void run() const {
    it.run_parallel(
        [&](char* const* p, const int64_t* s, int64_t n) { scatter_lines<Op, T>(line, p, s, n); },
        std::max<int64_t>(1, kGrain / line.count));
  }
};

// A stretch of every slice.
template <class Op, class T>
void combine_slices(const PointWork& w, char* const* p, const int64_t* s, int64_t n) {
  const bool dense = s[0] == int64_t(sizeof(T)) && s[1] == s[0];
  for (int64_t i = 0; i < w.count; ++i) {
    char* to = p[0] + w.place(i);
    const char* from = p[1] + i * w.step;
    if (dense)
      for (int64_t j = 0; j < n; ++j)
        Op::run(reinterpret_cast<T*>(to)[j], reinterpret_cast<const T*>(from)[j]);
    else
      for (int64_t j = 0; j < n; ++j)
        Op::run(*reinterpret_cast<T*>(to + j * s[0]), *reinterpret_cast<const T*>(from + j * s[1]));
  }
}

}  // namespace

void cpu_gather(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  if (index.numel() == 0) return;
  const int64_t item = int64_t(self.item_size()), size = self.sizes()[dim];
  const int64_t step = self.strides()[dim] * item;
  std::vector<int64_t> points;
  PointWork slices;
  if (slice_points(self, dim, index, out, points, slices)) {
    check_range(reinterpret_cast<const char*>(slices.points), 8, slices.count, size, dim);
    return cpu_read_points(slices);
  }
  if (index.strides()[dim] == 1 && index.sizes()[dim] < kShortLine) {
    const LineWork lines(self, dim, index, out);
    with_item_type(item, [&](auto tag) {
      using T = typename decltype(tag)::type;
      lines.run<ReadOp, T>();
    });
    return;
  }
  Dims fixed(self.strides());
  fixed[size_t(dim)] = 0;
  Iteration it;
  it.begin(index.sizes());
  it.add(out.data(), index.sizes(), out.strides(), item);
  it.add(index.data(), index.sizes(), index.strides(), 8);
  it.add(self.data(), index.sizes(), fixed, item);
  it.finish();
  with_item_type(item, [&](auto tag) {
    using T = typename decltype(tag)::type;
    it.run_parallel([&](char* const* p, const int64_t* s, int64_t n) {
      const char* from = p[2];
      if (s[1] == 8 && s[0] == item && s[2] == 0 && step == item) {  // from one row
        constexpr int64_t kBlock = 1024;  // checked and read while it is in the cache
        const int64_t* at = reinterpret_cast<const int64_t*>(p[1]);
        const T* row = reinterpret_cast<const T*>(from);
        T* to = reinterpret_cast<T*>(p[0]);
        prefetch_line(from, size * item, n);
        for (int64_t b = 0; b < n; b += kBlock) {
          const int64_t e = std::min(n, b + kBlock);
          check_range(p[1] + 8 * b, 8, e - b, size, dim);
#pragma GCC unroll 8
          for (int64_t i = b; i < e; ++i) to[i] = row[at[i]];
        }
        return;
      }
      check_range(p[1], s[1], s[1] ? n : 1, size, dim);
      if (s[1] == 0) {  // one index for a run
        from += read_index(p[1]) * step;
        if (s[0] == item && s[2] == item) {
          copy_bytes(p[0], from, n * item);
          return;
        }
        for (int64_t i = 0; i < n; ++i, from += s[2])
          *reinterpret_cast<T*>(p[0] + i * s[0]) = *reinterpret_cast<const T*>(from);
        return;
      }
      if (s[1] == 8 && s[0] == item) {  // a dense run of index and result
        const int64_t* at = reinterpret_cast<const int64_t*>(p[1]);
        T* to = reinterpret_cast<T*>(p[0]);
        for (int64_t i = 0; i < n; ++i, from += s[2])
          to[i] = *reinterpret_cast<const T*>(from + at[i] * step);
        return;
      }
      for (int64_t i = 0; i < n; ++i, from += s[2])
        *reinterpret_cast<T*>(p[0] + i * s[0]) =
            *reinterpret_cast<const T*>(from + read_index(p[1] + i * s[1]) * step);
    });
  });
}

void cpu_check_scatter_index(const Tensor& index, int64_t size, int64_t dim) {
  Dims shape(index.sizes());  // without repetitions
  for (size_t d = 0; d < shape.size(); ++d)
    if (index.strides()[d] == 0) shape[d] = 1;
  Iteration it;
  it.begin(shape);
  it.add(index.data(), shape, index.strides(), 8);
  it.finish();
  it.run_parallel(
      [&](char* const* p, const int64_t* s, int64_t n) { check_range(p[0], s[0], n, size, dim); });
}

void cpu_scatter(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src,
                 Combine combine) {
  if (index.numel() == 0) return;
  const int64_t item = int64_t(out.item_size());
  std::vector<int64_t> points;
  PointWork slices;
  const bool whole = slice_points(out, dim, index, src, points, slices);
  if (whole)
    check_range(reinterpret_cast<const char*>(slices.points), 8, slices.count, out.sizes()[dim],
                dim);
  if (whole && combine == Combine::Assign) return cpu_write_points(slices);
  if (whole && combine == Combine::Add) return cpu_add_points(slices, out.dtype(), Scalar(1));
  if (combine == Combine::Add && index.numel() == index.sizes()[dim] && index.strides()[dim] == 1) {
    PointWork one_line;
    one_line.points = index.data_as<int64_t>();
    one_line.count = index.numel();
    one_line.places = out.sizes()[dim];
    one_line.scale = out.strides()[dim] * item;
    one_line.step = src.strides()[dim] * item;
    one_line.item = item;
    one_line.rest.begin({});
    one_line.rest.add(out.data(), {}, {}, item);
    one_line.rest.add(src.data(), {}, {}, item);
    one_line.rest.finish();
    const int64_t bad = find_bad_index(one_line.points, one_line.count, one_line.places, false);
    if (bad >= 0) bad_index(one_line.points[bad], dim, one_line.places);
    return cpu_add_points(one_line, out.dtype(), Scalar(1));
  }
  const LineWork lines(out, dim, index, src);
  const int64_t grain = std::max<int64_t>(1, kGrain / lines.line.count);
  auto run = [&]<class Op, class T>(Op, TypeTag<T>) {
    if (whole)
      return slices.rest.run_parallel([&](char* const* p, const int64_t* s,
                                          int64_t n) { combine_slices<Op, T>(slices, p, s, n); },
                                      std::max<int64_t>(16, grain));
    lines.run<Op, T>();
  };
  if (combine == Combine::Assign) {
    with_item_type(item, [&](auto tag) { run(AssignOp{}, tag); });
    return;
  }
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_small_float_v<T>) {
      if (combine == Combine::Add) return run(AddOp{}, tag);
      if (combine == Combine::Multiply) return run(MultiplyOp{}, tag);
      if constexpr (!is_complex_v<T>) {
        if (combine == Combine::Maximum) return run(MaximumOp{}, tag);
        if (combine == Combine::Minimum) return run(MinimumOp{}, tag);
      }
    }
    runtime_error("scatter with this reduction is not implemented for ", out.dtype());
  });
}

}  // namespace facula

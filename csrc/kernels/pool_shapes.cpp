#include "kernels/pool_shapes.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/thread_pool.h"
#include "cpu/cast.h"
#include "cpu/iterate.h"
#include "cpu/max_pool.h"

namespace facula {

Dims pooled_sizes(const Tensor& input, IntSpan kernel, IntSpan stride, IntSpan padding,
                  IntSpan dilation, bool ceil_mode) {
  const size_t dims = kernel.size();
  const IntSpan sizes = input.sizes().last(dims);
  Dims out;
  for (size_t i = 0; i < dims; ++i) {
    if (kernel[i] <= 0)
      runtime_error("kernel size should be greater than zero, but got kernel_size=", kernel);
    if (stride[i] <= 0) runtime_error("stride should not be zero, but got stride=", stride);
    if (dilation[i] <= 0)
      runtime_error("dilation should be greater than zero, but got dilation=", dilation);
    if (padding[i] < 0) runtime_error("pad must be non-negative, but got padding=", padding);
    if (padding[i] > ((kernel[i] - 1) * dilation[i] + 1) / 2)
      runtime_error("pad should be at most half of effective kernel size, but got pad=", padding[i],
                    ", kernel_size=", kernel[i], " and dilation=", dilation[i]);
    const int64_t room = sizes[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
    // Towards minus infinity: a kernel that does not fit leaves nothing.
    auto divided = [&](int64_t a) {
      return a >= 0 ? a / stride[i] : -((-a + stride[i] - 1) / stride[i]);
    };
    int64_t n = divided(room + (ceil_mode ? stride[i] - 1 : 0)) + 1;
    // The last window begins on the input or the padding in front of it.
    if (ceil_mode && (n - 1) * stride[i] >= sizes[i] + padding[i]) --n;
    out.push_back(n);
  }
  for (int64_t n : out)
    if (n < 1)
      runtime_error("Given input of shape ", input.sizes(),
                    ", the output would have spatial sizes ", IntSpan(out),
                    ". Output size is too small: kernel_size=", kernel, ", dilation=", dilation,
                    " and padding=", padding, " do not fit the input");
  return out;
}

namespace {

template <class T>
void max_of_windows_as(const Spatial& in, const Spatial& values, const Spatial& where,
                       const MaxWindows& windows) {
  const T* x = in.t.data_as<T>();
  T* y = values.t.data_as<T>();
  int64_t* at = where.t.data_as<int64_t>();
  const int64_t work = std::max<int64_t>(1, in.pixels() * in.inner);
  parallel_for(0, in.outer, std::max<int64_t>(1, kGrain / work), [&](int64_t b, int64_t e) {
    std::vector<PoolWindow> axis[3];
    for (; b < e; ++b) {
      for (int i = 0; i < 3 && (axis[i].empty() || windows.by_plane); ++i) {
        axis[i].clear();
        for (int64_t t = 0; t < values.size[i]; ++t) axis[i].push_back(windows.window(b, i, t));
      }
      const T* plane = x + b * work;
      int64_t k = b * values.pixels() * in.inner;
      if constexpr (std::is_floating_point_v<T> || is_small_float_v<T>)
        if (in.pixels() <= std::numeric_limits<int32_t>::max()) {
          PoolWindows p{in.t.dtype(), in.inner, {}, {}, {}};
          for (int i = 0; i < 3; ++i)
            p.in[i] = in.size[i], p.out[i] = values.size[i], p.axis[i] = axis[i].data();
          max_of_windows(p, plane, y + k, at + k);
          continue;
        }
      for (auto [z0, z1] : axis[0])
        for (auto [y0, y1] : axis[1])
          for (auto [x0, x1] : axis[2])
            for (int64_t c = 0; c < in.inner; ++c, ++k) {
              int64_t best = (z0 * in.size[1] + y0) * in.size[2] + x0;
              T largest = plane[best * in.inner + c];
              for (int64_t z = z0; z < z1; ++z)
                for (int64_t r = y0; r < y1; ++r)
                  for (int64_t q = x0; q < x1; ++q) {
                    const int64_t pixel = (z * in.size[1] + r) * in.size[2] + q;
                    const T v = plane[pixel * in.inner + c];
                    if (v > largest || v != v) largest = v, best = pixel;
                  }
              y[k] = largest;
              at[k] = best;
            }
    }
  });
}

}  // namespace

void max_of_windows(const Spatial& in, const Spatial& values, const Spatial& where,
                    const MaxWindows& windows) {
  dispatch_dtype(in.t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) max_of_windows_as<T>(in, values, where, windows);
  });
}

// Dense memory, in vectors.
static void convert_all(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t n) {
  cast_loop(from_dtype, to_dtype)(static_cast<char*>(to), int64_t(item_size(to_dtype)),
                                  static_cast<const char*>(from), int64_t(item_size(from_dtype)),
                                  n);
}

void sum_by_positions(const Spatial& grad, const Spatial& where, const Spatial& out) {
  const int64_t from = grad.pixels() * grad.inner, to = out.pixels() * out.inner;
  dispatch_dtype(out.t.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    using A = std::conditional_t<is_small_float_v<S>, float, S>;
    if constexpr (is_small_float_v<S> || std::is_floating_point_v<S>) {
      const bool direct = std::is_same_v<A, S>;
      constexpr DType compute = DTypeOf<A>::value;
      parallel_for(0, grad.outer, std::max<int64_t>(1, kGrain / (from + to)),
                   [&](int64_t b, int64_t e) {
                     std::vector<A> scratch(direct ? 0 : size_t(to + from));
                     for (; b < e; ++b) {
                       const S* given = grad.t.data_as<S>() + b * from;
                       const int64_t* at = where.t.data_as<int64_t>() + b * from;
                       S* x = out.t.data_as<S>() + b * to;
                       A* sums = direct ? reinterpret_cast<A*>(x) : scratch.data();
                       const A* g = direct ? reinterpret_cast<const A*>(given) : sums + to;
                       if (!direct) convert_all(given, grad.t.dtype(), sums + to, compute, from);
                       std::fill(sums, sums + to, A(0));
                       for (int64_t k = 0; k < from; k += grad.inner)
                         for (int64_t c = 0; c < grad.inner; ++c)
                           sums[at[k + c] * grad.inner + c] += g[k + c];
                       if (!direct) convert_all(sums, compute, x, out.t.dtype(), to);
                     }
                   });
    }
  });
}

}  // namespace facula

#include "cpu/reduce_index.h"

#include "cpu/along_dim.h"
#include "cpu/cast.h"

namespace facula {
namespace {

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return v != v;
  else return false;
}

// One rank for all three tensors: the results get their dimension back as size 1.
Tensor with_dim(const Tensor& t, const Tensor& in, int64_t dim, bool keepdim) {
  if (keepdim || in.dim() == 0) return t;
  Dims sizes(t.sizes()), strides(t.strides());
  sizes.insert(dim, 1);
  strides.insert(dim, 1);
  return alias_tensor(t, sizes, strides, t.offset());
}

template <class T, class Load>
void find_extreme(const char* p, int64_t stride, int64_t n, bool largest, Load load, T& best, int64_t& at) {
  best = load(p);
  at = 0;
  for (int64_t i = 1; i < n && !is_nan(best); ++i) {
    T v = load(p + i * stride);
    if ((largest ? v > best : v < best) || is_nan(v)) {
      best = v;
      at = i;
    }
  }
}

}  // namespace

void cpu_reduce_index(const Tensor& in, int64_t dim, bool keepdim, bool largest, const Tensor& values,
                      const Tensor& indices) {
  Tensor v = with_dim(values, in, dim, keepdim), x = with_dim(indices, in, dim, keepdim);
  const int64_t n = in.dim() ? in.sizes()[dim] : 1;
  const int64_t stride = in.dim() ? in.strides()[dim] * int64_t(in.item_size()) : 0;
  CastLoop store = cast_loop(in.dtype(), values.dtype());
  dispatch_dtype(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Complex<float>> && !std::is_same_v<T, Complex<double>>) {
      using C = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
      auto load = [](const char* p) { return convert<C>(*reinterpret_cast<const T*>(p)); };
      for_each_line<3>({&in, &v, &x}, dim, n, [&](const int64_t* at) {
        const char* p = in.data() + at[0];
        C best;
        int64_t where;
        find_extreme<C>(p, stride, n, largest, load, best, where);
        store(v.data() + at[1], 0, p + where * stride, 0, 1);
        *reinterpret_cast<int64_t*>(x.data() + at[2]) = where;
      });
    }
  });
}

void cpu_cumsum(const Tensor& in, int64_t dim, const Tensor& out) {
  const int64_t n = in.dim() ? in.sizes()[dim] : 1;
  const int64_t is = in.dim() ? in.strides()[dim] * int64_t(in.item_size()) : 0;
  const int64_t os = out.dim() ? out.strides()[dim] * int64_t(out.item_size()) : 0;
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Small floats and float32 are summed in a wider type and rounded as they are stored.
    using Acc = std::conditional_t<std::is_same_v<T, float>, double,
                std::conditional_t<std::is_same_v<T, Complex<float>>, Complex<double>,
                std::conditional_t<std::is_arithmetic_v<T> || std::is_same_v<T, Complex<double>>, T, float>>>;
    CastLoop load = cast_loop(in.dtype(), DTypeOf<Acc>::value);
    for_each_line<2>({&in, &out}, dim, n, [&](const int64_t* at) {
      Acc acc = Acc(0);
      Acc chunk[256];
      for (int64_t i = 0; i < n; i += 256) {
        int64_t m = std::min<int64_t>(256, n - i);
        load(reinterpret_cast<char*>(chunk), sizeof(Acc), in.data() + at[0] + i * is, is, m);
        char* o = out.data() + at[1] + i * os;
        for (int64_t k = 0; k < m; ++k) {
          acc = Acc(acc + chunk[k]);
          *reinterpret_cast<T*>(o + k * os) = convert<T>(acc);
        }
      }
    });
  });
}

}  // namespace facula

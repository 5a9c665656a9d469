#include "cpu/cross_entropy.h"

#include <algorithm>

#include "cpu/cast.h"
#include "cpu/cross_entropy_loops.h"
#include "cpu/iterate.h"

namespace facula {

#define FACULA_TABLES(isa)                                  \
  namespace isa {                                           \
  extern const CrossEntropyLoops<float> cross_entropy_f32;  \
  extern const CrossEntropyLoops<double> cross_entropy_f64; \
  }
FACULA_TABLES(baseline)
#ifdef FACULA_X86
FACULA_TABLES(v3)
FACULA_TABLES(v4)
#endif
#undef FACULA_TABLES

namespace {

template <class T>
const CrossEntropyLoops<T>& loops() {
  auto of = [](const CrossEntropyLoops<float>& single, const CrossEntropyLoops<double>& twice) {
    if constexpr (sizeof(T) == 4) return &single;
    else return &twice;
  };
#ifdef FACULA_X86
  static const CrossEntropyLoops<T>* const by_level[] = {
      of(baseline::cross_entropy_f32, baseline::cross_entropy_f64),
      of(v3::cross_entropy_f32, v3::cross_entropy_f64),
      of(v4::cross_entropy_f32, v4::cross_entropy_f64)};
  return *by_level[isa_level()];
#else
  return *of(baseline::cross_entropy_f32, baseline::cross_entropy_f64);
#endif
}

// Calls f(first sample, width, offset of its logits) for rows, or for blocks of columns.
template <class T, class F>
void for_each_block(const ClassTargets<T>& t, F&& f) {
  const int64_t per_image = (t.inner + kColumnsAtOnce - 1) / kColumnsAtOnce;
  const int64_t size = t.classes * std::min(t.inner, kColumnsAtOnce);
  const int64_t grain = std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(size, 1));
  parallel_for(0, t.batch * per_image, grain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t image = i / per_image, at = i % per_image * kColumnsAtOnce;
      f(image * t.inner + at, std::min(kColumnsAtOnce, t.inner - at),
        image * t.classes * t.inner + at);
    }
  });
}

template <class T>
T total(const T* weight, int64_t classes) {
  if (!weight) return T(classes);
  T sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += weight[c];
  return sum;
}

}  // namespace

template <class T>
T cpu_cross_entropy(const CrossEntropy<T>& c, T* loss) {
  const ClassTargets<T>& t = c.targets;
  const T smooth = T(c.smoothing), share = smooth / T(t.classes);
  const T all = smooth != T(0) ? total(t.weight, t.classes) : T(0);
  for_each_block(t, [&](int64_t first, int64_t width, int64_t at) {
    T sums[kColumnsAtOnce];
    T* weighted = smooth != T(0) ? sums : nullptr;
    const T* x = c.input + at;
    if (t.inner == 1)
      loops<T>().row(x, t.classes, t.weight, c.largest + first, c.log_sum + first, weighted);
    else
      loops<T>().columns(x, t.classes, t.inner, width, t.weight, c.largest + first,
                         c.log_sum + first, weighted);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t i = first + j, label = t.target[i];
      if (label == t.ignored) {
        loss[i] = 0;
        continue;
      }
      // In this order: a confident sample's loss is the small log_sum alone.
      const T lost = (c.largest[i] - x[label * t.inner + j]) + c.log_sum[i];
      loss[i] = t.weight_of(label) * lost;
      if (smooth == T(0)) continue;
      const T uniform = all * (c.largest[i] + c.log_sum[i]) - sums[j];
      loss[i] = (T(1) - smooth) * loss[i] + share * uniform;
    }
  });
  double sum = 0;
  for (int64_t i = 0; i < t.count(); ++i)
    if (t.target[i] != t.ignored) sum += double(t.weight_of(t.target[i]));
  return T(sum);
}

template <class T>
void cpu_cross_entropy_backward(const CrossEntropy<T>& c, const T* grad, T* input_grad) {
  const ClassTargets<T>& t = c.targets;
  const T smooth = T(c.smoothing), part = smooth / T(t.classes);
  const T all = smooth != T(0) ? total(t.weight, t.classes) : T(0);
  for_each_block(t, [&](int64_t first, int64_t width, int64_t at) {
    T scale[kColumnsAtOnce], share[kColumnsAtOnce];
    for (int64_t j = 0; j < width; ++j) {
      const int64_t i = first + j, label = t.target[i];
      const bool counts = label != t.ignored;
      scale[j] = counts ? grad[i] * ((T(1) - smooth) * t.weight_of(label) + part * all) : T(0);
      share[j] = counts ? grad[i] * part : T(0);
    }
    T* dx = input_grad + at;
    if (t.inner == 1 && t.target[first] == t.ignored) {
      std::fill(dx, dx + t.classes, T(0));  // also where the logits are not finite
      return;
    }
    if (t.inner == 1)
      loops<T>().row_gradient(c.input + at, dx, t.classes, t.weight, c.largest[first],
                              c.log_sum[first], scale[0], share[0]);
    else
      loops<T>().column_gradient(c.input + at, dx, t.classes, t.inner, width, t.weight,
                                 c.largest + first, c.log_sum + first, scale, share);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t i = first + j, label = t.target[i];
      if (label != t.ignored)
        dx[label * t.inner + j] -= grad[i] * (T(1) - smooth) * t.weight_of(label);
    }
  });
}

template float cpu_cross_entropy(const CrossEntropy<float>&, float*);
template double cpu_cross_entropy(const CrossEntropy<double>&, double*);
template void cpu_cross_entropy_backward(const CrossEntropy<float>&, const float*, float*);
template void cpu_cross_entropy_backward(const CrossEntropy<double>&, const double*, double*);

}  // namespace facula

#include "cpu/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/cast.h"
#include "cpu/iterate.h"
#include "cpu/norm_loops.h"

namespace facula {

namespace baseline {
extern const NormTable norm_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const NormTable norm_loops;
}
namespace v4 {
extern const NormTable norm_loops;
}
#endif

namespace {

template <class S>
const auto& loops() {
#ifdef FACULA_X86
  static const NormTable* const by_level[] = {&baseline::norm_loops, &v3::norm_loops,
                                              &v4::norm_loops};
  const NormTable& table = *by_level[isa_level()];
#else
  const NormTable& table = baseline::norm_loops;
#endif
  if constexpr (std::is_same_v<S, float>) return table.singles;
  else if constexpr (std::is_same_v<S, double>) return table.doubles;
  else if constexpr (std::is_same_v<S, Half>) return table.halves;
  else return table.brain_halves;
}

// Sums over rows are made of parts, added up in order: the same result for any number of threads.
constexpr int64_t kMostParts = 16;
int64_t parts_of(int64_t rows, int64_t n) {
  return std::clamp<int64_t>(rows * n / kGrain, 1,
                             std::min(kMostParts, std::max<int64_t>(rows, 1)));
}

template <class F>  // f(part, first row, last row)
void for_each_part(int64_t parts, int64_t rows, F&& f) {
  parallel_for(0, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) f(p, rows * p / parts, rows * (p + 1) / parts);
  });
}

int64_t rows_at_once(int64_t n) {
  return std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(n, 1));
}

template <class T>
T rstd_of(T variance, double eps) {
  return T(1) / std::sqrt(variance + T(eps));
}

}  // namespace

// ---- rows

template <class T, class S>
void cpu_normalize_rows(const RowNorm<T, S>& norm, const T* bias, double eps, S* output) {
  const int64_t n = norm.n;
  parallel_for(0, norm.rows, rows_at_once(n), [&](int64_t b, int64_t e) {
    loops<S>().rows(norm.input + b * n, norm.weight, bias, output + b * n,
                    norm.mean ? norm.mean + b : nullptr, norm.rstd + b, e - b, n, eps);
  });
}

namespace {

// The gradients of the rows by parts: part(first row, last row, sums for weight_grad, for
// bias_grad).
template <class T, class S, class F>
void rows_backward(const RowNorm<T, S>& norm, T* weight_grad, T* bias_grad, F&& part) {
  const int64_t n = norm.n, parts = parts_of(norm.rows, n);
  std::vector<T> sums(size_t(2 * parts * n));
  for_each_part(parts, norm.rows, [&](int64_t p, int64_t b, int64_t e) {
    part(b, e, weight_grad ? sums.data() + 2 * p * n : nullptr,
         bias_grad ? sums.data() + (2 * p + 1) * n : nullptr);
  });
  auto add_up = [&](T* to, int64_t which) {
    if (!to) return;
    std::fill(to, to + n, T(0));
    for (int64_t p = 0; p < parts; ++p) {
      const T* from = sums.data() + (2 * p + which) * n;
      for (int64_t i = 0; i < n; ++i) to[i] += from[i];
    }
  };
  add_up(weight_grad, 0);
  add_up(bias_grad, 1);
}

}  // namespace

template <class T, class S>
void cpu_normalize_rows_backward(const RowNorm<T, S>& norm, const S* grad, S* input_grad,
                                 T* weight_grad, T* bias_grad) {
  const int64_t n = norm.n;
  rows_backward(norm, weight_grad, bias_grad, [&](int64_t b, int64_t e, T* of_weight, T* of_bias) {
    loops<S>().rows_backward(
        grad + b * n, norm.input + b * n, norm.weight, norm.mean ? norm.mean + b : nullptr,
        norm.rstd + b, input_grad ? input_grad + b * n : nullptr, of_weight, of_bias, e - b, n);
  });
}

// ---- channels as runs

namespace {

// What one channel's values become: (x - center) * scale + shift.
template <class T>
struct Line {
  T center, scale, shift;
};

// The runs of channels [b, e): f(channel, offset, length).
template <class F>
void for_each_run(const ChannelShape& s, int64_t channel, F&& f) {
  for (int64_t n = 0; n < s.batch; ++n) f((n * s.channels + channel) * s.inner);
}

// Few channels: their runs are split over the threads, in pieces of this many values.
constexpr int64_t kPiece = 16384;

template <class F>  // f(channel, offset, length, index of the piece)
void for_each_piece(const ChannelShape& s, F&& f) {
  const int64_t per_run = (s.inner + kPiece - 1) / kPiece, runs = s.batch * s.channels;
  parallel_for(0, runs * per_run, 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t run = i / per_run, from = i % per_run * kPiece;
      f(run % s.channels, run * s.inner + from, std::min(kPiece, s.inner - from), i);
    }
  });
}
int64_t piece_count(const ChannelShape& s) {
  return s.batch * s.channels * ((s.inner + kPiece - 1) / kPiece);
}

bool enough_channels(const ChannelShape& s) {
  return s.channels >= 2 * num_threads() || s.count() * s.channels <= kGrain;
}
int64_t channels_at_once(const ChannelShape& s) {
  return std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(s.count(), 1));
}

template <class T, class S>
Line<T> line_of(const ChannelNorm<T, S>& norm, const T* bias, double eps, T* variance, int64_t c,
                const Moments<T>& m) {
  norm.mean[c] = m.mean;
  variance[c] = m.squares / m.count;
  norm.rstd[c] = rstd_of(variance[c], eps);
  return {m.mean, norm.weight ? norm.rstd[c] * norm.weight[c] : norm.rstd[c],
          bias ? bias[c] : T(0)};
}

template <class T, class S>
void batch_norm_runs(const ChannelNorm<T, S>& norm, const T* bias, double eps, T* variance,
                     S* output) {
  const ChannelShape& s = norm.shape;
  const auto& l = loops<S>();
  if (enough_channels(s)) {
    // A channel at a time: its values are still in the cache when they are normalised.
    parallel_for(0, s.channels, channels_at_once(s), [&](int64_t b, int64_t e) {
      for (int64_t c = b; c < e; ++c) {
        Moments<T> m{0, 0, 0};
        for_each_run(s, c,
                     [&](int64_t at) { m = combined(m, l.moments(norm.input + at, s.inner)); });
        const Line<T> line = line_of(norm, bias, eps, variance, c, m);
        for_each_run(s, c, [&](int64_t at) {
          l.scale(norm.input + at, output + at, s.inner, line.center, line.scale, line.shift);
        });
      }
    });
    return;
  }
  std::vector<Moments<T>> parts(static_cast<size_t>(piece_count(s)));
  std::vector<Moments<T>> whole(size_t(s.channels), Moments<T>{0, 0, 0});
  std::vector<int64_t> channel(parts.size());
  for_each_piece(s, [&](int64_t c, int64_t at, int64_t n, int64_t i) {
    parts[size_t(i)] = l.moments(norm.input + at, n);
    channel[size_t(i)] = c;
  });
  for (size_t i = 0; i < parts.size(); ++i) {
    Moments<T>& m = whole[size_t(channel[i])];
    m = combined(m, parts[i]);
  }
  std::vector<Line<T>> lines;
  for (int64_t c = 0; c < s.channels; ++c)
    lines.push_back(line_of(norm, bias, eps, variance, c, whole[size_t(c)]));
  for_each_piece(s, [&](int64_t c, int64_t at, int64_t n, int64_t) {
    const Line<T>& line = lines[size_t(c)];
    l.scale(norm.input + at, output + at, n, line.center, line.scale, line.shift);
  });
}

// dx = a g + b (x - mean) + c from the sums of g and of g (x - mean) over a channel.
template <class T>
struct GradientLine {
  T a, b, c;
  GradientLine(T rstd, T weight, T of_g, T of_gx, int64_t count)
      : a(rstd * weight), b(-a * rstd * rstd * (of_gx / T(count))), c(-a * (of_g / T(count))) {}
};

template <class T, class S>
void batch_norm_backward_runs(const ChannelNorm<T, S>& norm, const S* grad, S* input_grad,
                              T* weight_grad, T* bias_grad) {
  const ChannelShape& s = norm.shape;
  const auto& l = loops<S>();
  auto finish = [&](int64_t c, T of_g, T of_gx) {
    if (weight_grad) weight_grad[c] = of_gx * norm.rstd[c];
    if (bias_grad) bias_grad[c] = of_g;
    return GradientLine<T>(norm.rstd[c], norm.weight ? norm.weight[c] : T(1), of_g, of_gx,
                           s.count());
  };
  if (enough_channels(s)) {
    parallel_for(0, s.channels, channels_at_once(s), [&](int64_t b, int64_t e) {
      for (int64_t c = b; c < e; ++c) {
        T of_g = 0, of_gx = 0;
        for_each_run(s, c, [&](int64_t at) {
          T g, gx;
          l.gradient_sums(grad + at, norm.input + at, s.inner, norm.mean[c], &g, &gx);
          of_g += g;
          of_gx += gx;
        });
        const GradientLine<T> line = finish(c, of_g, of_gx);
        if (!input_grad) continue;
        for_each_run(s, c, [&](int64_t at) {
          l.gradient(grad + at, norm.input + at, input_grad + at, s.inner, norm.mean[c], line.a,
                     line.b, line.c);
        });
      }
    });
    return;
  }
  std::vector<T> parts(size_t(2 * piece_count(s))), whole(size_t(2 * s.channels));
  std::vector<int64_t> channel(parts.size() / 2);
  for_each_piece(s, [&](int64_t c, int64_t at, int64_t n, int64_t i) {
    l.gradient_sums(grad + at, norm.input + at, n, norm.mean[c], &parts[size_t(2 * i)],
                    &parts[size_t(2 * i + 1)]);
    channel[size_t(i)] = c;
  });
  for (size_t i = 0; i < channel.size(); ++i) {
    whole[size_t(2 * channel[i])] += parts[2 * i];
    whole[size_t(2 * channel[i] + 1)] += parts[2 * i + 1];
  }
  std::vector<GradientLine<T>> lines;
  for (int64_t c = 0; c < s.channels; ++c)
    lines.push_back(finish(c, whole[size_t(2 * c)], whole[size_t(2 * c + 1)]));
  if (!input_grad) return;
  for_each_piece(s, [&](int64_t c, int64_t at, int64_t n, int64_t) {
    const GradientLine<T>& line = lines[size_t(c)];
    l.gradient(grad + at, norm.input + at, input_grad + at, n, norm.mean[c], line.a, line.b,
               line.c);
  });
}

// ---- channels as columns

template <class T, class S>
void batch_norm_columns(const ChannelNorm<T, S>& norm, const T* bias, double eps, T* variance,
                        S* output) {
  const int64_t rows = norm.shape.count(), n = norm.shape.channels, parts = parts_of(rows, n);
  const auto& l = loops<S>();
  std::vector<T> store(size_t(parts * 2 * n));
  for_each_part(parts, rows, [&](int64_t p, int64_t b, int64_t e) {
    T* own = store.data() + p * 2 * n;
    l.column_moments(norm.input + b * n, e - b, n, 0, own, own + n);
  });
  std::vector<T> scale(size_t(n), T(1)), shift(size_t(n), T(0));
  for (int64_t c = 0; c < n; ++c) {
    Moments<T> m{0, 0, 0};
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t count = rows * (p + 1) / parts - rows * p / parts;
      const T* own = store.data() + p * 2 * n;
      m = combined(m, {T(count), own[c], own[n + c]});
    }
    const Line<T> line = line_of(norm, bias, eps, variance, c, m);
    scale[size_t(c)] = line.scale;
    shift[size_t(c)] = line.shift;
  }
  parallel_for(0, rows, rows_at_once(n), [&](int64_t b, int64_t e) {
    l.scale_columns(norm.input + b * n, output + b * n, e - b, n, norm.mean, scale.data(),
                    shift.data());
  });
}

template <class T, class S>
void batch_norm_backward_columns(const ChannelNorm<T, S>& norm, const S* grad, S* input_grad,
                                 T* weight_grad, T* bias_grad) {
  const int64_t rows = norm.shape.count(), n = norm.shape.channels, parts = parts_of(rows, n);
  const auto& l = loops<S>();
  std::vector<T> sums(size_t(parts * 2 * n)), lines(size_t(3 * n));
  for_each_part(parts, rows, [&](int64_t p, int64_t b, int64_t e) {
    T* own = sums.data() + p * 2 * n;
    l.column_gradient_sums(grad + b * n, norm.input + b * n, e - b, n, norm.mean, own, own + n);
  });
  for (int64_t c = 0; c < n; ++c) {
    T of_g = 0, of_gx = 0;
    for (int64_t p = 0; p < parts; ++p) {
      of_g += sums[size_t(p * 2 * n + c)];
      of_gx += sums[size_t(p * 2 * n + n + c)];
    }
    if (weight_grad) weight_grad[c] = of_gx * norm.rstd[c];
    if (bias_grad) bias_grad[c] = of_g;
    const GradientLine<T> line(norm.rstd[c], norm.weight ? norm.weight[c] : T(1), of_g, of_gx,
                               rows);
    lines[size_t(c)] = line.a;
    lines[size_t(n + c)] = line.b;
    lines[size_t(2 * n + c)] = line.c;
  }
  if (!input_grad) return;
  parallel_for(0, rows, rows_at_once(n), [&](int64_t b, int64_t e) {
    l.column_gradient(grad + b * n, norm.input + b * n, input_grad + b * n, e - b, n, norm.mean,
                      lines.data(), lines.data() + n, lines.data() + 2 * n);
  });
}

}  // namespace

template <class T, class S>
void cpu_batch_norm(const ChannelNorm<T, S>& norm, const T* bias, double eps, T* variance,
                    S* output) {
  if (norm.shape.channels_last) batch_norm_columns(norm, bias, eps, variance, output);
  else batch_norm_runs(norm, bias, eps, variance, output);
}
template <class T, class S>
void cpu_batch_norm_backward(const ChannelNorm<T, S>& norm, const S* grad, S* input_grad,
                             T* weight_grad, T* bias_grad) {
  if (norm.shape.channels_last)
    batch_norm_backward_columns(norm, grad, input_grad, weight_grad, bias_grad);
  else batch_norm_backward_runs(norm, grad, input_grad, weight_grad, bias_grad);
}

template <class T, class S>
void cpu_scale_channels(const ChannelShape& s, const S* input, const T* scale, const T* shift,
                        S* output) {
  const auto& l = loops<S>();
  if (!s.channels_last) {
    for_each_piece(s, [&](int64_t c, int64_t at, int64_t n, int64_t) {
      l.scale(input + at, output + at, n, T(0), scale[c], shift ? shift[c] : T(0));
    });
    return;
  }
  const int64_t n = s.channels;
  const std::vector<T> zeros(size_t(n), T(0));
  parallel_for(0, s.count(), rows_at_once(n), [&](int64_t b, int64_t e) {
    l.scale_columns(input + b * n, output + b * n, e - b, n, zeros.data(), scale,
                    shift ? shift : zeros.data());
  });
}

// ---- groups

namespace {

// Channels last: moments of the channels of each sample, by parts of its rows, make those of
// groups.
template <class T, class S>
void group_norm_columns(const ChannelNorm<T, S>& norm, int64_t groups, const T* bias, double eps,
                        S* output) {
  const ChannelShape& s = norm.shape;
  const int64_t n = s.channels, width = n / groups, parts = parts_of(s.inner, n);
  const auto& l = loops<S>();
  std::vector<T> store(size_t(s.batch * parts * 2 * n)), lines(size_t(s.batch * 3 * n));
  auto first_row = [&](int64_t part) { return s.inner * part / parts; };
  parallel_for(0, s.batch * parts, rows_at_once(s.inner * n / parts), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const int64_t first = first_row(k % parts), rows = first_row(k % parts + 1) - first;
      T* own = store.data() + k * 2 * n;
      l.column_moments(norm.input + (k / parts * s.inner + first) * n, rows, n, 0, own, own + n);
    }
  });
  for (int64_t i = 0; i < s.batch * groups; ++i) {
    const int64_t sample = i / groups, from = i % groups * width;
    Moments<T> m{0, 0, 0};
    for (int64_t p = 0; p < parts; ++p) {
      const T* own = store.data() + (sample * parts + p) * 2 * n;
      for (int64_t c = from; c < from + width; ++c)
        m = combined(m, {T(first_row(p + 1) - first_row(p)), own[c], own[n + c]});
    }
    norm.mean[i] = m.mean;
    norm.rstd[i] = rstd_of(m.squares / m.count, eps);
    T* line = lines.data() + sample * 3 * n;
    for (int64_t c = from; c < from + width; ++c) {
      line[c] = m.mean;
      line[n + c] = norm.weight ? norm.rstd[i] * norm.weight[c] : norm.rstd[i];
      line[2 * n + c] = bias ? bias[c] : T(0);
    }
  }
  parallel_for(0, s.count(), rows_at_once(n), [&](int64_t b, int64_t e) {
    while (b < e) {
      const int64_t sample = b / s.inner, rows = std::min(e, (sample + 1) * s.inner) - b;
      const T* line = lines.data() + sample * 3 * n;
      l.scale_columns(norm.input + b * n, output + b * n, rows, n, line, line + n, line + 2 * n);
      b += rows;
    }
  });
}

}  // namespace

template <class T, class S>
void cpu_group_norm(const ChannelNorm<T, S>& norm, int64_t groups, const T* bias, double eps,
                    S* output) {
  const ChannelShape& s = norm.shape;
  if (s.channels_last) return group_norm_columns(norm, groups, bias, eps, output);
  const int64_t width = s.channels / groups, size = width * s.inner;
  const auto& l = loops<S>();
  parallel_for(0, s.batch * groups, rows_at_once(size), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const S* x = norm.input + i * size;
      S* y = output + i * size;
      const Moments<T> m = l.moments(x, size);
      norm.mean[i] = m.mean;
      norm.rstd[i] = rstd_of(m.squares / m.count, eps);
      for (int64_t k = 0; k < width; ++k) {
        const int64_t c = i % groups * width + k;
        l.scale(x + k * s.inner, y + k * s.inner, s.inner, m.mean,
                norm.weight ? norm.rstd[i] * norm.weight[c] : norm.rstd[i], bias ? bias[c] : T(0));
      }
    }
  });
}

template <class T, class S>
void cpu_group_norm_backward(const ChannelNorm<T, S>& norm, int64_t groups, const S* grad,
                             S* input_grad, T* weight_grad, T* bias_grad) {
  const ChannelShape& s = norm.shape;
  const int64_t width = s.channels / groups, size = width * s.inner;
  const auto& l = loops<S>();
  // For each element of the batch and channel, the sums of g and of g (x - mean).
  std::vector<T> sums(size_t(2 * s.batch * s.channels));
  parallel_for(0, s.batch * groups, rows_at_once(size), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t at = i * size, first = i % groups * width;
      T* own = sums.data() + 2 * i * width;
      T of_g = 0, of_gx = 0;  // of the whole group, with the weights
      for (int64_t k = 0; k < width; ++k) {
        l.gradient_sums(grad + at + k * s.inner, norm.input + at + k * s.inner, s.inner,
                        norm.mean[i], own + 2 * k, own + 2 * k + 1);
        const T w = norm.weight ? norm.weight[first + k] : T(1);
        of_g += w * own[2 * k];
        of_gx += w * own[2 * k + 1];
      }
      if (!input_grad) continue;
      const GradientLine<T> line(norm.rstd[i], T(1), of_g, of_gx, size);
      for (int64_t k = 0; k < width; ++k)
        l.gradient(grad + at + k * s.inner, norm.input + at + k * s.inner,
                   input_grad + at + k * s.inner, s.inner, norm.mean[i],
                   norm.weight ? line.a * norm.weight[first + k] : line.a, line.b, line.c);
    }
  });
  for (int64_t c = 0; c < s.channels; ++c) {
    T of_g = 0, of_gx = 0;
    for (int64_t n = 0; n < s.batch; ++n) {
      const T* own = sums.data() + 2 * (n * s.channels + c);
      of_g += own[0];
      of_gx += own[1] * norm.rstd[n * groups + c / width];
    }
    if (weight_grad) weight_grad[c] = of_gx;
    if (bias_grad) bias_grad[c] = of_g;
  }
}

#define FACULA_NORM_FOR(T, S)                                                              \
  template void cpu_normalize_rows(const RowNorm<T, S>&, const T*, double, S*);            \
  template void cpu_normalize_rows_backward(const RowNorm<T, S>&, const S*, S*, T*, T*);   \
  template void cpu_batch_norm(const ChannelNorm<T, S>&, const T*, double, T*, S*);        \
  template void cpu_batch_norm_backward(const ChannelNorm<T, S>&, const S*, S*, T*, T*);   \
  template void cpu_scale_channels(const ChannelShape&, const S*, const T*, const T*, S*); \
  template void cpu_group_norm(const ChannelNorm<T, S>&, int64_t, const T*, double, S*);   \
  template void cpu_group_norm_backward(const ChannelNorm<T, S>&, int64_t, const S*, S*, T*, T*);
FACULA_NORM_FOR(float, float)
FACULA_NORM_FOR(double, double)
FACULA_NORM_FOR(float, Half)
FACULA_NORM_FOR(float, BFloat16)
#undef FACULA_NORM_FOR

}  // namespace facula

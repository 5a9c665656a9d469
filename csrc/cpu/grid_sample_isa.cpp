// What a block of points sees of an input, and sums over it; built once per ISA. Coordinates are
// worked on axis by axis, for all points of the block at once.
#include "cpu/grid_corners.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

// Up to four neighbours along one axis.
template <class T>
struct Lines {
  int taps = 1;
  int32_t at[4][kGridBlock];  // -1: outside, where there are zeros
  T weight[4][kGridBlock];
  T slope[4][kGridBlock];  // of the weights, by the coordinate in [-1, 1]
  T bend[4][kGridBlock];   // of the slopes
};

template <class T, GridPadding kPadding>
class Axis {
 public:
  Axis(const GridSample& g, int64_t size)
      : align_(g.align_corners),
        size_(T(size)),
        scale_(align_ ? T(size - 1) / 2 : T(size) / 2),
        low_(align_ ? T(0) : T(-0.5)),
        span_(align_ ? T(size - 1) : T(size)),
        period_(span_ > 0 ? span_ : T(1)),
        shift_(align_ ? T(0) : T(-1)) {}

  T scale() const { return scale_; }
  FACULA_INLINE T pixels(T x) const { return ((x + 1) * span_ + shift_) / 2; }
  FACULA_INLINE int32_t valid(T at) const {
    const int32_t i = int32_t(at);
    return (at >= 0) & (at < size_) ? i : -1;
  }

  // Where the padding brings a coordinate; `slope` is multiplied by the derivative of that.
  FACULA_INLINE T placed(T at, T& slope) const {
    if constexpr (kPadding == GridPadding::Reflection) {
      // Mirrored at both ends as often as needed, without a bool that joins two comparisons, which
      // compilers do not vectorise. A single pixel is what the limits below leave.
      const T from = math::abs(at - low_), flips = math::floor(from / period_);
      const T extra = from - flips * period_, odd = flips - 2 * math::floor(flips / 2);
      slope *= (at < low_ ? T(-1) : T(1)) * (1 - 2 * odd);
      at = (odd == 0 ? extra : period_ - extra) + low_;
    }
    if constexpr (kPadding != GridPadding::Zeros) {
      const T last = size_ - 1;
      slope = (at > 0) & (at < last) ? slope : T(0);
      at = at > 0 ? at : T(0);
      at = at < last ? at : last;
    }
    // Far away, or nowhere: outside in any case, and an integer can hold it.
    return (at > T(-1e9)) & (at < T(1e9)) ? at : T(-100);
  }

  void linear(const T* x, Lines<T>& l) const {
    l.taps = 2;
    T lower[kGridBlock];
    for (int p = 0; p < kGridBlock; ++p) {
      T slope = scale_;
      const T at = placed(pixels(x[p]), slope), left = math::floor(at), part = at - left;
      lower[p] = left;
      l.weight[0][p] = 1 - part, l.weight[1][p] = part;
      l.slope[0][p] = -slope, l.slope[1][p] = slope;
      l.bend[0][p] = l.bend[1][p] = 0;
    }
    // Apart from the rest, whose conditions the compiler would mix with these.
    for (int p = 0; p < kGridBlock; ++p) l.at[0][p] = valid(lower[p]);
    for (int p = 0; p < kGridBlock; ++p) l.at[1][p] = valid(lower[p] + 1);
  }

  void nearest(const T* x, Lines<T>& l) const {
    l.taps = 1;
    for (int p = 0; p < kGridBlock; ++p) {
      T slope = 0;
      l.at[0][p] = valid(math::round(placed(pixels(x[p]), slope)));
      l.weight[0][p] = 1, l.slope[0][p] = 0, l.bend[0][p] = 0;
    }
  }

  // Keys' kernel. Each of the four neighbours goes where the padding brings it.
  void cubic(const T* x, bool derivatives, Lines<T>& l) const {
    l.taps = 4;
    const T a = T(-0.75);
    T left[kGridBlock], part[kGridBlock], at[kGridBlock];
    for (int p = 0; p < kGridBlock; ++p) {
      const T seen = pixels(x[p]), near = (seen > T(-1e9)) & (seen < T(1e9)) ? seen : T(-100);
      left[p] = math::floor(near);
      part[p] = near - left[p];
    }
    // Loops apart, as above.
    for (int k = 0; k < 4; ++k) {
      for (int p = 0; p < kGridBlock; ++p) {
        T none = 0;
        at[p] = placed(left[p] + T(k - 1), none);
      }
      for (int p = 0; p < kGridBlock; ++p) l.at[k][p] = valid(at[p]);
      // The distance, as sign * part + shift, and the branch of the kernel that it falls in.
      const T sign = k < 2 ? T(1) : T(-1), shift = k == 0 ? T(1) : k == 1 ? T(0) : T(k - 1);
      const T slope = sign * scale_, bend = scale_ * scale_;
      const bool outer = k == 0 || k == 3;
      for (int p = 0; p < kGridBlock; ++p) {
        const T u = sign * part[p] + shift;
        l.weight[k][p] =
            outer ? ((a * u - 5 * a) * u + 8 * a) * u - 4 * a : ((a + 2) * u - (a + 3)) * u * u + 1;
      }
      for (int p = 0; derivatives && p < kGridBlock; ++p) {
        const T u = sign * part[p] + shift;
        l.slope[k][p] = slope * (outer ? (3 * a * u - 10 * a) * u + 8 * a
                                       : (3 * (a + 2) * u - 2 * (a + 3)) * u);
        l.bend[k][p] = bend * (outer ? 6 * a * u - 10 * a : 6 * (a + 2) * u - 2 * (a + 3));
      }
    }
  }

 private:
  bool align_;
  T size_, scale_;         // scale: pixels by the coordinate
  T low_, span_, period_;  // of the mirrors
  T shift_;                // of the first pixel's centre
};

template <class T, GridPadding kPadding>
void fill_lines(const GridSample& g, int64_t size, const T* x, bool derivatives, Lines<T>& l) {
  const Axis<T, kPadding> axis(g, size);
  switch (g.mode) {
    case GridMode::Linear: return axis.linear(x, l);
    case GridMode::Nearest: return axis.nearest(x, l);
    case GridMode::Cubic: return axis.cubic(x, derivatives, l);
  }
}

// Coordinates of points, axis by axis. Points that are missing from the last block see what the
// first one sees.
template <int kDims, class T>
FACULA_INLINE void split_axes(const T* points, int64_t n, T (*axes)[kGridBlock]) {
  for (int64_t p = 0; p < n; ++p)
    for (int d = 0; d < kDims; ++d) axes[d][p] = points[p * kDims + d];
  for (int64_t p = n; p < kGridBlock; ++p)
    for (int d = 0; d < kDims; ++d) axes[d][p] = points[d];
}
template <class T>
void split_axes(int dims, const T* points, int64_t n, T (*axes)[kGridBlock]) {
  if (dims == 2) split_axes<2>(points, n, axes);
  else split_axes<3>(points, n, axes);
}

// The product of the three weights, differentiated by the given coordinates.
template <class T>
FACULA_INLINE T product(const Lines<T>* lines, const int* tap, int p, int first, int second) {
  T value = 1;
  for (int d = 0; d < 3; ++d) {
    const int order = (d == first) + (d == second);
    const auto& l = lines[d];
    value *= order == 0 ? l.weight[tap[d]][p] : order == 1 ? l.slope[tap[d]][p] : l.bend[tap[d]][p];
  }
  return value;
}

// The same for all points of a block, differentiated by one coordinate or none (-1).
template <class T>
void plain_products(const Lines<T>* lines, int dims, const int* tap, int by, T* to) {
  const T* factor[3] = {};
  for (int d = 0; d < dims; ++d) factor[d] = (d == by ? lines[d].slope : lines[d].weight)[tap[d]];
  const T *x = factor[0], *y = factor[1], *z = factor[2];
#pragma GCC ivdep
  for (int p = 0; p < kGridBlock; ++p) to[p] = x[p] * y[p];
#pragma GCC ivdep
  for (int p = 0; z && p < kGridBlock; ++p) to[p] *= z[p];
}

template <class T>
void find_edges(GridBlock<T>& b) {
  int32_t outside[kGridBlock] = {}, any = 0;
  for (int k = 0; k < b.taps; ++k)
    for (int p = 0; p < kGridBlock; ++p) outside[p] |= b.pixel[k][p];
  for (int p = 0; p < kGridBlock; ++p) any |= outside[p];
  b.edges = 0;
  for (int p = 0; any < 0 && p < kGridBlock; ++p)
    if (outside[p] < 0) b.edge[b.edges++] = uint8_t(p);
}

// Cubic interpolation: points whose pixels are not a square in the image count as edges. Padding
// moves neighbours by one pixel or by none, so the first and the last one tell.
template <class T>
void find_squares(const GridSample& g, const Lines<T>* lines, GridBlock<T>& b) {
  const bool large = g.size[1] >= 4 && g.size[2] >= 4;
  const int32_t width = int32_t(g.size[2]);
  const int32_t *left = lines[0].at[0], *right = lines[0].at[3];
  const int32_t *top = lines[1].at[0], *bottom = lines[1].at[3];
  for (int p = 0; p < kGridBlock; ++p) {
    const int32_t off = (right[p] - left[p] - 3) | (bottom[p] - top[p] - 3);
    const int32_t edge = (left[p] | right[p] | top[p] | bottom[p] | off) >> 31;
    b.corner[p] = (top[p] * width + left[p]) | edge;
  }
  b.row = large ? g.size[2] : 0;
  b.edges = 0;
  for (int p = 0; p < kGridBlock; ++p) {
    b.edge[b.edges] = uint8_t(p);
    b.edges += !large || b.corner[p] < 0;
    b.corner[p] = b.corner[p] < 0 ? 0 : b.corner[p];
  }
}

// Linear interpolation in images: all points of the block at once.
template <GridPadding kPadding, class T>
void look_up_corners(const GridSample& g, const T* grid, int64_t n, bool slopes, GridBlock<T>& b) {
  T axes[2][kGridBlock];
  split_axes<2>(grid, n, axes);
  T *xs = axes[0], *ys = axes[1];
  // Neighbours along both axes, -1 outside; loops apart and signs as masks, so that all of them are
  // vectorised.
  int32_t x0[kGridBlock], x1[kGridBlock], y0[kGridBlock], y1[kGridBlock];
  T slope[2][kGridBlock];  // pixels by the coordinate
  auto neighbours = [](const Axis<T, kPadding>& axis, T* at, int32_t* first, int32_t* second,
                       T* change) {
    T left[kGridBlock];
    for (int p = 0; p < kGridBlock; ++p) {
      T by = axis.scale();
      const T x = axis.placed(axis.pixels(at[p]), by);
      change[p] = by;
      left[p] = math::floor(x);
      at[p] = x - left[p];
    }
    for (int p = 0; p < kGridBlock; ++p) first[p] = axis.valid(left[p]);
    for (int p = 0; p < kGridBlock; ++p) second[p] = axis.valid(left[p] + 1);
  };
  neighbours(Axis<T, kPadding>(g, g.size[2]), xs, x0, x1, slope[0]);
  neighbours(Axis<T, kPadding>(g, g.size[1]), ys, y0, y1, slope[1]);
  const int32_t width = int32_t(g.size[2]);
  for (int p = 0; p < kGridBlock; ++p) {
    const int32_t top = y0[p] * width, bottom = y1[p] * width;
    b.pixel[0][p] = (top + x0[p]) | ((x0[p] | y0[p]) >> 31);
    b.pixel[1][p] = (top + x1[p]) | ((x1[p] | y0[p]) >> 31);
    b.pixel[2][p] = (bottom + x0[p]) | ((x0[p] | y1[p]) >> 31);
    b.pixel[3][p] = (bottom + x1[p]) | ((x1[p] | y1[p]) >> 31);
    b.corner[p] = (top + x0[p]) & ~((x0[p] | x1[p] | y0[p] | y1[p]) >> 31);
  }
  for (int p = 0; p < kGridBlock; ++p) {
    const T u = xs[p], v = ys[p];
    b.weight[0][p] = (1 - u) * (1 - v), b.weight[1][p] = u * (1 - v);
    b.weight[2][p] = (1 - u) * v, b.weight[3][p] = u * v;
  }
  for (int p = 0; slopes && p < kGridBlock; ++p) {
    const T right = xs[p] * slope[1][p], left = slope[1][p] - right;
    const T lower = ys[p] * slope[0][p], upper = slope[0][p] - lower;
    b.slope[0][0][p] = -upper, b.slope[0][1][p] = upper;
    b.slope[0][2][p] = -lower, b.slope[0][3][p] = lower;
    b.slope[1][0][p] = -left, b.slope[1][1][p] = -right;
    b.slope[1][2][p] = left, b.slope[1][3][p] = right;
  }
  b.taps = 4;
  b.row = g.size[1] > 1 && g.size[2] > 1 ? g.size[2] : 0;
  find_edges(b);
}

// One neighbour in images, whose weight is 1 everywhere: only where it is.
template <GridPadding kPadding, class T>
void look_up_nearest(const GridSample& g, const T* grid, int64_t n, GridBlock<T>& b) {
  T axes[2][kGridBlock];
  split_axes<2>(grid, n, axes);
  int32_t seen[2][kGridBlock];
  for (int d = 0; d < 2; ++d) {
    const Axis<T, kPadding> axis(g, g.size[2 - d]);
    for (int p = 0; p < kGridBlock; ++p) {
      T none = 0;
      axes[d][p] = math::round(axis.placed(axis.pixels(axes[d][p]), none));
    }
    for (int p = 0; p < kGridBlock; ++p) seen[d][p] = axis.valid(axes[d][p]);
  }
  const int32_t width = int32_t(g.size[2]);
  for (int p = 0; p < kGridBlock; ++p) {
    const int32_t x = seen[0][p], y = seen[1][p];
    b.pixel[0][p] = (y * width + x) | ((x | y) >> 31);
  }
  b.taps = 1;
  find_edges(b);
}

template <GridPadding kPadding, class T>
void look_up_in_image(const GridSample& g, const T* grid, int64_t n, bool slopes, GridBlock<T>& b) {
  if (g.mode == GridMode::Linear) look_up_corners<kPadding>(g, grid, n, slopes, b);
  else look_up_nearest<kPadding>(g, grid, n, b);
}

template <class T>
void look_up(const GridSample& g, const T* grid, const T* direction, int64_t n, bool slopes,
             GridBlock<T>& b) {
  if (g.dims == 2 && g.mode != GridMode::Cubic && !direction) {
    switch (g.padding) {
      case GridPadding::Zeros: return look_up_in_image<GridPadding::Zeros>(g, grid, n, slopes, b);
      case GridPadding::Border: return look_up_in_image<GridPadding::Border>(g, grid, n, slopes, b);
      default: return look_up_in_image<GridPadding::Reflection>(g, grid, n, slopes, b);
    }
  }
  T points[3][kGridBlock], along[3][kGridBlock];
  split_axes(g.dims, grid, n, points);
  if (direction) split_axes(g.dims, direction, n, along);
  Lines<T> lines[3];  // x, y, z
  const bool derivatives = slopes || direction;
  for (int d = 0; d < g.dims; ++d) {
    const int64_t size = g.size[2 - d];
    if (g.padding == GridPadding::Zeros)
      fill_lines<T, GridPadding::Zeros>(g, size, points[d], derivatives, lines[d]);
    else if (g.padding == GridPadding::Border)
      fill_lines<T, GridPadding::Border>(g, size, points[d], derivatives, lines[d]);
    else fill_lines<T, GridPadding::Reflection>(g, size, points[d], derivatives, lines[d]);
  }
  if (g.dims == 2)
    for (int p = 0; p < kGridBlock; ++p)
      lines[2].at[0][p] = 0, lines[2].weight[0][p] = 1, lines[2].slope[0][p] = 0;
  int count = 0;
  for (int k = 0; k < lines[2].taps; ++k)
    for (int j = 0; j < lines[1].taps; ++j) {
      const int32_t *y = lines[1].at[j], *z = lines[2].at[k];
      const int32_t height = int32_t(g.size[1]), width = int32_t(g.size[2]);
      int32_t line[kGridBlock], outside[kGridBlock];
      for (int p = 0; p < kGridBlock; ++p) {
        line[p] = (z[p] * height + y[p]) * width;
        outside[p] = (y[p] | z[p]) >> 31;
      }
      for (int i = 0; i < lines[0].taps; ++i, ++count) {
        const int32_t* x = lines[0].at[i];
        for (int p = 0; p < kGridBlock; ++p)
          b.pixel[count][p] = (line[p] + x[p]) | (x[p] >> 31) | outside[p];
        const int tap[3] = {i, j, k};
        if (!direction) {
          plain_products(lines, g.dims, tap, -1, b.weight[count]);
          for (int e = 0; slopes && e < g.dims; ++e)
            plain_products(lines, g.dims, tap, e, b.slope[e][count]);
          continue;
        }
        for (int p = 0; p < kGridBlock; ++p) {
          T value = 0;
          for (int d = 0; d < g.dims; ++d) value += along[d][p] * product(lines, tap, p, d, -1);
          b.weight[count][p] = value;
        }
        for (int e = 0; slopes && e < g.dims; ++e)
          for (int p = 0; p < kGridBlock; ++p) {
            T value = 0;
            for (int d = 0; d < g.dims; ++d) value += along[d][p] * product(lines, tap, p, d, e);
            b.slope[e][count][p] = value;
          }
      }
    }
  b.taps = count;
  b.row = 0;
  if (count == 16) return find_squares(g, lines, b);
  find_edges(b);
  if (count == 1)
    for (int p = 0; p < kGridBlock; ++p) b.corner[p] = b.pixel[0][p] & ~(b.pixel[0][p] >> 31);
}

// The sums of points that see 4 x 4 pixels, where b.row is set: as if all were inside, then the
// points at the edges anew. Loads apart from the arithmetic, which is done in vectors.
template <class T>
void sum_squares(const GridBlock<T>& b, const T* x, T* sums) {
  T line[kGridBlock][4];
  for (int j = 0; j < 4; ++j, x += b.row) {
    for (int64_t p = 0; p < kGridBlock; ++p) {
      asm("" : "+r"(p));
      __builtin_memcpy(line[p], x + b.corner[p], 4 * sizeof(T));
    }
    const T(*weight)[kGridBlock] = b.weight + 4 * j;
    for (int p = 0; p < kGridBlock; ++p) {
      const T sum = (j ? sums[p] : T(0)) + weight[0][p] * line[p][0];
      sums[p] =
          sum + weight[1][p] * line[p][1] + weight[2][p] * line[p][2] + weight[3][p] * line[p][3];
    }
  }
}

// As if all were inside, reading element 0 for what is not; then the points at the edges anew.
template <int kTaps, class T>
void sum_taps(const GridBlock<T>& b, const T* x, T* sums) {
  // No vectors over points, which the empty instruction prevents: gathers are slower than loads.
  if (kTaps == 1) {
    for (int64_t p = 0; p < kGridBlock; p += 4) {
      asm("" : "+r"(p));
#pragma GCC unroll 4
      for (int64_t k = 0; k < 4; ++k) sums[p + k] = x[b.corner[p + k]];
    }
    for (int p = 0; p < kGridBlock; ++p) sums[p] *= b.weight[0][p];
  } else if (kTaps == 4 && b.row) {
    return sum_corners<1>(b, x, &b.weight, reinterpret_cast<T(*)[kGridBlock]>(sums));
  } else if (kTaps == 16 && b.row) {
    sum_squares(b, x, sums);
  } else {
    for (int p = 0; p < kGridBlock; ++p) {
      asm("" : "+r"(p));
      T sum = 0;
#pragma GCC unroll 16
      for (int k = 0; k < kTaps; ++k) {
        const int32_t at = b.pixel[k][p];
        sum += b.weight[k][p] * x[at < 0 ? 0 : at];
      }
      sums[p] = sum;
    }
  }
  for (int e = 0; e < b.edges; ++e) {
    const int p = b.edge[e];
    T sum = 0;
    for (int k = 0; k < kTaps; ++k) {
      const int32_t at = b.pixel[k][p];
      const T seen = b.weight[k][p] * x[at < 0 ? 0 : at];
      sum += at < 0 ? T(0) : seen;
    }
    sums[p] = sum;
  }
}

template <class T>
void sample(const GridBlock<T>& b, const T* x, int64_t n, T* y) {
  T sums[kGridBlock];
  switch (b.taps) {
    case 1: sum_taps<1>(b, x, sums); break;
    case 4: sum_taps<4>(b, x, sums); break;
    case 8: sum_taps<8>(b, x, sums); break;
    default: sum_taps<16>(b, x, sums); break;
  }
  for (int64_t p = 0; p < n; ++p) y[p] = sums[p];
}

template <class T>
void slopes(const GridBlock<T>& b, const T* x, const T* y, int64_t n, int dims,
            T (*sums)[kGridBlock]) {
  if (b.taps == 4 && b.row) {
    T slope[2][kGridBlock];
    sum_corners<2>(b, x, b.slope, slope);
    for (int d = 0; d < 2; ++d)
      for (int64_t p = 0; p < n; ++p) sums[d][p] += slope[d][p] * y[p];
    return;
  }
  for (int k = 0; k < b.taps; ++k) {
    const int32_t* pixel = b.pixel[k];
    T seen[kGridBlock] = {};
    for (int64_t p = 0; p < n; ++p) {
      asm("" : "+r"(p));
      const int32_t at = pixel[p];
      const T v = x[at < 0 ? 0 : at] * y[p];
      seen[p] = at < 0 ? T(0) : v;
    }
    for (int d = 0; d < dims; ++d)
      for (int p = 0; p < kGridBlock; ++p) sums[d][p] += b.slope[d][k][p] * seen[p];
  }
}

// ---- channels side by side

// The channels are a multiple of what 16 bytes hold.

// What one point sees: the pixels that are not outside.
template <class T>
struct Seen {
  int count = 0;
  const T* pixel[kMostGridTaps];
  int tap[kMostGridTaps];

  FACULA_INLINE Seen(const GridBlock<T>& b, int64_t p, const T* x, int64_t channels) {
    for (int k = 0; k < b.taps; ++k) {
      const int64_t at = b.pixel[k][p];
      pixel[count] = x + at * channels;
      tap[count] = k;
      count += at >= 0;
    }
  }
};

// Few channels: what is outside is read as zeros.
template <int kTaps, class T>
void sample_few(const GridBlock<T>& b, const T* x, int64_t n, int64_t channels, T* y) {
  constexpr int64_t F = 16 / sizeof(T);
  const T zeros[64 / sizeof(T)] = {};
  for (int64_t p = 0; p < n; ++p, y += channels) {
    const T* pixel[kTaps];
    for (int k = 0; k < kTaps; ++k) {
      const int64_t at = b.pixel[k][p];
      pixel[k] = at < 0 ? zeros : x + at * channels;
    }
    for (int64_t c = 0; c < channels; c += F) {
      typename FewOf<T>::type sum{};
#pragma GCC unroll 16
      for (int k = 0; k < kTaps; ++k) sum += few_at(pixel[k] + c) * b.weight[k][p];
      __builtin_memcpy(y + c, &sum, 16);
    }
  }
}

template <class T>
void sample_pixels(const GridBlock<T>& b, const T* x, int64_t n, int64_t channels, T* y) {
  if (channels <= int64_t(64 / sizeof(T)) && b.taps == 16)
    return sample_few<16>(b, x, n, channels, y);
  using V = typename WideOf<T>::type;
  constexpr int64_t L = kLanes<T>, F = 16 / sizeof(T);
  for (int64_t p = 0; p < n; ++p, y += channels) {
    const Seen<T> seen(b, p, x, channels);
    int64_t c = 0;
    for (; c + 2 * L <= channels; c += 2 * L) {
      V first{}, second{};
      for (int k = 0; k < seen.count; ++k) {
        const T w = b.weight[seen.tap[k]][p];
        first += wide_at(seen.pixel[k] + c) * w;
        second += wide_at(seen.pixel[k] + c + L) * w;
      }
      __builtin_memcpy(y + c, &first, sizeof first);
      __builtin_memcpy(y + c + L, &second, sizeof second);
    }
    for (; c < channels; c += F) {
      typename FewOf<T>::type sum{};
      for (int k = 0; k < seen.count; ++k)
        sum += few_at(seen.pixel[k] + c) * b.weight[seen.tap[k]][p];
      __builtin_memcpy(y + c, &sum, 16);
    }
  }
}

template <class T>
void add_pixels(const GridBlock<T>& b, const T* y, int64_t n, int64_t channels, int64_t count,
                T* x) {
  constexpr int64_t L = kLanes<T>, F = 16 / sizeof(T);
  for (int64_t p = 0; p < n; ++p, y += channels)
    for (int k = 0; k < b.taps; ++k) {
      const int64_t at = b.pixel[k][p];
      if (at < 0) continue;
      T* to = x + at * channels;
      const T w = b.weight[k][p];
      int64_t c = 0;
      for (; c + L <= count; c += L) {
        const auto sum = wide_at(to + c) + wide_at(y + c) * w;
        __builtin_memcpy(to + c, &sum, sizeof sum);
      }
      for (; c < count; c += F) {
        const auto sum = few_at(to + c) + few_at(y + c) * w;
        __builtin_memcpy(to + c, &sum, 16);
      }
    }
}

template <int kDims, class T>
void slopes_of_pixels(const GridBlock<T>& b, const T* x, const T* y, int64_t n, int64_t channels,
                      T* slopes) {
  using V = typename WideOf<T>::type;
  using Few = typename FewOf<T>::type;
  constexpr int64_t L = kLanes<T>, F = 16 / sizeof(T);
  for (int64_t p = 0; p < n; ++p, y += channels, slopes += kDims) {
    const Seen<T> seen(b, p, x, channels);
    V sums[kDims] = {};
    Few rest[kDims] = {};
    int64_t c = 0;
    for (; c + L <= channels; c += L) {
      V line[kDims] = {};
      for (int k = 0; k < seen.count; ++k) {
        const V v = wide_at(seen.pixel[k] + c);
        for (int d = 0; d < kDims; ++d) line[d] += v * b.slope[d][seen.tap[k]][p];
      }
      for (int d = 0; d < kDims; ++d) sums[d] += line[d] * wide_at(y + c);
    }
    for (; c < channels; c += F) {
      Few line[kDims] = {};
      for (int k = 0; k < seen.count; ++k) {
        const Few v = few_at(seen.pixel[k] + c);
        for (int d = 0; d < kDims; ++d) line[d] += v * b.slope[d][seen.tap[k]][p];
      }
      for (int d = 0; d < kDims; ++d) rest[d] += line[d] * few_at(y + c);
    }
    for (int d = 0; d < kDims; ++d) {
      T sum = 0, lane[L];
      if (channels >= L) {
        __builtin_memcpy(lane, &sums[d], sizeof lane);
        for (int64_t width = L / 2; width > 0; width /= 2)
          for (int64_t j = 0; j < width; ++j) lane[j] += lane[j + width];
        sum = lane[0];
      }
      for (int64_t j = 0; j < F; ++j) sum += rest[d][j];
      slopes[d] = sum;
    }
  }
}
template <class T>
void slope_pixels(const GridBlock<T>& b, const T* x, const T* y, int64_t n, int64_t channels,
                  int dims, T* slopes) {
  if (dims == 2) slopes_of_pixels<2>(b, x, y, n, channels, slopes);
  else slopes_of_pixels<3>(b, x, y, n, channels, slopes);
}

}  // namespace

extern const GridLoops<float> grid_loops_f32;
extern const GridLoops<double> grid_loops_f64;
const GridLoops<float> grid_loops_f32 = {look_up<float>,    sample<float>,
                                         slopes<float>,     sample_pixels<float>,
                                         add_pixels<float>, slope_pixels<float>};
const GridLoops<double> grid_loops_f64 = {look_up<double>,    sample<double>,
                                          slopes<double>,     sample_pixels<double>,
                                          add_pixels<double>, slope_pixels<double>};

}  // namespace facula::FACULA_ISA

// Points are taken in blocks: where each sees the input is found once, then every channel is read
// at those places.
#include "cpu/grid_sample.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "cpu/iterate.h"

namespace facula {

namespace {

constexpr int kBlock = 64;     // points
constexpr int kMostTaps = 16;  // 4 x 4 of cubic interpolation; volumes have 8

// Up to four neighbours along one axis.
template <class T>
struct Line {
  int taps;
  int64_t at[4];  // -1: outside, where there are zeros
  T weight[4];
  T slope[4];  // of the weights, by the coordinate in [-1, 1]
  T bend[4];   // of the slopes
};

// Mirrors x at low / 2 and high / 2 as often as needed; `sign` becomes the derivative.
template <class T>
T reflected(T x, int64_t twice_low, int64_t twice_high, T& sign) {
  if (twice_low == twice_high) {
    sign = 0;
    return 0;
  }
  const T low = T(twice_low) / 2, span = T(twice_high - twice_low) / 2;
  const T from = std::abs(x - low);
  sign = x < low ? T(-1) : T(1);
  const T extra = std::fmod(from, span), flips = std::floor(from / span);
  if (std::fmod(flips, T(2)) == 0) return extra + low;
  sign = -sign;
  return span - extra + low;
}

template <class T>
class Axis {
 public:
  Axis(const GridSample& g, int64_t size)
      : mode_(g.mode),
        padding_(g.padding),
        align_(g.align_corners),
        size_(size),
        scale_(align_ ? T(size - 1) / 2 : T(size) / 2) {}

  Line<T> line(T x) const {
    T at = align_ ? (x + 1) / 2 * T(size_ - 1) : ((x + 1) * T(size_) - 1) / 2;
    Line<T> l{};
    if (mode_ == GridMode::Cubic) return cubic(at);
    T slope = scale_;
    at = inside(at, slope);
    if (mode_ == GridMode::Nearest) {
      l.taps = 1;
      l.at[0] = valid(std::nearbyint(at));
      l.weight[0] = 1;
      return l;
    }
    const T left = std::floor(at), part = at - left;
    l.taps = 2;
    l.at[0] = valid(left), l.at[1] = valid(left + 1);
    l.weight[0] = 1 - part, l.weight[1] = part;
    l.slope[0] = -slope, l.slope[1] = slope;
    return l;
  }

 private:
  int64_t valid(T at) const { return at >= 0 && at < T(size_) ? int64_t(at) : -1; }

  // Where the padding brings a coordinate; `slope` is multiplied by the derivative of that.
  T inside(T at, T& slope) const {
    if (padding_ == GridPadding::Reflection) {
      T sign = 1;
      at =
          align_ ? reflected(at, 0, 2 * (size_ - 1), sign) : reflected(at, -1, 2 * size_ - 1, sign);
      slope *= sign;
    }
    if (padding_ != GridPadding::Zeros) {
      if (!(at > 0)) at = 0, slope = 0;
      else if (at >= T(size_ - 1)) at = T(size_ - 1), slope = 0;
    }
    // Far away, or nowhere: outside in any case, and an integer can hold it.
    return at > T(-1e9) && at < T(1e9) ? at : T(-100);
  }

  // Each of the four neighbours goes where the padding brings it.
  Line<T> cubic(T at) const {
    if (!(at > T(-1e9) && at < T(1e9))) at = T(-100);
    const T left = std::floor(at), t = at - left, a = T(-0.75);
    Line<T> l{};
    l.taps = 4;
    for (int k = 0; k < 4; ++k) {
      T none = 1;
      l.at[k] = valid(inside(left + T(k - 1), none));
    }
    auto far = [&](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    auto near = [&](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    auto far_slope = [&](T x) { return (3 * a * x - 10 * a) * x + 8 * a; };
    auto near_slope = [&](T x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
    l.weight[0] = far(t + 1), l.weight[1] = near(t), l.weight[2] = near(1 - t),
    l.weight[3] = far(2 - t);
    l.slope[0] = far_slope(t + 1) * scale_, l.slope[1] = near_slope(t) * scale_;
    l.slope[2] = -near_slope(1 - t) * scale_, l.slope[3] = -far_slope(2 - t) * scale_;
    auto far_bend = [&](T x) { return (6 * a * x - 10 * a) * scale_ * scale_; };
    auto near_bend = [&](T x) { return (6 * (a + 2) * x - 2 * (a + 3)) * scale_ * scale_; };
    l.bend[0] = far_bend(t + 1), l.bend[1] = near_bend(t);
    l.bend[2] = near_bend(1 - t), l.bend[3] = far_bend(2 - t);
    return l;
  }

  GridMode mode_;
  GridPadding padding_;
  bool align_;
  int64_t size_;
  T scale_;  // of pixels by the coordinate
};

// What a block of points sees: tap by tap, the pixel (-1: outside), the weight and its slopes.
template <class T>
struct Block {
  int taps;
  int64_t pixel[kMostTaps][kBlock];
  T weight[kMostTaps][kBlock];
  T slope[3][kMostTaps][kBlock];  // by x, y, z
};

template <class T>
void look_up(const GridSample& g, const T* grid, const T* direction, int64_t n, bool slopes,
             Block<T>& b) {
  const Axis<T> axis[3] = {{g, g.size[2]}, {g, g.size[1]}, {g, g.size[0]}};  // x, y, z
  for (int64_t p = 0; p < n; ++p) {
    Line<T> line[3] = {};
    line[2] = {1, {0}, {1}, {0}, {0}};
    for (int d = 0; d < g.dims; ++d) line[d] = axis[d].line(grid[p * g.dims + d]);
    int tap = 0;
    if (!direction && !slopes) {
      for (int k = 0; k < line[2].taps; ++k)
        for (int j = 0; j < line[1].taps; ++j) {
          const int64_t y = line[1].at[j], z = line[2].at[k];
          const int64_t row = y >= 0 && z >= 0 ? (z * g.size[1] + y) * g.size[2] : -1;
          const T weight = line[1].weight[j] * line[2].weight[k];
          for (int i = 0; i < line[0].taps; ++i, ++tap) {
            const int64_t x = line[0].at[i];
            b.pixel[tap][p] = row >= 0 && x >= 0 ? row + x : -1;
            b.weight[tap][p] = weight * line[0].weight[i];
          }
        }
      b.taps = tap;
      continue;
    }
    for (int k = 0; k < line[2].taps; ++k)
      for (int j = 0; j < line[1].taps; ++j)
        for (int i = 0; i < line[0].taps; ++i, ++tap) {
          const int at[3] = {i, j, k};
          const int64_t x = line[0].at[i], y = line[1].at[j], z = line[2].at[k];
          b.pixel[tap][p] = x >= 0 && y >= 0 && z >= 0 ? (z * g.size[1] + y) * g.size[2] + x : -1;
          // The product of the three weights, differentiated by the given coordinates.
          auto product = [&](int first, int second) {
            T value = 1;
            for (int d = 0; d < 3; ++d) {
              const int order = (d == first) + (d == second);
              const Line<T>& l = line[d];
              value *= order == 0 ? l.weight[at[d]] : order == 1 ? l.slope[at[d]] : l.bend[at[d]];
            }
            return value;
          };
          auto along = [&](int by) {
            T value = 0;
            for (int d = 0; d < g.dims; ++d) value += direction[p * g.dims + d] * product(d, by);
            return value;
          };
          b.weight[tap][p] = direction ? along(-1) : product(-1, -1);
          for (int d = 0; slopes && d < g.dims; ++d)
            b.slope[d][tap][p] = direction ? along(d) : product(d, -1);
        }
    b.taps = tap;
  }
}

// The directions of the points from `first` on, where there are any.
template <class T>
const T* directions(const GridSample& g, const T* direction, int64_t first) {
  return direction ? direction + first * g.dims : nullptr;
}

// Calls f(batch, first point, points, block) on several threads.
template <class T, class F>
void for_each_block(const GridSample& g, F f) {
  const int64_t blocks = (g.points + kBlock - 1) / kBlock;
  const int64_t work = std::max<int64_t>(1, g.channels * kBlock * 4);
  parallel_for(0, g.batch * blocks, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 const auto block = std::make_unique<Block<T>>();
                 for (; begin < end; ++begin) {
                   const int64_t from = begin % blocks * kBlock;
                   f(begin / blocks, from, std::min<int64_t>(kBlock, g.points - from), *block);
                 }
               });
}

}  // namespace

template <class T>
void grid_sample(const GridSample& g, const T* input, const T* grid, const T* direction,
                 T* output) {
  for_each_block<T>(g, [&](int64_t image, int64_t from, int64_t n, Block<T>& b) {
    const int64_t first = image * g.points + from;
    look_up(g, grid + first * g.dims, directions(g, direction, first), n, false, b);
    for (int64_t c = 0; c < g.channels; ++c) {
      const T* x = input + (image * g.channels + c) * g.pixels();
      T sums[kBlock] = {};
      for (int k = 0; k < b.taps; ++k)
        for (int64_t p = 0; p < n; ++p) {
          const int64_t at = b.pixel[k][p];
          if (at >= 0) sums[p] += b.weight[k][p] * x[at];
        }
      T* to = output + (image * g.channels + c) * g.points + from;
      for (int64_t p = 0; p < n; ++p) to[p] = sums[p];
    }
  });
}

template <class T>
void grid_sample_back(const GridSample& g, const T* grad, const T* grid, const T* direction,
                      T* input) {
  // Points may share pixels, planes do not: threads take planes of one image at a time.
  const int64_t blocks = (g.points + kBlock - 1) / kBlock;
  std::fill(input, input + g.batch * g.channels * g.pixels(), T(0));
  std::vector<Block<T>> kept(size_t(std::min<int64_t>(blocks, 64)));
  for (int64_t image = 0; image < g.batch; ++image)
    for (int64_t first = 0; first < blocks; first += int64_t(kept.size())) {
      const int64_t count = std::min<int64_t>(int64_t(kept.size()), blocks - first);
      auto points = [&](int64_t k) {
        return std::min<int64_t>(kBlock, g.points - (first + k) * kBlock);
      };
      parallel_for(0, count, 16, [&](int64_t b, int64_t e) {
        for (; b < e; ++b) {
          const int64_t from = image * g.points + (first + b) * kBlock;
          look_up(g, grid + from * g.dims, directions(g, direction, from), points(b), false,
                  kept[size_t(b)]);
        }
      });
      parallel_for(0, g.channels, std::max<int64_t>(1, kGrain / (count * kBlock * 4)),
                   [&](int64_t c, int64_t end) {
                     for (; c < end; ++c) {
                       const int64_t plane = image * g.channels + c;
                       T* x = input + plane * g.pixels();
                       for (int64_t k = 0; k < count; ++k) {
                         const Block<T>& b = kept[size_t(k)];
                         const T* y = grad + plane * g.points + (first + k) * kBlock;
                         for (int tap = 0; tap < b.taps; ++tap)
                           for (int64_t p = 0; p < points(k); ++p) {
                             const int64_t at = b.pixel[tap][p];
                             if (at >= 0) x[at] += b.weight[tap][p] * y[p];
                           }
                       }
                     }
                   });
    }
}

template <class T>
void grid_sample_slopes(const GridSample& g, const T* grad, const T* input, const T* grid,
                        const T* direction, T* slopes) {
  for_each_block<T>(g, [&](int64_t image, int64_t from, int64_t n, Block<T>& b) {
    const int64_t first = image * g.points + from;
    look_up(g, grid + first * g.dims, directions(g, direction, first), n, true, b);
    T sums[3][kBlock] = {};
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t plane = image * g.channels + c;
      const T* x = input + plane * g.pixels();
      const T* y = grad + plane * g.points + from;
      for (int k = 0; k < b.taps; ++k)
        for (int64_t p = 0; p < n; ++p) {
          const int64_t at = b.pixel[k][p];
          if (at < 0) continue;
          const T seen = x[at] * y[p];
          for (int d = 0; d < g.dims; ++d) sums[d][p] += b.slope[d][k][p] * seen;
        }
    }
    for (int64_t p = 0; p < n; ++p)
      for (int d = 0; d < g.dims; ++d) slopes[(first + p) * g.dims + d] = sums[d][p];
  });
}

#define FACULA_INSTANTIATE(T)                                                          \
  template void grid_sample(const GridSample&, const T*, const T*, const T*, T*);      \
  template void grid_sample_back(const GridSample&, const T*, const T*, const T*, T*); \
  template void grid_sample_slopes(const GridSample&, const T*, const T*, const T*, const T*, T*);
FACULA_INSTANTIATE(float)
FACULA_INSTANTIATE(double)
#undef FACULA_INSTANTIATE

}  // namespace facula

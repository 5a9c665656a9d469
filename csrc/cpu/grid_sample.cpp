// Points are taken in blocks: where each sees the input is found once, then every channel is read
// at those places.
#include "cpu/grid_sample.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "cpu/cast.h"
#include "cpu/iterate.h"

namespace facula {

#define FACULA_DECLARE(isa)                      \
  namespace isa {                                \
  extern const GridLoops<float> grid_loops_f32;  \
  extern const GridLoops<double> grid_loops_f64; \
  }
FACULA_DECLARE(baseline)
#ifdef FACULA_X86
FACULA_DECLARE(v3)
FACULA_DECLARE(v4)
#endif
#undef FACULA_DECLARE

namespace {

#ifdef FACULA_X86
const GridLoops<float>* const kLoops32[] = {&baseline::grid_loops_f32, &v3::grid_loops_f32,
                                            &v4::grid_loops_f32};
const GridLoops<double>* const kLoops64[] = {&baseline::grid_loops_f64, &v3::grid_loops_f64,
                                             &v4::grid_loops_f64};
#else
const GridLoops<float>* const kLoops32[] = {&baseline::grid_loops_f32};
const GridLoops<double>* const kLoops64[] = {&baseline::grid_loops_f64};
#endif

template <class T>
const GridLoops<T>& loops() {
  const int level = std::size(kLoops32) > 1 ? isa_level() : 0;
  if constexpr (sizeof(T) == 4) return *kLoops32[level];
  else return *kLoops64[level];
}

// The directions of the points from `first` on, where there are any.
template <class T>
const T* directions(const GridSample& g, const T* direction, int64_t first) {
  return direction ? direction + first * g.dims : nullptr;
}

// Calls f(image, first point, points, block) on several threads.
template <class T, class F>
void for_each_block(const GridSample& g, F f) {
  const int64_t blocks = (g.points + kGridBlock - 1) / kGridBlock;
  const int64_t work = std::max<int64_t>(1, g.channels * kGridBlock * 4);
  parallel_for(0, g.batch * blocks, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 const auto block = std::make_unique_for_overwrite<GridBlock<T>>();
                 for (; begin < end; ++begin) {
                   const int64_t from = begin % blocks * kGridBlock;
                   f(begin / blocks, from, std::min<int64_t>(kGridBlock, g.points - from), *block);
                 }
               });
}

// One neighbour: f(plane, the pixel that each point sees or -1, whether none is -1). Pieces are
// some channels of an image.
template <class T, class F>
void for_each_nearest(const GridSample& g, const T* grid, F f) {
  int64_t piece = g.channels;
  while (piece > 8 && g.batch * ((g.channels + piece - 1) / piece) < 2 * num_threads())
    piece = (piece + 1) / 2;
  const int64_t pieces = piece ? (g.channels + piece - 1) / piece : 0;
  const int64_t work = std::max<int64_t>(1, piece * g.points);
  parallel_for(
      0, g.batch * pieces, std::max<int64_t>(1, kGrain / work), [&](int64_t i, int64_t end) {
        const auto block = std::make_unique_for_overwrite<GridBlock<T>>();
        std::vector<int32_t> seen(size_t(g.points));
        int64_t known = -1;  // the image of `seen`
        bool inside = true;
        for (; i < end; ++i) {
          const int64_t image = i / pieces, from = i % pieces * piece;
          inside |= image != known;
          for (int64_t p = 0; image != known && p < g.points; p += kGridBlock) {
            const int64_t n = std::min<int64_t>(kGridBlock, g.points - p);
            const T* none = nullptr;
            loops<T>().look_up(g, grid + (image * g.points + p) * g.dims, none, n, false, *block);
            std::copy(block->pixel[0], block->pixel[0] + n, seen.data() + p);
            inside &= block->edges == 0;
          }
          known = image;
          for (int64_t c = from; c < std::min(from + piece, g.channels); ++c)
            f(image * g.channels + c, seen.data(), inside);
        }
      });
}

}  // namespace

template <class T>
void grid_sample(const GridSample& g, const T* input, const T* grid, const T* direction,
                 T* output) {
  if (g.mode == GridMode::Nearest && !direction)
    return for_each_nearest(g, grid, [&](int64_t plane, const int32_t* seen, bool inside) {
      const T* x = input + plane * g.pixels();
      T* y = output + plane * g.points;
      if (inside) {
#pragma GCC unroll 4
        for (int64_t p = 0; p < g.points; ++p) y[p] = x[seen[p]];
      } else {
        for (int64_t p = 0; p < g.points; ++p) y[p] = seen[p] < 0 ? T(0) : x[seen[p]];
      }
    });
  for_each_block<T>(g, [&](int64_t image, int64_t from, int64_t n, GridBlock<T>& b) {
    const int64_t first = image * g.points + from;
    loops<T>().look_up(g, grid + first * g.dims, directions(g, direction, first), n, false, b);
    if (g.channels_last)
      return loops<T>().sample_pixels(b, input + image * g.pixels() * g.channels, n, g.channels,
                                      output + first * g.channels);
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t plane = image * g.channels + c;
      loops<T>().sample(b, input + plane * g.pixels(), n, output + plane * g.points + from);
    }
  });
}

// Pieces are images, or some of their channels: they share no element of the input.
template <class T>
static void add_channels(const GridSample& g, const T* grad, const T* grid, const T* direction,
                         T* input) {
  int64_t piece = g.channels;
  while (piece > 32 && g.batch * ((g.channels + piece - 1) / piece) < 2 * num_threads())
    piece = (piece / 2 + 15) / 16 * 16;  // lines of the cache
  const int64_t pieces = (g.channels + piece - 1) / piece;
  const int64_t work = std::max<int64_t>(1, piece * g.points * 4);
  parallel_for(
      0, g.batch * pieces, std::max<int64_t>(1, kGrain / work), [&](int64_t i, int64_t end) {
        const auto block = std::make_unique_for_overwrite<GridBlock<T>>();
        for (; i < end; ++i) {
          const int64_t image = i / pieces, from = i % pieces * piece;
          const int64_t count = std::min(piece, g.channels - from);
          T* to = input + image * g.pixels() * g.channels + from;
          for (int64_t k = 0; k < g.pixels(); ++k)
            std::fill(to + k * g.channels, to + k * g.channels + count, T(0));
          for (int64_t p = 0; p < g.points; p += kGridBlock) {
            const int64_t n = std::min<int64_t>(kGridBlock, g.points - p),
                          at = image * g.points + p;
            loops<T>().look_up(g, grid + at * g.dims, directions(g, direction, at), n, false,
                               *block);
            loops<T>().add_pixels(*block, grad + at * g.channels + from, n, g.channels, count, to);
          }
        }
      });
}

template <class T>
void grid_sample_back(const GridSample& g, const T* grad, const T* grid, const T* direction,
                      T* input) {
  if (g.channels_last) return add_channels(g, grad, grid, direction, input);
  if (g.mode == GridMode::Nearest && !direction)
    return for_each_nearest(g, grid, [&](int64_t plane, const int32_t* seen, bool) {
      T* x = input + plane * g.pixels();
      const T* y = grad + plane * g.points;
      std::fill(x, x + g.pixels(), T(0));
      for (int64_t p = 0; p < g.points; ++p) {
        asm("" : "+r"(p));  // no vectors, which would have to look for pixels that meet
        if (seen[p] >= 0) x[seen[p]] += y[p];
      }
    });
  // Points may share pixels, planes do not: threads take planes of one image at a time.
  const int64_t blocks = (g.points + kGridBlock - 1) / kGridBlock;
  std::fill(input, input + g.batch * g.channels * g.pixels(), T(0));
  const int64_t most = std::min<int64_t>(blocks, 64);
  const auto kept = std::make_unique_for_overwrite<GridBlock<T>[]>(size_t(most));
  auto add = [&](const GridBlock<T>& b, const T* y, int64_t n, T* x) {
    for (int tap = 0; tap < b.taps; ++tap)
      for (int64_t p = 0; p < n; ++p) {
        const int32_t at = b.pixel[tap][p];
        if (at >= 0) x[at] += b.weight[tap][p] * y[p];
      }
  };
  for (int64_t image = 0; image < g.batch; ++image)
    for (int64_t first = 0; first < blocks; first += most) {
      const int64_t count = std::min(most, blocks - first);
      auto points = [&](int64_t k) {
        return std::min<int64_t>(kGridBlock, g.points - (first + k) * kGridBlock);
      };
      parallel_for(0, count, 16, [&](int64_t b, int64_t e) {
        for (; b < e; ++b) {
          const int64_t from = image * g.points + (first + b) * kGridBlock;
          loops<T>().look_up(g, grid + from * g.dims, directions(g, direction, from), points(b),
                             false, kept[size_t(b)]);
        }
      });
      parallel_for(0, g.channels, std::max<int64_t>(1, kGrain / (count * kGridBlock * 4)),
                   [&](int64_t c, int64_t end) {
                     for (; c < end; ++c) {
                       const int64_t plane = image * g.channels + c;
                       const T* y = grad + plane * g.points + first * kGridBlock;
                       for (int64_t k = 0; k < count; ++k)
                         add(kept[size_t(k)], y + k * kGridBlock, points(k),
                             input + plane * g.pixels());
                     }
                   });
    }
}

template <class T>
void grid_sample_slopes(const GridSample& g, const T* grad, const T* input, const T* grid,
                        const T* direction, T* slopes) {
  if (g.mode == GridMode::Nearest) {  // what is seen does not change
    std::fill(slopes, slopes + g.batch * g.points * g.dims, T(0));
    return;
  }
  for_each_block<T>(g, [&](int64_t image, int64_t from, int64_t n, GridBlock<T>& b) {
    const int64_t first = image * g.points + from;
    loops<T>().look_up(g, grid + first * g.dims, directions(g, direction, first), n, true, b);
    if (g.channels_last)
      return loops<T>().slope_pixels(b, input + image * g.pixels() * g.channels,
                                     grad + first * g.channels, n, g.channels, g.dims,
                                     slopes + first * g.dims);
    T sums[3][kGridBlock] = {};
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t plane = image * g.channels + c;
      loops<T>().slopes(b, input + plane * g.pixels(), grad + plane * g.points + from, n, g.dims,
                        sums);
    }
    T* to = slopes + first * g.dims;
    for (int64_t p = 0; g.dims == 2 && p < n; ++p)
      to[2 * p] = sums[0][p], to[2 * p + 1] = sums[1][p];
    for (int64_t p = 0; g.dims == 3 && p < n; ++p)
      for (int d = 0; d < 3; ++d) to[3 * p + d] = sums[d][p];
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

#include "cpu/triangle.h"

#include <algorithm>
#include <utility>

#include "core/thread_pool.h"

namespace facula {

namespace {

constexpr int64_t kSharedWork = 1 << 20;      // multiplications that are worth to wake threads for
constexpr int64_t kLargeTriangle = 1 << 20;   // bytes
constexpr int64_t kGroupBytes = 256 << 10;    // of a large triangle that some panels pass
constexpr int64_t kPackedElements = 1 << 14;  // for a task
constexpr int64_t kPanelsTogether = 8;

template <class T>
void exchange_panel_rows(int64_t n, int64_t width, RowExchanges exchanges, T* panel) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = exchanges.after ? n - 1 - k : k, other = exchanges.pivots[i] - 1;
    if (other != i)
      std::swap_ranges(panel + i * width, panel + (i + 1) * width, panel + other * width);
  }
}

}  // namespace

template <class T>
void Triangle<T>::pack(bool upper, bool unit, int64_t n, Strided<const T> a) {
  const TriangleTable<T>& t = triangle_table<T>();
  upper_ = upper;
  const int64_t blocks = (n + t.rows - 1) / t.rows;
  parallel_for(
      0, blocks, std::max<int64_t>(1, kPackedElements / (std::max<int64_t>(n, 1) * t.rows)),
      [&](int64_t begin, int64_t end) { t.pack(upper, unit, n, a, begin, end, packed_.data()); });
}

namespace {

// Solves for `count` columns by panels, which the threads share. read(first, columns, vectors,
// panel) and write(...) move the columns from `first` on. Columns of a unit matrix have zeros above
// the diagonal, which a lower triangle leaves; where `half`, the solutions above it are not wanted.
template <class T, class Read, class Write>
void solve_panels(std::initializer_list<const Triangle<T>*> triangles, int64_t n, int64_t count,
                  bool unit, bool half, const Read& read, const Write& write) {
  const TriangleTable<T>& t = triangle_table<T>();
  const int threads = in_parallel_region() ? 1 : num_threads();
  // What is left out since it is zero depends on the cut, and with it signs of zeros and how far
  // NaN spreads: no cut by threads there.
  const int64_t shares = unit ? 2 : threads;
  const int64_t vectors = (count + t.lanes - 1) / t.lanes, blocks = (n + t.rows - 1) / t.rows,
                fewest = (vectors + t.vectors - 1) / t.vectors,
                even = (fewest + shares - 1) / shares * shares,
                panels = fewest > 1 && even <= vectors ? even : fewest,
                room = blocks * t.rows * ((vectors + panels - 1) / panels) * t.lanes;
  // A large triangle is read once for some panels, so many blocks at a time as stay in the cache.
  const bool large = n * n / 2 * int64_t(sizeof(T)) > kLargeTriangle;
  const int64_t group =
      large ? std::max<int64_t>(1, kGroupBytes / (n * t.rows * int64_t(sizeof(T)))) : blocks;
  const int64_t fewest_pieces = large ? (panels + kPanelsTogether - 1) / kPanelsTogether : panels;
  const int64_t pieces = std::min(panels, (fewest_pieces + threads - 1) / threads * threads);
  const int64_t together = (panels + pieces - 1) / pieces;
  const bool shared = n * n * count * int64_t(triangles.size()) >= kSharedWork;
  const auto columns_before = [&](int64_t panel) {
    return std::min(count, panel * vectors / panels * t.lanes);
  };
  parallel_for(0, pieces, shared ? 1 : pieces, [&](int64_t piece, int64_t last) {
    const LocalArray<T, kLocalTriangle> memory(room * together);
    for (; piece < last; ++piece) {
      const int64_t begin = piece * panels / pieces, end = (piece + 1) * panels / pieces;
      const auto for_panels = [&](auto&& f) {
        for (int64_t p = begin; p < end; ++p) {
          const int64_t first = columns_before(p),
                        wide = (p + 1) * vectors / panels - p * vectors / panels;
          f(first, columns_before(p + 1) - first, int(wide), memory.data() + (p - begin) * room);
        }
      };
      for_panels(read);
      for (const Triangle<T>* triangle : triangles)
        for (int64_t k = 0; k < blocks; k += group)
          for_panels([&](int64_t first, int64_t, int wide, T* panel) {
            const int64_t above = unit ? first / t.rows : 0, known = triangle->upper() ? 0 : above,
                          stop = triangle->upper() && half ? blocks - above : blocks;
            t.solve(triangle->upper(), n, known, std::max(k, known), std::min(stop, k + group),
                    wide, triangle->packed(), panel);
          });
      for_panels(write);
    }
  });
}

}  // namespace

template <class T>
void solve_triangles(std::initializer_list<const Triangle<T>*> triangles, int64_t n, int64_t count,
                     Strided<const T> b, Strided<T> x, RowExchanges exchanges) {
  if (n == 0 || count == 0) return;
  const TriangleTable<T>& t = triangle_table<T>();
  solve_panels(
      triangles, n, count, false, false,
      [&](int64_t first, int64_t columns, int wide, T* panel) {
        t.read(n, columns, {b.data + first * b.column, b.row, b.column}, wide, panel);
        if (exchanges.pivots && !exchanges.after)
          exchange_panel_rows(n, wide * t.lanes, exchanges, panel);
      },
      [&](int64_t first, int64_t columns, int wide, T* panel) {
        if (exchanges.pivots && exchanges.after)
          exchange_panel_rows(n, wide * t.lanes, exchanges, panel);
        t.write(n, columns, wide, panel, {x.data + first * x.column, x.row, x.column});
      });
}

template <class T>
void invert_triangles(const Triangle<T>& lower, const Triangle<T>& upper, int64_t n,
                      const int* pivots, T* x) {
  if (n == 0) return;
  const TriangleTable<T>& t = triangle_table<T>();
  const HostArray<int> place(n);  // of the columns of (L U)^-1
  for (int i = 0; i < n; ++i) place[i] = i;
  for (int64_t i = 0; pivots && i < n; ++i) std::swap(place[i], place[pivots[i] - 1]);
  const bool symmetric = !pivots;
  solve_panels(
      {&lower, &upper}, n, n, true, symmetric,
      [&](int64_t first, int64_t columns, int wide, T* panel) {
        const int64_t width = wide * t.lanes, rows = (n + t.rows - 1) / t.rows * t.rows;
        std::fill_n(panel, rows * width, T(0));
        for (int64_t j = 0; j < columns; ++j) panel[(first + j) * width + j] = T(1);
      },
      [&](int64_t first, int64_t columns, int wide, T* panel) {
        const int64_t above = symmetric ? first : 0, rows = n - above;
        const T* from = panel + above * wide * t.lanes;
        if (symmetric) return t.write(rows, columns, wide, from, {x + above + first * n, 1, n});
        const LocalArray<T, kLocalTriangle> turned(rows * columns);
        t.write(rows, columns, wide, from, {turned.data(), 1, n});
        for (int64_t j = 0; j < columns; ++j)
          std::copy_n(turned.data() + j * n, n, x + place[first + j] * n);
      });
  if (!symmetric) return;
  constexpr int64_t kTile = 32;
  parallel_for(0, (n + kTile - 1) / kTile, std::max<int64_t>(1, kPackedElements / (kTile * n)),
               [&](int64_t tile, int64_t last) {
                 for (int64_t j0 = tile * kTile; j0 < std::min(n, last * kTile); j0 += kTile)
                   for (int64_t i0 = 0; i0 <= j0; i0 += kTile)
                     for (int64_t j = j0; j < std::min(n, j0 + kTile); ++j)
                       for (int64_t i = i0; i < std::min(j, i0 + kTile); ++i)
                         x[i + j * n] = x[j + i * n];
               });
}

template class Triangle<float>;
template class Triangle<double>;
template void solve_triangles<float>(std::initializer_list<const Triangle<float>*>, int64_t,
                                     int64_t, Strided<const float>, Strided<float>, RowExchanges);
template void solve_triangles<double>(std::initializer_list<const Triangle<double>*>, int64_t,
                                      int64_t, Strided<const double>, Strided<double>,
                                      RowExchanges);

template void invert_triangles<float>(const Triangle<float>&, const Triangle<float>&, int64_t,
                                      const int*, float*);
template void invert_triangles<double>(const Triangle<double>&, const Triangle<double>&, int64_t,
                                       const int*, double*);

}  // namespace facula

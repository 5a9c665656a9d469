// Systems with triangular real matrices, for any strides and many right-hand sides. A triangle is
// packed once; right-hand sides are taken some vectors at a time, as the rows of a panel, of which
// each block of rows is read and written once. A solution does not depend on those beside it; only
// where there is one alone, nothing is packed, and it is rounded otherwise.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "core/host_array.h"

namespace facula {

template <class T>
struct Strided {  // element (i, j) at data[i * row + j * column]
  T* data;
  int64_t row, column;
};

// The pieces of a solution. A packed triangle has block after block of rows in the order in which
// they are solved: the elements beside those that were solved before, column by column, the square
// on the diagonal, and minus the inverses of the diagonal (0 where that is no normal number).
template <class T>
struct TriangleTable {
  int rows;            // of a block; the last one of a triangle ends with rows of the unit matrix
  int lanes, vectors;  // a panel is up to so many vectors wide, its rows are those of whole blocks
  // These take the blocks [begin, end), counted in their order.
  void (*pack)(bool upper, bool unit, int64_t n, Strided<const T> a, int64_t begin, int64_t end,
               T* packed);
  // The panel is zero in as many blocks as are `known` before the first one of a lower triangle.
  void (*solve)(bool upper, int64_t n, int64_t known, int64_t begin, int64_t end, int vectors,
                const T* packed, T* panel);
  // One right-hand side, x, which becomes the solution; a lies as the program has it.
  void (*substitute)(bool upper, bool unit, int64_t n, Strided<const T> a, T* x);
  void (*read)(int64_t n, int64_t count, Strided<const T> b, int vectors, T* panel);
  void (*write)(int64_t n, int64_t count, int vectors, const T* panel, Strided<T> x);
};

// For the instruction set of this machine; float and double.
template <class T>
const TriangleTable<T>& triangle_table();

constexpr int64_t kLocalTriangle = 20 << 10;  // bytes: 64 rows of double

template <class T>
class Triangle {
 public:
  // Room for up to n rows.
  explicit Triangle(int64_t n) : packed_(size_of(n)) {}
  Triangle(bool upper, bool unit, int64_t n, Strided<const T> a) : Triangle(n) {
    pack(upper, unit, n, a);
  }
  // The lower or the upper triangle of n x n elements; the diagonal counts as 1 if `unit`.
  void pack(bool upper, bool unit, int64_t n, Strided<const T> a);
  bool upper() const { return upper_; }
  const T* packed() const { return packed_.data(); }

 private:
  static int64_t size_of(int64_t n) {
    const int64_t rows = triangle_table<T>().rows, blocks = (n + rows - 1) / rows;
    return rows * rows * blocks * (blocks + 1) / 2 + rows * blocks;
  }
  bool upper_ = false;
  LocalArray<T, kLocalTriangle> packed_;
};

// Row exchanges as LAPACK's pivots have them: before the first triangle, or back after the last.
struct RowExchanges {
  const int* pivots = nullptr;
  bool after = false;
};

// x = the solutions for n x count right-hand sides b, which may be x: of the first triangle's
// system, then for those of the second one's. The thread pool shares them.
template <class T>
void solve_triangles(std::initializer_list<const Triangle<T>*> triangles, int64_t n, int64_t count,
                     Strided<const T> b, Strided<T> x, RowExchanges exchanges = {});

// x = (L U)^-1 P, the inverse from the factors of LU, n x n and column-major; or, without pivots,
// (L L^T)^-1, of which the elements above the diagonal are those below it.
template <class T>
void invert_triangles(const Triangle<T>& lower, const Triangle<T>& upper, int64_t n,
                      const int* pivots, T* x);

}  // namespace facula

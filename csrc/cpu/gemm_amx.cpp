// Products by matrix tiles on all threads: both sides are packed once and shared; where one has few
// rows or columns, each part of c packs what it needs of the other. How c is cut depends on the
// number of threads, how sums are taken does not: a long depth is cut into parts by the shape
// alone.
#include "cpu/gemm_amx.h"

#include <algorithm>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/amx.h"
#include "cpu/gemm_kernels.h"

namespace facula {

namespace {

constexpr int64_t kStrip = 16;
constexpr int64_t kPackedElements = 8 << 20;            // of each side at a time, at most
constexpr int64_t kMostRows = 512, kMostColumns = 128;  // of a part: its sums fit a second cache
constexpr double kPartWork = 1 << 20;                   // the least multiplications for a part
constexpr int64_t kPartsPerThread = 2;

const AmxLoops& loops() {
#ifdef FACULA_X86
  return *v4::gemm_of_tiles;
#else
  return *baseline::gemm_of_tiles;
#endif
}

int64_t rounded_up(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes), data_(bytes ? host_allocate(bytes) : nullptr) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { host_free(data_, bytes_); }
  template <class T>
  T* at(int64_t byte) const {
    return reinterpret_cast<T*>(static_cast<char*>(data_) + byte);
  }

 private:
  size_t bytes_;
  void* data_;
};

// Rows and columns of the parts of c: as large as caches allow, and as many as threads want.
struct Cut {
  int64_t rows, columns, down, across;
  Cut(int64_t m, int64_t n, int64_t k) {
    const int threads = in_parallel_region() ? 1 : num_threads();
    const double work = double(m) * double(n) * double(k);
    const auto most = int64_t(work / kPartWork);
    const int64_t wanted = threads == 1 ? 1 : std::min(most, threads * kPartsPerThread);
    rows = std::min(kMostRows, rounded_up(m, kAmxSide));
    columns = std::min(kMostColumns, rounded_up(n, kAmxSide));
    for (;;) {
      down = (m - 1) / rows + 1;
      across = (n - 1) / columns + 1;
      if (down * across >= wanted) break;
      // Rows first: their cut costs that columns of b are packed once more, but not of wide ones.
      if (columns > 2 * kAmxSide && (columns >= rows || rows <= 2 * kAmxSide))
        columns = rounded_up(columns / 2, kAmxSide);
      else if (rows > 2 * kAmxSide) rows = rounded_up(rows / 2, kAmxSide);
      else break;
    }
    rows = rounded_up((m - 1) / down + 1, kAmxSide);  // nearly equal ones
    columns = rounded_up((n - 1) / across + 1, kAmxSide);
    down = (m - 1) / rows + 1;
    across = (n - 1) / columns + 1;
  }
};

// Rows or columns that are packed at a time.
int64_t packed_at_once(int64_t n, int64_t deep) {
  const int64_t most = std::max(kMostRows, kPackedElements / deep / kMostRows * kMostRows);
  return std::min(most, rounded_up(n, kAmxSide));
}

void pack_right(const Gemm& g, int64_t column0, int64_t columns, int64_t room, uint16_t* to) {
  const int64_t blocks = (g.k - 1) / kAmxDeep + 1, groups = (columns - 1) / kMostColumns + 1;
  parallel_for(0, blocks * groups, 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t k = i / groups * kAmxDeep, column = i % groups * kMostColumns;
      const int64_t deep = std::min(kAmxDeep, rounded_up(g.k - k, 32));
      loops().pack_right(g, k, column0 + column, std::min(kMostColumns, columns - column),
                         to + k * room + column * deep);
    }
  });
}

// One matrix; into `floats` where it is given, without alpha, beta and bias.
void multiply(const Gemm& g, float* floats) {
  const int64_t deep = rounded_up(g.k, 32), block = std::min(deep, kAmxDeep);
  const bool own_right = g.m <= kMostRows, own_left = !own_right && g.n <= kMostColumns;
  const int64_t rows_at_once = own_left ? rounded_up(g.m, kAmxSide) : packed_at_once(g.m, deep);
  const int64_t columns_at_once = own_right ? rounded_up(g.n, kAmxSide) : packed_at_once(g.n, deep);
  const Block left(own_left ? 0 : size_t(rows_at_once * deep) * 2);
  const Block right(own_right ? 0 : size_t(columns_at_once * deep) * 2);
  for (int64_t column0 = 0; column0 < g.n; column0 += columns_at_once) {
    const int64_t n = std::min(columns_at_once, g.n - column0);
    if (!own_right) pack_right(g, column0, n, columns_at_once, right.at<uint16_t>(0));
    for (int64_t row0 = 0; row0 < g.m; row0 += rows_at_once) {
      const int64_t m = std::min(rows_at_once, g.m - row0), strips = (m - 1) / kStrip + 1;
      if (!own_left && (column0 == 0 || rows_at_once < g.m))
        parallel_for(
            0, strips, std::max<int64_t>(1, 65536 / (kStrip * deep)), [&](int64_t i, int64_t end) {
              loops().pack_left(g, row0 + i * kStrip, std::min(end * kStrip, m) - i * kStrip,
                                left.at<uint16_t>(i * kStrip * deep * 2));
            });
      const Cut cut(m, n, g.k);
      const int64_t room_bytes =
          ((own_left ? cut.rows : 0) + (own_right ? cut.columns : 0)) * block * 2;
      const int64_t sums = g.k <= kAmxDeep ? kAmxSide * kAmxSide : cut.rows * cut.columns;
      parallel_for(0, cut.down * cut.across, 1, [&](int64_t i, int64_t end) {
        const Block room(size_t(room_bytes + sums * 4));
        for (; i < end; ++i) {
          const int64_t row = i % cut.down * cut.rows, column = i / cut.down * cut.columns;
          AmxPart part{row0 + row, std::min(cut.rows, m - row), column0 + column,
                       std::min(cut.columns, n - column)};
          part.left = own_left ? nullptr : left.at<uint16_t>(0), part.left_row = row0;
          part.right = own_right ? nullptr : right.at<uint16_t>(0), part.right_column = column0;
          part.right_columns = columns_at_once;
          part.room = room.at<uint16_t>(0);
          part.sums = room.at<float>(room_bytes);
          part.floats = floats;
          loops().multiply(g, part);
        }
      });
    }
  }
}

// Parts that the depth of a product with a small result is cut into: c has too few of its own for
// threads.
int64_t parts_of_depth(const Gemm& g) {
  constexpr int64_t kSmallResult = 256 * 256, kDepth = 2048, kMostParts = 16;
  if (g.batch > 1 || g.m * g.n > kSmallResult) return 1;
  const int64_t parts = std::min(g.k / kDepth, kMostParts);
  return parts < 4 ? 1 : parts;
}

void deep_product(const Gemm& g, int64_t parts) {
  const int64_t size = g.m * g.n, deep = rounded_up((g.k - 1) / parts + 1, 32);
  const Block block(size_t(parts * size) * 4);
  float* const sums = block.at<float>(0);
  parallel_for(0, parts, 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      Gemm part = g;
      part.a = static_cast<const uint16_t*>(g.a) + i * deep * g.a_col;
      part.b = static_cast<const uint16_t*>(g.b) + i * deep * g.b_row;
      part.k = std::min(deep, g.k - i * deep);
      multiply(part, sums + i * size);
    }
  });
  const int64_t grain = std::max<int64_t>(1, 32768 / (g.n * parts));
  parallel_for(0, g.m, grain,
               [&](int64_t row, int64_t end) { loops().finish(g, sums, parts, row, end - row); });
}

}  // namespace

bool suits_amx(const Gemm& g) {
  constexpr int64_t kFewest = 8;
  constexpr double kLeastWork = 32 * 32 * 32;
  return amx_available(g.dtype) && std::min({g.m, g.n, g.k}) >= kFewest &&
         double(g.m) * double(g.n) * double(g.k) >= kLeastWork;
}

void amx_product(const Gemm& problem) {
  const bool turn = problem.c_col != 1 && problem.c_row == 1 && !problem.bias;
  const Gemm g = turn ? transposed(problem) : problem;
  if (const int64_t parts = parts_of_depth(g); parts > 1) return deep_product(g, parts);
  const double work = double(g.m) * double(g.n) * double(g.k);
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Gemm one = g;
      one.batch = 1;
      one.a = static_cast<const uint16_t*>(g.a) + i * g.a_batch;
      one.b = static_cast<const uint16_t*>(g.b) + i * g.b_batch;
      one.c = static_cast<uint16_t*>(g.c) + i * g.c_batch;
      multiply(one, nullptr);
    }
  };
  // A thread computes whole matrices where there are many, or where they are small.
  if (g.batch > 1 && (g.batch >= 4 * num_threads() || work < 4 * kPartWork))
    parallel_for(0, g.batch, std::max<int64_t>(1, int64_t(kPartWork / work)), run);
  else run(0, g.batch);
}

}  // namespace facula

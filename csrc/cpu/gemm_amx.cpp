// Products by matrix tiles on all threads. Parts of c are as large as a second cache allows, since
// what they read of both sides comes from farther away; the right side is packed once for all of
// them where many parts share it. How c is cut depends on the number of threads, how sums are taken
// does not: a long depth is cut into parts by the shape alone.
#include "cpu/gemm_amx.h"

#include <algorithm>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/amx.h"
#include "cpu/gemm_kernels.h"

namespace facula {

namespace {

constexpr int64_t kPackedElements = 8 << 20;  // of the right side at a time, at most
// Of a part: the sums and a block of the depth of one as large take half of a second cache.
constexpr int64_t kMostRows = 256, kMostColumns = 512, kDeep = 256;
constexpr int64_t kShallow = 128 << 10;  // elements of the right side that are taken in one block
constexpr double kPartWork = 1 << 22;    // the least multiplications for a part
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
      // Columns first: their cut costs that rows of a are read once more, but not packed.
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

// Columns that are packed at a time.
int64_t packed_at_once(int64_t n, int64_t k) {
  const int64_t most = std::max(kMostColumns, kPackedElements / k / kMostColumns * kMostColumns);
  return std::min(most, rounded_up(n, kAmxSide));
}

void pack_right(const Gemm& g, int64_t deep, int64_t column0, int64_t columns, int64_t room,
                uint16_t* to) {
  constexpr int64_t kTogether = 128;
  const int64_t blocks = (g.k - 1) / deep + 1, groups = (columns - 1) / kTogether + 1;
  parallel_for(0, blocks * groups, 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t k = i / groups * deep, column = i % groups * kTogether;
      const int64_t steps = std::min(deep, rounded_up(g.k - k, 32));
      loops().pack_right(g, k, deep, column0 + column, std::min(kTogether, columns - column),
                         to + k * room + column * steps);
    }
  });
}

// What a part of so many rows and columns needs for itself.
struct Room {
  int64_t left, right, sums;  // elements
  Room(const Gemm& g, int64_t rows, int64_t columns, int64_t deep, bool in_place, bool own_right)
      : left((in_place ? (g.m % kAmxSide ? kAmxSide : 0) : rounded_up(rows, kAmxSide)) * deep),
        right(own_right ? columns * deep : 0),
        sums(deep >= g.k ? kAmxSide * kAmxSide : rounded_up(rows, kAmxSide) * columns) {}
  size_t bytes() const { return size_t(left + right) * 2 + size_t(sums) * 4; }
  void give(const Block& block, AmxPart& part) const {
    part.sums = block.at<float>(0);
    part.left_room = block.at<uint16_t>(sums * 4);
    part.right_room = block.at<uint16_t>(sums * 4 + left * 2);
  }
};

bool in_place(const Gemm& g) {
  // Rows that meet in a few sets of a cache do not stay there until all columns have been.
  const bool stays = g.n <= 128 || g.a_row * 2 % 4096 != 0;
  return g.a_col == 1 && g.k % 32 == 0 && stays;
}

int64_t depth_of_block(const Gemm& g, int64_t columns) {
  const int64_t whole = rounded_up(g.k, 32);
  return columns * whole <= kShallow ? whole : std::min(whole, kDeep);
}

// Matrices on this thread, each of one part.
void multiply_small(const AmxProduct& p) {
  const Gemm& g = p.g;
  const int64_t columns = rounded_up(g.n, kAmxSide), deep = depth_of_block(g, columns);
  AmxPart part{0, g.m, 0, g.n, deep, in_place(g), nullptr, 0, 0, nullptr, nullptr, nullptr};
  const Room room(g, g.m, columns, deep, part.in_place, true);
  const Block block(room.bytes());
  room.give(block, part);
  loops().multiply(p, part);
}

// One matrix.
void multiply(const AmxProduct& p) {
  const Gemm& g = p.g;
  const bool own_right = g.m <= 2 * kMostRows;
  const int64_t at_once = own_right ? rounded_up(g.n, kAmxSide) : packed_at_once(g.n, g.k);
  const Cut first(g.m, std::min(at_once, g.n), g.k);
  const int64_t deep = depth_of_block(g, first.columns);
  const Block right(own_right ? 0 : size_t(at_once * rounded_up(g.k, 32)) * 2);
  for (int64_t column0 = 0; column0 < g.n; column0 += at_once) {
    const int64_t n = std::min(at_once, g.n - column0);
    if (!own_right) pack_right(g, deep, column0, n, at_once, right.at<uint16_t>(0));
    const Cut cut(g.m, n, g.k);
    parallel_for(0, cut.down * cut.across, 1, [&](int64_t i, int64_t end) {
      const Room room(g, cut.rows, cut.columns, deep, in_place(g), own_right);
      const Block block(room.bytes());
      for (; i < end; ++i) {
        const int64_t row = i % cut.down * cut.rows, column = i / cut.down * cut.columns;
        AmxPart part{row,
                     std::min(cut.rows, g.m - row),
                     column0 + column,
                     std::min(cut.columns, n - column),
                     deep,
                     in_place(g),
                     own_right ? nullptr : right.at<uint16_t>(0),
                     column0,
                     at_once,
                     nullptr,
                     nullptr,
                     nullptr};
        room.give(block, part);
        loops().multiply(p, part);
      }
    });
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

void deep_product(const AmxProduct& p, int64_t parts) {
  const Gemm& g = p.g;
  const int64_t size = g.m * g.n, deep = rounded_up((g.k - 1) / parts + 1, 32);
  const Block block(size_t(parts * size) * 4);
  float* const sums = block.at<float>(0);
  parallel_for(0, parts, 1, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      AmxProduct part = p;
      part.g.a = static_cast<const uint16_t*>(g.a) + i * deep * g.a_col;
      part.g.b = static_cast<const uint16_t*>(g.b) + i * deep * g.b_row;
      part.g.k = std::min(deep, g.k - i * deep);
      part.floats = sums + i * size, part.floats_row = p.out.n;
      multiply(part);
    }
  });
  const int64_t grain = std::max<int64_t>(1, 32768 / (p.out.n * parts));
  parallel_for(0, p.out.m, grain,
               [&](int64_t row, int64_t end) { loops().finish(p, sums, parts, row, end - row); });
}

// Which of the two products a @ b and (b^T @ a^T)^T it is: the left side should have its elements
// along the depth together, and of two such sides the smaller one is turned for the right.
bool is_better_turned(const Gemm& g) {
  return g.b_row == 1 && (g.a_col != 1 || g.m < g.n);
}

}  // namespace

bool suits_amx(const Gemm& g) {
  constexpr int64_t kFewest = 8;
  constexpr double kLeastWork = 32 * 32 * 32;
  return amx_available(g.dtype) && std::min({g.m, g.n, g.k}) >= kFewest &&
         double(g.m) * double(g.n) * double(g.k) >= kLeastWork;
}

void amx_product(const Gemm& problem) {
  const Gemm other = transposed(problem);
  const bool turn = is_better_turned(problem);
  const bool turn_out = problem.c_col != 1 && problem.c_row == 1 && !problem.bias;
  const AmxProduct p{turn ? other : problem, turn_out ? other : problem, turn != turn_out};
  const Gemm& g = p.g;
  if (const int64_t parts = parts_of_depth(g); parts > 1) return deep_product(p, parts);
  auto matrices = [&](int64_t first, int64_t count) {
    AmxProduct some = p;
    some.g.batch = some.out.batch = count;
    some.g.a = static_cast<const uint16_t*>(g.a) + first * g.a_batch;
    some.g.b = static_cast<const uint16_t*>(g.b) + first * g.b_batch;
    some.out.c = static_cast<uint16_t*>(g.c) + first * g.c_batch;
    return some;
  };
  // A thread computes whole matrices where there are many, or where they are small.
  const double work = double(g.m) * double(g.n) * double(g.k);
  const bool small = g.m <= kMostRows && g.n <= kMostColumns;
  if (small && (work < kPartWork || g.batch >= 4 * num_threads()))
    return parallel_for(0, g.batch, std::max<int64_t>(1, int64_t(kPartWork / work)),
                        [&](int64_t i, int64_t end) { multiply_small(matrices(i, end - i)); });
  for (int64_t i = 0; i < g.batch; ++i) multiply(matrices(i, 1));
}

void amx_product(const Gemm& g, float* sums, int64_t apart) {
  const bool turn = is_better_turned(g);
  multiply({turn ? transposed(g) : g, g, turn, sums, apart});
}

}  // namespace facula

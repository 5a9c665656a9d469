// Steps of recurrent layers in bfloat16 and half by products of pairs. The weights stay packed for
// all steps; the gates of 64 cells are computed while their sums are in the first cache.
#include "cpu/pair_products.h"

#include "core/host_allocator.h"
#include "cpu/recurrent_rows.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_HAS_TILES
namespace {

constexpr int64_t kBlocks = 4;  // of 16 cells, taken together
constexpr int64_t kCells = kBlocks * kTileSide;
constexpr int64_t kPlane = kTileSide * kCells;  // sums of one gate: 16 rows of them
constexpr int kMostGates = 4;

int64_t up_to(int64_t most, int64_t n) {
  return n < most ? n : most;
}
int64_t units(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit;
}

void pack(const void* weight, int64_t gates, int64_t count, int64_t depth, int64_t block,
          int64_t end, uint16_t* to) {
  const int64_t steps = units(depth, kTileDepth), strip = steps * kTileElements;
  for (; block < end; ++block)
    for (int64_t gate = 0; gate < gates; ++gate) {
      const int64_t first = block * kTileSide;
      pack_strips<true>(static_cast<const uint16_t*>(weight) + (gate * count + first) * depth, 1,
                        depth, depth, up_to(kTileSide, count - first), steps,
                        to + (block * gates + gate) * strip);
    }
}

// 16 rows, of which `count` are wanted, times T strips that follow each other; results are `apart`,
// their rows kCells.
template <int T, class S>
FACULA_INLINE void sum_of_strips(const TileProducts<S>&, int64_t, int64_t steps,
                                 const uint16_t* rows, int64_t row, const uint16_t* strips,
                                 float* sums, int64_t apart) {
  clear_tile<0>();
  if constexpr (T > 1) clear_tile<1>();
  if constexpr (T > 2) clear_tile<2>();
  if constexpr (T > 3) clear_tile<3>();
  const int64_t strip = steps * kTileElements;
  for (int64_t p = 0; p < steps; ++p, rows += kTileDepth, strips += kTileElements) {
    load_tile<4>(rows, row * 2);
    load_tile<5>(strips, 64);
    multiply_tiles<S, 0, 4, 5>();
    if constexpr (T > 1) {
      load_tile<6>(strips + strip, 64);
      multiply_tiles<S, 1, 4, 6>();
    }
    if constexpr (T > 2) {
      load_tile<7>(strips + 2 * strip, 64);
      multiply_tiles<S, 2, 4, 7>();
    }
    if constexpr (T > 3) {
      load_tile<5>(strips + 3 * strip, 64);
      multiply_tiles<S, 3, 4, 5>();
    }
  }
  constexpr int64_t sum_row = 4 * kCells;
  store_tile<0>(sums, sum_row);
  if constexpr (T > 1) store_tile<1>(sums + apart, sum_row);
  if constexpr (T > 2) store_tile<2>(sums + 2 * apart, sum_row);
  if constexpr (T > 3) store_tile<3>(sums + 3 * apart, sum_row);
}

template <int T>
void sum_of_strips(const DotProducts& products, int64_t count, int64_t steps, const uint16_t* rows,
                   int64_t row, const uint16_t* strips, float* sums, int64_t apart) {
  const char* const first = reinterpret_cast<const char*>(rows);
  auto at = [first](int64_t p)
                __attribute__((always_inline)) { return first + p * kTileDepth * 2; };
  const TileSource<decltype(at)> left{at, row * 2, 0};
  const auto right = packed_tiles(strips, steps * kTileElements * 2);
  for (int64_t i = 0; i < count;) {
    auto take = [&]<int R>() {
      products.add_rows<R, T>(steps, left, i * left.apart, right, sums + i * kCells, kCells, apart,
                              false);
      i += R;
    };
    if (count - i >= 4) take.template operator()<4>();
    else if (count - i >= 2) take.template operator()<2>();
    else take.template operator()<1>();
  }
}

// Where the state (or what is projected) of all sequences is: rows of whole tiles.
struct Rows {
  int64_t size, steps, row;  // elements of a row, its tiles, from one row to the next
  explicit Rows(int64_t n)
      : size(n), steps(units(n, kTileDepth)), row(steps * kTileDepth + kTileDepth) {}
};

// Sums of kCells cells from `cell` on, (gate, 16 rows, kCells), for `count` rows at least.
template <class Products>
void sum_of_cells(const Products& products, int64_t count, const Rows& r, const uint16_t* rows,
                  const uint16_t* weight, int64_t gates, int64_t cell, int64_t cells, float* sums) {
  const int64_t strip = r.steps * kTileElements, blocks = units(cells, kTileSide);
  weight += cell / kTileSide * gates * strip;
  auto strips = [&]<int T>(int64_t apart) {
    sum_of_strips<T>(products, count, r.steps, rows, r.row, weight, sums, apart);
  };
  if (gates == 1) {
    if (blocks == 4) strips.template operator()<4>(kTileSide);
    else if (blocks == 3) strips.template operator()<3>(kTileSide);
    else if (blocks == 2) strips.template operator()<2>(kTileSide);
    else strips.template operator()<1>(kTileSide);
    return;
  }
  for (int64_t i = 0; i < blocks; ++i, weight += gates * strip, sums += kTileSide)
    if (gates == 4) strips.template operator()<4>(kPlane);
    else strips.template operator()<3>(kPlane);
}

template <class S>
void read_some(const S* from, int64_t n, float* to) {
  int64_t j = 0;
  for (; j + kFloats <= n; j += kFloats) store(to + j, read_halves(from + j));
  for (; j < n; ++j) to[j] = float(from[j]);
}
template <class S>
void write_some(const float* from, int64_t n, S* to) {
  int64_t j = 0;
  for (; j + kFloats <= n; j += kFloats) write_halves(to + j, load(from + j));
  for (; j < n; ++j) to[j] = S(from[j]);
}

class Memory {
 public:
  explicit Memory(int64_t bytes) : bytes_(size_t(bytes)), block_(host_allocate(bytes_)) {
    next_ = static_cast<char*>(block_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { host_free(block_, bytes_); }
  static int64_t room(int64_t bytes) { return units(bytes, 64) * 64; }
  template <class T>
  T* take(int64_t elements) {
    T* piece = reinterpret_cast<T*>(next_);
    next_ += room(elements * int64_t(sizeof(T)));
    return piece;
  }

 private:
  size_t bytes_;
  void* block_;
  char* next_;
};

template <class Products>
struct Steps {
  using S = typename Products::Element;
  const Products& products;
  const RecurrentLayer& l;
  const uint16_t *weight, *projection;
  int64_t begin;
  const int64_t n = l.hidden, gates = gates_of(l.cell), width = gates * n;
  const Rows state{l.state}, raw{l.hidden};
  float *in_gates, *in_shares;  // biases
  float* sums;
  S *now, *next, *unprojected;  // (rows, state), (rows, hidden)

  const float* cell_before(const Step& s, int64_t b) const {
    const float* const cx = static_cast<const float*>(l.cx) + begin * n;
    return b >= s.continued ? cx + b * n : static_cast<const float*>(l.cells) + (s.before + b) * n;
  }

  // Cells [j, j + count) of row b, whose sums are `sum`.
  FACULA_INLINE void row(const Step& s, int64_t b, int64_t j, int64_t count, float* sum) const {
    alignas(64) float hidden[kCells], before[kCells];
    float* const values = static_cast<float*>(l.gates) + (s.at + b) * l.gate_row + j;
    const bool gru = l.cell == Cell::Gru;
    for (int64_t g = 0; g < gates; ++g) {
      float* const value = values + g * n;
      float* const share = sum + g * kPlane;
      const float* const bias = in_gates + g * n + j;
      if (gru) {
        const float* const added = in_shares + g * n + j;
        for (int64_t i = 0; i < count; ++i) value[i] += bias[i], share[i] += added[i];
      } else {
        for (int64_t i = 0; i < count; ++i) value[i] += share[i] + bias[i];
      }
    }
    float* const cell = static_cast<float*>(l.cells) + (s.at + b) * n + j;
    if (l.cell == Cell::Lstm) {
      lstm_row(values, n, cell_before(s, b) + j, cell, hidden, count);
    } else if (gru) {
      read_some(now + b * state.row + j, count, before);
      gru_row(values, n, sum, kPlane, before, cell, hidden, count);
    } else {
      plain_row(l.cell, values, hidden, count);
    }
    if (l.w_hr) {
      __builtin_memcpy(static_cast<float*>(l.raw) + (s.at + b) * n + j, hidden,
                       size_t(count) * sizeof(float));
      write_some(hidden, count, unprojected + b * raw.row + j);
    } else {
      give(s, b, j, count, hidden);
    }
  }

  FACULA_INLINE void give(const Step& s, int64_t b, int64_t j, int64_t count,
                          const float* hidden) const {
    S* const to = next + b * state.row + j;
    write_some(hidden, count, to);
    __builtin_memcpy(static_cast<S*>(l.output) + (s.at + b) * l.state + j, to,
                     size_t(count) * sizeof(S));
  }

  void step(const Step& s) const {
    auto bits = [](const S* x) { return reinterpret_cast<const uint16_t*>(x); };
    for (int64_t j = 0; j < n; j += kCells)
      for (int64_t b = 0; b < s.rows; b += kTileSide) {
        const int64_t count = up_to(kTileSide, s.rows - b);
        sum_of_cells(products, count, state, bits(now + b * state.row), weight, gates, j,
                     up_to(kCells, n - j), sums);
        for (int64_t i = 0; i < count; ++i)
          row(s, b + i, j, up_to(kCells, n - j), sums + i * kCells);
      }
    if (!l.w_hr) return;
    for (int64_t j = 0; j < l.state; j += kCells)
      for (int64_t b = 0; b < s.rows; b += kTileSide) {
        const int64_t count = up_to(kTileSide, s.rows - b);
        sum_of_cells(products, count, raw, bits(unprojected + b * raw.row), projection, 1, j,
                     up_to(kCells, l.state - j), sums);
        for (int64_t i = 0; i < count; ++i)
          give(s, b + i, j, up_to(kCells, l.state - j), sums + i * kCells);
      }
  }
};

template <class Products>
void forward_as(const RecurrentLayer& l, const uint16_t* weight, const uint16_t* projection,
                int64_t begin, int64_t end) {
  using S = typename Products::Element;
  const Products products;
  Steps<Products> steps{products, l, weight, projection, begin};
  const int64_t batch = end - begin, rows = units(batch, kTileSide) * kTileSide,
                states = rows * steps.state.row, raws = l.w_hr ? rows * steps.raw.row : 0;
  const bool gru = l.cell == Cell::Gru;
  Memory memory(2 * Memory::room(steps.width * 4) + Memory::room(kMostGates * kPlane * 4) +
                2 * Memory::room(states * 2) + Memory::room(raws * 2));
  steps.in_gates = memory.take<float>(steps.width);
  steps.in_shares = memory.take<float>(steps.width);
  steps.sums = memory.take<float>(kMostGates * kPlane);
  steps.now = memory.take<S>(states), steps.next = memory.take<S>(states);
  steps.unprojected = memory.take<S>(raws);
  for (int64_t j = 0; j < steps.width; ++j) {
    const float input = l.b_ih ? float(static_cast<const S*>(l.b_ih)[j]) : 0.f,
                state = l.b_hh ? float(static_cast<const S*>(l.b_hh)[j]) : 0.f;
    steps.in_gates[j] = gru ? input : input + state;
    steps.in_shares[j] = state;
  }
  // Zeros behind the rows, since weights are packed with zeros that meet them.
  __builtin_memset(static_cast<void*>(steps.unprojected), 0, size_t(raws) * 2);
  for (S* to : {steps.now, steps.next}) {
    __builtin_memset(static_cast<void*>(to), 0, size_t(states) * 2);
    for (int64_t b = 0; b < batch; ++b)
      __builtin_memcpy(static_cast<void*>(to + b * steps.state.row),
                       static_cast<const S*>(l.hx) + (begin + b) * l.state, size_t(l.state) * 2);
  }
  for (int64_t i = 0; i < l.steps; ++i) {
    const Step s = step_of(l, i, begin, end);
    if (s.rows <= 0) continue;
    steps.step(s);
    S* const was = steps.now;
    steps.now = steps.next, steps.next = was;
  }
}

void forward(const RecurrentLayer& l, const uint16_t* weight, const uint16_t* projection,
             int64_t begin, int64_t end) {
  if (l.dtype == DType::BFloat16)
    forward_as<TileProducts<BFloat16>>(l, weight, projection, begin, end);
  else forward_as<TileProducts<Half>>(l, weight, projection, begin, end);
}

constexpr RecurrentPairLoops tile_loops = {pack, forward},
                             dot_loops = {pack, forward_as<DotProducts>};

}  // namespace

extern const RecurrentPairLoops *const recurrent_of_tiles, *const recurrent_of_dots;
const RecurrentPairLoops *const recurrent_of_tiles = &tile_loops, *const recurrent_of_dots =
                                                                      &dot_loops;
#else
extern const RecurrentPairLoops *const recurrent_of_tiles, *const recurrent_of_dots;
const RecurrentPairLoops *const recurrent_of_tiles = nullptr, *const recurrent_of_dots = nullptr;
#endif

}  // namespace facula::FACULA_ISA

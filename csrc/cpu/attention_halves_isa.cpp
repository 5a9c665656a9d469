// Attention of bfloat16 and half by products of pairs: blocks of 32 queries meet all keys, whose
// tiles are packed once for each head.
#include "cpu/attention_halves_backward.h"

namespace facula::FACULA_ISA {

#ifdef FACULA_HAS_TILES
namespace {

constexpr int64_t kQueries = 2 * kTileSide;
constexpr int64_t kKeys = 512;  // whose scores are computed at a time

// The tiles of one head, and room for a block of its queries.
class Room {
 public:
  explicit Room(const Attention& a)
      : key_steps(steps_over(a.keys)),
        width_steps(steps_over(a.width)),
        value_squares(steps_over(a.value_width)),
        memory_(2 * key_steps * width_steps * kTileElements +
                2 * value_squares * key_steps * kTileElements + 2 * width_steps * kTileElements +
                least_of(key_steps, kKeys / kTileDepth) * 6 * kTileElements +
                value_squares * kSquare * 2 + 128) {
    keys = memory_.take(2 * key_steps * width_steps * kTileElements);
    values = memory_.take(2 * value_squares * key_steps * kTileElements);
    queries = memory_.take(2 * width_steps * kTileElements);
    const int64_t block = least_of(key_steps, kKeys / kTileDepth);
    weights = memory_.take(block * 2 * kTileElements);
    scores = reinterpret_cast<float*>(memory_.take(block * 4 * kTileElements));
    sums = reinterpret_cast<float*>(memory_.take(value_squares * kSquare * 2));
  }
  const int64_t key_steps, width_steps, value_squares;  // squares of 32 of the width of values
  uint16_t *keys, *values, *queries, *weights;
  float *scores, *sums;

 private:
  Scratch<uint16_t> memory_;
};

// The weights of 16 queries, and what they have seen so far.
template <class S>
struct Strip {
  Floats top = lanes(kNever);  // of the scores in powers of two, rounded up
  Floats total = {};
  // The same of weights as halves, which values are multiplied by: what these lose by rounding is
  // lost on both sides, and a query that sees one key has its value exactly.
  Floats rounded = {};

  // Largest of n keys' scores, of which 16 are in a tile, and the other strip's 16 follow it.
  static FACULA_INLINE Floats largest(const float* scores, int64_t n) {
    __m512 most[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) most[i] = __m512(lanes(kNever));
    for (int64_t j = 0; j < n; j += kTileSide, scores += 2 * kTileSums) {
      if (n - j >= kTileSide) {
#pragma GCC unroll 16
        for (int i = 0; i < kTileSide; ++i)
          most[i % 4] = _mm512_max_ps(__m512(load(scores + i * kTileSide)), most[i % 4]);
      } else {
        for (int64_t i = 0; i < n - j; ++i)
          most[0] = _mm512_max_ps(__m512(load(scores + i * kTileSide)), most[0]);
      }
    }
    return Floats(_mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3])));
  }

  template <class F>
  static void for_each_row(float* scores, int64_t n, F f) {
    for (int64_t j = 0; j < n; ++j) {
      float* const s = scores + j / kTileSide * 2 * kTileSums + j % kTileSide * kTileSide;
      store(s, f(load(s)));
    }
  }

  FACULA_INLINE void weigh(const float* scores, int64_t n, const Weighing& weight, uint16_t* to) {
    Floats sum[2] = {}, sum_of_halves = {};
    const uint16_t* const end = to + steps_over(n) * kTileElements;
    auto put = [&](int64_t i, Floats even, Floats odd) __attribute__((always_inline)) {
      const __m512i pairs = as_pairs<S>(even, odd);
      sum[0] += even, sum[1] += odd;
      sum_of_halves += sum_of_pairs<S>(pairs);
      _mm512_storeu_si512(to + i * kTileSide, pairs);
    };
    for (int64_t j = 0; j < n; j += kTileSide, scores += 2 * kTileSums, to += kTileElements / 2) {
      if (n - j >= kTileSide) {
#pragma GCC unroll 8
        for (int i = 0; i < kTileSide; i += 2) {
          const Floats even = weight(load(scores + i * kTileSide)),
                       odd = weight(load(scores + (i + 1) * kTileSide));
          put(i, even, odd);
        }
        continue;
      }
      for (int64_t i = 0; i < kTileSide; i += 2) {
        Floats even = {}, odd = {};
        if (j + i < n) even = weight(load(scores + i * kTileSide));
        if (j + i + 1 < n) odd = weight(load(scores + (i + 1) * kTileSide));
        put(i, even, odd);
      }
    }
    for (; to < end; to += kTileDepth) _mm512_storeu_si512(to, _mm512_setzero_si512());
    total += sum[0] + sum[1];
    rounded += sum_of_halves;
  }

  // Makes weights of scores; the factor for what was summed up before.
  Floats add(float* scores, int64_t n, Floats factor, bool scaled, uint16_t* to) {
    const Floats before = top, above = math::ceil(largest(scores, n) * factor);
    top = Floats(_mm512_max_ps(__m512(above), __m512(before)));
    // A query that has seen no key yet keeps zeros.
    const __mmask16 seen = _mm512_cmp_ps_mask(__m512(top), __m512(lanes(kNever)), _CMP_NEQ_UQ);
    Floats shift = Floats(_mm512_maskz_mov_ps(seen, __m512(top)));
    const __mmask16 kept = _mm512_cmp_ps_mask(__m512(before), __m512(lanes(kNever)), _CMP_NEQ_UQ);
    const Floats scale = Floats(_mm512_maskz_scalef_ps(kept, __m512(lanes(1.0f)),
                                                       _mm512_sub_ps(__m512(before), __m512(top))));
    total *= scale, rounded *= scale;
    if (_mm512_cmp_ps_mask(__m512(math::abs(shift)), __m512(lanes(Weighing::kMostShift)),
                           _CMP_NLT_UQ)) {
      if (!scaled) for_each_row(scores, n, [&](Floats s) { return s * factor; });
      for_each_row(scores, n, [&](Floats s) { return s - shift; });
      shift = Floats{}, factor = lanes(1.0f);
    }
    weigh(scores, n, Weighing(factor, shift, kWeightExponent<S>), to);
    return scale;
  }

  void write_logsumexp(float* to, int64_t n) const {
    alignas(64) float largest[kTileSide], sum[kTileSide];
    store(largest, top), store(sum, total);
    for (int i = 0; i < kTileSide; ++i)
      sum[i] = sum[i] == 0 ? -kNever
                           : math::log(sum[i]) + (largest[i] - float(kWeightExponent<S>)) * kLn2;
    for (int64_t i = 0; i < n && i < kTileSide; ++i) to[i] = sum[i];
  }
};

template <class Products>
void forward(const Attention& a, int64_t begin, int64_t end) {
  using S = typename Products::Element;
  const Products products{};
  const Room room(a);
  const int64_t blocks = (a.queries - 1) / kQueries + 1;
  const int64_t key_strip = room.width_steps * kTileElements,
                value_strip = room.key_steps * kTileElements;
  const auto factor = float(a.scale * 1.4426950408889634);
  const bool scaled = scales_scores(a, factor);
  int64_t packed = -1;  // the head whose keys and values are in tiles
  for (; begin < end; ++begin) {
    const int64_t head = begin / blocks % a.heads, batch = begin / blocks / a.heads;
    const int64_t shared = head / (a.heads / a.key_heads);
    if (packed != batch * a.key_heads + shared) {
      packed = batch * a.key_heads + shared;
      pack_strips<false>(head_of(a.k, batch, shared), 1, a.k.row, a.width, a.keys, room.width_steps,
                         room.keys);
      pack_strips<false>(head_of(a.v, batch, shared), a.v.row, 1, a.keys, a.value_width,
                         room.key_steps, room.values);
    }
    const int64_t query = begin % blocks * kQueries;
    const int64_t m = least_of(kQueries, a.queries - query), strips = strips_over(m);
    pack_strips<true>(head_of(a.q, batch, head) + query * a.q.row, 1, a.q.row, a.width, m,
                      room.width_steps, room.queries);
    const MaskOfHead<S> mask(a, batch, head);
    Strip<S> strip[2];
    const int64_t keys = keys_seen_before(a, query + m);
    for (int64_t first = 0; first < keys; first += kKeys) {
      const int64_t n = least_of(kKeys, keys - first), steps = steps_over(n);
      for (int64_t j = 0; j < n; j += kTileDepth)
        products.sum(n - j, m, room.width_steps, room.keys + (first + j) / kTileSide * key_strip,
                     key_strip * 2, room.queries, key_strip * 2,
                     room.scores + j / kTileDepth * kSquare, false);
      for (int64_t s = 0; s < strips; ++s) {
        float* const scores = room.scores + s * kTileSums;
        const int64_t lane = query + s * kTileSide;
        for (int64_t j = scaled ? 0 : n; j < n; j += kTileSide)
          mask.add(scores + j * kTileDepth, lane, m - s * kTileSide, first + j,
                   least_of(kTileSide, n - j), lanes(factor));
        if (a.causal)
          for (int64_t j = lane > first ? (lane - first) / kTileSide * kTileSide : 0; j < n;
               j += kTileSide)
            hide_later_keys(scores + j * kTileDepth, lane, first + j, least_of(kTileSide, n - j));
        const Floats kept = strip[s].add(scores, n, lanes(scaled ? 1.0f : factor), scaled,
                                         room.weights + s * steps * kTileElements);
        if (first > 0 && _mm512_cmp_ps_mask(__m512(kept), __m512(lanes(1.0f)), _CMP_NEQ_UQ))
          for (int64_t j = 0; j < a.value_width; ++j) {
            float* const sum = room.sums + s * kTileSums + j / kTileSide * 2 * kTileSums +
                               j % kTileSide * kTileSide;
            store(sum, load(sum) * kept);
          }
      }
      for (int64_t j = 0; j < a.value_width; j += kTileDepth)
        products.sum(a.value_width - j, m, steps,
                     room.values + j / kTileSide * value_strip + first / kTileDepth * kTileElements,
                     value_strip * 2, room.weights, steps * kTileElements * 2,
                     room.sums + j / kTileDepth * kSquare, first > 0);
    }
    for (int64_t s = 0; s < strips; ++s) {
      const int64_t lane = query + s * kTileSide, rows = least_of(kTileSide, a.queries - lane);
      const __mmask16 seen =
          _mm512_cmp_ps_mask(__m512(strip[s].total), _mm512_setzero_ps(), _CMP_NEQ_UQ);
      // NaN where the total is, whatever rounding has made of it.
      const Floats divisor = strip[s].rounded + (strip[s].total - strip[s].total);
      const Floats inverse =
          Floats(_mm512_maskz_div_ps(seen, __m512(lanes(1.0f)), __m512(divisor)));
      write_turned<S>(room.sums + s * kTileSums, a.value_width, inverse, rows,
                      head_of(a.out, batch, head) + lane * a.out.row, a.out.row);
      strip[s].write_logsumexp(
          static_cast<float*>(a.logsumexp) + (batch * a.heads + head) * a.queries + lane, rows);
    }
  }
}

struct TileLoops : AttentionLoops {
  constexpr TileLoops() : AttentionLoops{} {
    AttentionLoops::forward[int(DType::BFloat16)] = FACULA_ISA::forward<TileProducts<BFloat16>>;
    AttentionLoops::forward[int(DType::Float16)] = FACULA_ISA::forward<TileProducts<Half>>;
    AttentionLoops::backward[int(DType::BFloat16)] = FACULA_ISA::backward<TileProducts<BFloat16>>;
    AttentionLoops::backward[int(DType::Float16)] = FACULA_ISA::backward<TileProducts<Half>>;
    query_block = kQueries;
  }
};
struct DotLoops : AttentionLoops {
  constexpr DotLoops() : AttentionLoops{} {
    AttentionLoops::forward[int(DType::BFloat16)] = FACULA_ISA::forward<DotProducts>;
    AttentionLoops::backward[int(DType::BFloat16)] = FACULA_ISA::backward<DotProducts>;
    query_block = kQueries;
  }
};
constexpr TileLoops tile_loops;
constexpr DotLoops dot_loops;

}  // namespace

extern const AttentionLoops *const attention_by_tiles, *const attention_by_dots;
const AttentionLoops *const attention_by_tiles = &tile_loops, *const attention_by_dots = &dot_loops;
#endif

}  // namespace facula::FACULA_ISA

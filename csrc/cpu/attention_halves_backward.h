// The derivative of attention of halves by products of pairs: blocks of 128 queries meet blocks of
// 128 keys, whose weights and slopes become tiles for three products.
#pragma once
#include "cpu/attention_halves.h"
#include "cpu/tile_products.h"

#ifdef FACULA_HAS_TILES
#include <cmath>

namespace facula::FACULA_ISA {
namespace {

constexpr int64_t kGradBlock = 128;  // queries, and keys
constexpr int64_t kGradSteps = kGradBlock / kTileDepth;

template <class S>
float dot_of_halves(const uint16_t* x, const uint16_t* y, int64_t n) {
  Floats sum = {};
  for (int64_t i = 0; i < n; i += kTileSide) {
    const __mmask16 mask = first_lanes(n - i);
    sum = math::madd(some_halves<S>(x + i, mask), some_halves<S>(y + i, mask), sum);
  }
  return _mm512_reduce_add_ps(__m512(sum));
}

// Strips of an even number, the last of which may have no lanes.
template <bool kPairs>
void pack_squares(const uint16_t* from, int64_t step, int64_t apart, int64_t depth, int64_t lanes,
                  int64_t steps, int64_t room_steps, uint16_t* to) {
  const int64_t strips = 2 * steps_over(lanes);
  for (int64_t i = 0; i < strips; ++i, to += room_steps * kTileElements) {
    const int64_t lane = i * kTileSide, count = least_of(kTileSide, lanes - lane);
    if (count > 0) pack_strips<kPairs>(from + lane * apart, step, apart, depth, count, steps, to);
    else __builtin_memset(to, 0, size_t(steps * kTileElements) * 2);
  }
}

// A head of keys with all that its derivative takes. Weights of halves have the factor of
// kWeightExponent, their slopes 2^exponent, so that neither leaves the range of a half.
template <class Products>
class HeadGradient {
  using S = typename Products::Element;

 public:
  explicit HeadGradient(const Attention& a)
      : a_(a),
        key_steps_(steps_over(a.keys)),
        width_steps_(steps_over(a.width)),
        value_steps_(steps_over(a.value_width)),
        memory_(elements()) {
    keys_ = tiles(2 * key_steps_ * width_steps_);
    values_ = tiles(2 * key_steps_ * value_steps_);
    turned_keys_ = tiles(2 * key_steps_ * width_steps_);
    queries_ = tiles(2 * kGradSteps * width_steps_);
    query_rows_ = tiles(2 * kGradSteps * width_steps_);
    grads_ = tiles(2 * kGradSteps * value_steps_);
    grad_rows_ = tiles(2 * kGradSteps * value_steps_);
    weights_ = tiles(2 * kGradSteps * kGradSteps);
    slopes_ = tiles(2 * kGradSteps * kGradSteps);
    slope_pairs_ = tiles(2 * kGradSteps * kGradSteps);
    grad_q_ = squares(kGradSteps * width_steps_);
    grad_k_ = squares(key_steps_ * width_steps_);
    grad_v_ = squares(key_steps_ * value_steps_);
    scores_ = squares(1);
    products_of_grads_ = squares(1);
  }

  void run(int64_t batch, int64_t shared) {
    const uint16_t *k = head_of(a_.k, batch, shared), *v = head_of(a_.v, batch, shared);
    pack_squares<false>(k, 1, a_.k.row, a_.width, a_.keys, width_steps_, width_steps_, keys_);
    pack_squares<false>(v, 1, a_.v.row, a_.value_width, a_.keys, value_steps_, value_steps_,
                        values_);
    pack_squares<false>(k, a_.k.row, 1, a_.keys, a_.width, key_steps_, key_steps_, turned_keys_);
    clear(grad_k_, key_steps_ * width_steps_);
    clear(grad_v_, key_steps_ * value_steps_);
    const int64_t group = a_.heads / a_.key_heads;
    exponent_ = 0;
    if (std::is_same_v<S, Half>) exponent_ = slope_exponent(batch, shared * group, group, v);
    for (int64_t head = shared * group; head < (shared + 1) * group; ++head)
      for (int64_t query = 0; query < a_.queries; query += kGradBlock)
        add_queries(batch, head, query, least_of(kGradBlock, a_.queries - query));
    write_rows(grad_k_, a_.width, slope_scale(), head_of(a_.grad_k, batch, shared), a_.grad_k.row);
    write_rows(grad_v_, a_.value_width, std::ldexp(1.0f, -kWeightExponent<S>),
               head_of(a_.grad_v, batch, shared), a_.grad_v.row);
  }

 private:
  int64_t elements() const {
    const int64_t at_keys = 2 * key_steps_, at_block = 2 * kGradSteps;
    const int64_t tiles = (2 * at_keys + 2 * at_block) * width_steps_ +
                          (at_keys + 2 * at_block) * value_steps_ + 3 * at_block * kGradSteps;
    const int64_t squares =
        (kGradSteps + key_steps_) * width_steps_ + key_steps_ * value_steps_ + 2;
    return tiles * kTileElements + squares * kSquare * 2 + 64;
  }
  uint16_t* tiles(int64_t n) { return memory_.take(n * kTileElements); }
  float* squares(int64_t n) { return reinterpret_cast<float*>(memory_.take(n * kSquare * 2)); }
  static void clear(float* to, int64_t n) { __builtin_memset(to, 0, size_t(n * kSquare) * 4); }
  float slope_scale() const { return float(a_.scale * std::ldexp(1.0, -exponent_)); }

  // |dP - mean| is at most twice the product of the longest rows of dO and V.
  int slope_exponent(int64_t batch, int64_t head, int64_t heads, const uint16_t* v) const {
    float most_v = 0, most_grad = 0;
    for (int64_t i = 0; i < a_.keys; ++i) {
      const uint16_t* const row = v + i * a_.v.row;
      most_v = std::fmax(most_v, dot_of_halves<S>(row, row, a_.value_width));
    }
    for (const int64_t end = head + heads; head < end; ++head)
      for (int64_t i = 0; i < a_.queries; ++i) {
        const uint16_t* const row = head_of(a_.grad_out, batch, head) + i * a_.grad_out.row;
        most_grad = std::fmax(most_grad, dot_of_halves<S>(row, row, a_.value_width));
      }
    const double bound = std::sqrt(double(most_v) * double(most_grad));
    return bound > 0 && std::isfinite(bound) ? 13 - std::ilogb(bound) : 0;
  }

  // 2^min(factor * score - shift, 0) with the factor of kWeightExponent.
  static FACULA_INLINE Floats weight(Floats score, Floats factor, Floats minus_shift) {
    constexpr float magic = math::kRoundMagic<float> + 127.0f + float(kWeightExponent<S>);
    const Floats t = Floats(_mm512_maskz_min_ps(kAllLanes, _mm512_setzero_ps(),
                                                __m512(math::madd(score, factor, minus_shift))));
    const Floats shifted = t + magic;
    return power_of_two(t - (shifted - magic), shifted, t, lanes(-125.0f));
  }

  void add_queries(int64_t batch, int64_t head, int64_t query, int64_t m) {
    const uint16_t* const q = head_of(a_.q, batch, head) + query * a_.q.row;
    const uint16_t* const grad = head_of(a_.grad_out, batch, head) + query * a_.grad_out.row;
    const int64_t steps = steps_over(m);
    pack_squares<true>(q, 1, a_.q.row, a_.width, m, width_steps_, width_steps_, queries_);
    pack_squares<true>(q, a_.q.row, 1, m, a_.width, steps, kGradSteps, query_rows_);
    pack_squares<true>(grad, 1, a_.grad_out.row, a_.value_width, m, value_steps_, value_steps_,
                       grads_);
    pack_squares<true>(grad, a_.grad_out.row, 1, m, a_.value_width, steps, kGradSteps, grad_rows_);
    const uint16_t* const out = head_of(a_.out, batch, head) + query * a_.out.row;
    const float* const logsumexp =
        static_cast<const float*>(a_.logsumexp) + (batch * a_.heads + head) * a_.queries + query;
    for (int64_t i = 0; i < kGradBlock; ++i) {
      minus_shift_[i] = i < m ? logsumexp[i] * -kLog2E : kNever;
      mean_slope_[i] =
          i < m ? dot_of_halves<S>(out + i * a_.out.row, grad + i * a_.grad_out.row, a_.value_width)
                : 0;
    }
    clear(grad_q_, kGradSteps * width_steps_);
    const MaskOfHead<S> mask(a_, batch, head);
    const int64_t keys = keys_seen_before(a_, query + m);
    for (int64_t key = 0; key < keys; key += kGradBlock) {
      const int64_t n = least_of(kGradBlock, keys - key);
      for (int64_t j = 0; j < n; j += kTileDepth)
        for (int64_t i = 0; i < m; i += kTileDepth) add_square(mask, query, i, m, key, j, n);
      add_products(steps, key, n);
    }
    for (int64_t i = 0; i < m; i += kTileSide)
      write_turned<S>(grad_q_ + i / kTileDepth * width_steps_ * kSquare +
                          i % kTileDepth / kTileSide * kTileSums,
                      a_.width, lanes(slope_scale()), m - i,
                      head_of(a_.grad_q, batch, head) + (query + i) * a_.grad_q.row, a_.grad_q.row);
  }

  // Weights and slopes of 32 keys from key + j for 32 queries from query + i.
  void add_square(const MaskOfHead<S>& mask, int64_t query, int64_t i, int64_t m, int64_t key,
                  int64_t j, int64_t n) {
    constexpr int64_t strip = kGradSteps * kTileElements;
    uint16_t* const weights = weights_ + j / kTileSide * strip + i / kTileDepth * kTileElements;
    uint16_t* const slopes = slopes_ + j / kTileSide * strip + i / kTileDepth * kTileElements;
    uint16_t* const pairs = slope_pairs_ + i / kTileSide * strip + j / kTileDepth * kTileElements;
    if (a_.causal && key + j >= query + i + kTileDepth) {
      for (uint16_t* to : {weights, slopes, pairs})
        for (int64_t s = 0; s < 2; ++s) __builtin_memset(to + s * strip, 0, kTileElements * 2);
      return;
    }
    const int64_t key_strip = width_steps_ * kTileElements,
                  value_strip = value_steps_ * kTileElements;
    products_.sum(kTileDepth, kTileDepth, width_steps_, keys_ + (key + j) / kTileSide * key_strip,
                  key_strip * 2, queries_ + i / kTileSide * key_strip, key_strip * 2, scores_,
                  false);
    products_.sum(kTileDepth, kTileDepth, value_steps_,
                  values_ + (key + j) / kTileSide * value_strip, value_strip * 2,
                  grads_ + i / kTileSide * value_strip, value_strip * 2, products_of_grads_, false);
    const auto factor = float(a_.scale * 1.4426950408889634);
    const bool scaled = scales_scores(a_, factor);
    for (int64_t r = 0; r < kTileDepth; r += kTileSide)
      for (int64_t c = 0; c < kTileDepth && i + c < m; c += kTileSide) {
        float* const tile = scores_ + (2 * r + c) * kTileSide;
        const int64_t rows = least_of(kTileSide, n - j - r);
        if (scaled && rows > 0)
          mask.add(tile, query + i + c, m - i - c, key + j + r, rows, lanes(factor));
        // All rows: what is behind the last key that these queries see may be keys, too.
        if (a_.causal) hide_later_keys(tile, query + i + c, key + j + r, kTileSide);
      }
    write_slopes(lanes(scaled ? 1.0f : factor), i, m, weights, slopes, pairs);
  }

  void write_slopes(Floats factor, int64_t i, int64_t m, uint16_t* weights, uint16_t* slopes,
                    uint16_t* pairs) const {
    constexpr int64_t strip = kGradSteps * kTileElements;
    const Floats scale = lanes(std::ldexp(1.0f, exponent_ - kWeightExponent<S>));
    Floats minus_shift[2], mean[2];
    __mmask16 real[2];  // a lane without a query has weight 0, also for keys that are not finite
    for (int c = 0; c < 2; ++c) {
      real[c] = first_lanes(m - i - c * kTileSide);
      minus_shift[c] = load(minus_shift_ + i + c * kTileSide);
      mean[c] = load(mean_slope_ + i + c * kTileSide);
    }
    for (int64_t r = 0; r < kTileDepth; r += 2) {
      Floats w[2][2], s[2][2];
#pragma GCC unroll 2
      for (int e = 0; e < 2; ++e)
#pragma GCC unroll 2
        for (int c = 0; c < 2; ++c) {
          const int64_t at =
              r / kTileSide * 2 * kTileSums + c * kTileSums + (r % kTileSide + e) * kTileSide;
          w[e][c] = weight(load(scores_ + at), factor, minus_shift[c]);
          s[e][c] = w[e][c] * (load(products_of_grads_ + at) - mean[c]);
          if (std::is_same_v<S, Half>) s[e][c] *= scale;
          w[e][c] = Floats(_mm512_maskz_mov_ps(real[c], __m512(w[e][c])));
          s[e][c] = Floats(_mm512_maskz_mov_ps(real[c], __m512(s[e][c])));
        }
      const int64_t row = r / kTileSide * strip + r % kTileSide * kTileDepth;
#pragma GCC unroll 2
      for (int e = 0; e < 2; ++e) {
        write_row<S>(weights + row + e * kTileDepth, w[e][0], w[e][1]);
        write_row<S>(slopes + row + e * kTileDepth, s[e][0], s[e][1]);
      }
#pragma GCC unroll 2
      for (int c = 0; c < 2; ++c)
        _mm512_storeu_si512(pairs + c * strip + r * kTileSide, as_pairs<S>(s[0][c], s[1][c]));
    }
  }

  // dV += P^T dO, dK += dS^T Q, dQ^T += K^T dS^T, for a block of keys.
  void add_products(int64_t steps, int64_t key, int64_t n) {
    constexpr int64_t strip = kGradSteps * kTileElements;
    auto add_rows = [&](const uint16_t* left, const uint16_t* right, int64_t squares, float* sums) {
      for (int64_t j = 0; j < n; j += kTileDepth)
        for (int64_t s = 0; s < squares; ++s)
          products_.sum(kTileDepth, kTileDepth, steps, left + j / kTileSide * strip, strip * 2,
                        right + 2 * s * strip, strip * 2,
                        sums + ((key + j) / kTileDepth * squares + s) * kSquare, true);
    };
    add_rows(weights_, grad_rows_, value_steps_, grad_v_);
    add_rows(slopes_, query_rows_, width_steps_, grad_k_);
    const int64_t turned = key_steps_ * kTileElements;
    for (int64_t i = 0; i < steps; ++i)
      for (int64_t s = 0; s < width_steps_; ++s)
        products_.sum(kTileDepth, kTileDepth, steps_over(n),
                      turned_keys_ + 2 * s * turned + key / kTileDepth * kTileElements, turned * 2,
                      slope_pairs_ + 2 * i * strip, strip * 2,
                      grad_q_ + (i * width_steps_ + s) * kSquare, true);
  }

  void write_rows(const float* sums, int64_t width, float scale, uint16_t* to,
                  int64_t apart) const {
    const int64_t squares = steps_over(width);
    for (int64_t i = 0; i < a_.keys; ++i)
      for (int64_t j = 0; j < width; j += kTileSide) {
        const float* from = sums + (i / kTileDepth * squares + j / kTileDepth) * kSquare +
                            i % kTileDepth / kTileSide * 2 * kTileSums +
                            j % kTileDepth / kTileSide * kTileSums + i % kTileSide * kTileSide;
        write_some_halves<S>(to + i * apart + j, first_lanes(width - j), load(from) * scale);
      }
  }

  const Attention& a_;
  const int64_t key_steps_, width_steps_, value_steps_;
  Scratch<uint16_t> memory_;
  // Left sides (keys, width), (keys, width of values), (width, keys), of the whole head; right
  // sides (width, queries), (queries, width) and so on, of a block; weights and slopes of a block.
  uint16_t *keys_, *values_, *turned_keys_, *queries_, *query_rows_, *grads_, *grad_rows_;
  uint16_t *weights_, *slopes_, *slope_pairs_;
  float *grad_q_, *grad_k_, *grad_v_, *scores_, *products_of_grads_;
  alignas(64) float minus_shift_[kGradBlock], mean_slope_[kGradBlock];
  int exponent_ = 0;  // of the slopes
  const Products products_{};
};

template <class Products>
void backward(const Attention& a, int64_t begin, int64_t end) {
  HeadGradient<Products> head(a);
  for (; begin < end; ++begin) head.run(begin / a.key_heads, begin % a.key_heads);
}

}  // namespace
}  // namespace facula::FACULA_ISA
#endif

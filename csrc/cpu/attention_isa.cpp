// Attention by blocks of queries and keys: products by register tiles, exponentials in between, and
// running maxima and sums (Milakov and Gimelshein, 2018; Dao et al., 2022). Built once per ISA.
#include "cpu/tile_products.h"

#include <limits>

#include "cpu/attention.h"
#include "cpu/exponential_sums.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

// At most. On AVX-512 four tiles of 12 rows, which suit more lengths than those of 14.
constexpr int64_t kQueryBlock = kLaneBytes == 64 ? 48 : 4 * kTileRows;
constexpr int64_t kKeyBlock = 256;

template <class A>
constexpr A kInfinity = std::numeric_limits<A>::infinity();

template <class S>
const S* rows_of(const HeadMatrix& m, int64_t batch, int64_t head) {
  return static_cast<const S*>(m.data) + batch * m.batch + head * m.head;
}
template <class S>
S* written_rows(const HeadMatrix& m, int64_t batch, int64_t head) {
  return static_cast<S*>(m.data) + batch * m.batch + head * m.head;
}

// Rows of scores are filled up to whole pairs of vectors with what no key has.
template <class A>
constexpr int64_t kPair = 2 * kLanes<A>;
template <class A>
int64_t filled(A* x, int64_t n) {
  const int64_t end = (n + kPair<A> - 1) / kPair<A> * kPair<A>;
  for (int64_t j = n; j < end; ++j) x[j] = -kInfinity<A>;
  return end;
}

template <class A>
A largest(const A* x, int64_t n) {
  Wide<A> a = -kInfinity<A> - Wide<A>{}, b = a;
  for (int64_t i = 0; i < n; i += kPair<A>) {
    a = LargestOfNumbers::combine(wide_at(x + i), a);
    b = LargestOfNumbers::combine(wide_at(x + i + kLanes<A>), b);
  }
  constexpr auto lanes = std::make_index_sequence<kLanes<A>>{};
  return fold_lanes<LargestOfNumbers, kLanes<A> / 2>(LargestOfNumbers::combine(a, b), lanes)[0];
}

// x = e^(x - top), and their sum.
template <class A>
A exponentials(A* x, int64_t n, A top) {
  constexpr int kWide = kPair<A>;
  A lane[kWide] = {};
  for (int64_t i = 0; i < n; i += kWide)
    for (int j = 0; j < kWide; ++j) {
      x[i + j] = math::exp_of_negative(x[i + j] - top);
      lane[j] += x[i + j];
    }
  return sum_of_lanes<A>(wide_at(lane) + wide_at(lane + kLanes<A>));
}

// Adds the mask of one query to its scores for keys [first, first + n).
template <class S, class A>
void apply_mask(const Attention& a, int64_t batch, int64_t head, int64_t query, int64_t first,
                int64_t n, A* scores) {
  const int64_t at =
      batch * a.mask_batch + head * a.mask_head + query * a.mask_row + first * a.mask_column;
  if (a.mask_is_bool) {
    const uint8_t* seen = static_cast<const uint8_t*>(a.mask) + at;
    if (a.mask_column == 1)
      for (int64_t j = 0; j < n; ++j) scores[j] = seen[j] ? scores[j] : -kInfinity<A>;
    else
      for (int64_t j = 0; j < n; ++j)
        scores[j] = seen[j * a.mask_column] ? scores[j] : -kInfinity<A>;
  } else {
    const S* added = static_cast<const S*>(a.mask) + at;
    if (a.mask_column == 1)
      for (int64_t j = 0; j < n; ++j) scores[j] += A(added[j]);
    else
      for (int64_t j = 0; j < n; ++j) scores[j] += A(added[j * a.mask_column]);
  }
}

// The scores of `m` queries, of which the first is `query`, for keys [first, first + n).
template <class S, class A>
void masked_scores(const Attention& a, int64_t batch, int64_t head, int64_t query, int64_t m,
                   const A* q, int64_t q_row, const A* key_panels, int64_t first, int64_t n,
                   A* scores) {
  times_panels(q, q_row, m, a.width, key_panels + first * a.width, n, scores, kKeyBlock);
  for (int64_t i = 0; i < m; ++i) {
    A* row = scores + i * kKeyBlock;
    if (a.mask) apply_mask<S>(a, batch, head, query + i, first, n, row);
    if (a.causal)
      for (int64_t j = query + i + 1 > first ? query + i + 1 - first : 0; j < n; ++j)
        row[j] = -kInfinity<A>;
  }
}

// Keys that any of the queries before `end` may see.
int64_t keys_before(const Attention& a, int64_t end) {
  return a.causal && end < a.keys ? end : a.keys;
}

// Sums of products of two rows' elements.
template <class S, class A>
A dot(const S* x, const A* y, int64_t n) {
  Vector<A> sum = {};
  int64_t i = 0;
  if constexpr (kLoadable<S>)
    for (; i + kLanes<A> <= n; i += kLanes<A>) sum += load_wide(x + i) * load(y + i);
  A total = sum_of_lanes<A>(sum);
  for (; i < n; ++i) total += A(x[i]) * y[i];
  return total;
}

// Rows where they lie when they are whole vectors of the type that is computed in; else a copy of
// them in `room`, whose rows are `row` elements apart.
template <class S, class A>
const A* whole_rows(const S* from, int64_t apart, int64_t rows, int64_t width, A* room,
                    int64_t& row) {
  if constexpr (std::is_same_v<S, A>) {
    if (width % kLanes<A> == 0) {
      row = apart;
      return from;
    }
  }
  copy_rows<S, A>(from, apart, rows, width, A(1), room, row);
  return room;
}

// The scores of one block become weights: running maximum and sum of a query, and the factor for
// what it has added up before.
template <class A>
A weigh(A* scores, int64_t keys, A& top, A& total) {
  const int64_t n = filled(scores, keys);
  const A above = largest(scores, n), before = top;
  if (above > before) top = above;
  // A query that has seen no key yet keeps zeros; a NaN score makes everything NaN.
  const A shift = top == -kInfinity<A> ? A(0) : top;
  const A added = exponentials(scores, n, shift);
  const A kept = before == -kInfinity<A> ? A(0) : math::exp_of_negative(before - shift);
  total = total * kept + added;
  return kept;
}

template <class S, class A>
void finish_query(const Attention& a, int64_t batch, int64_t head, int64_t query, A top, A total,
                  const A* sums) {
  S* out = written_rows<S>(a.out, batch, head) + query * a.out.row;
  const A inverse = total == 0 ? A(0) : 1 / total;
  for (int64_t j = 0; j < a.value_width; ++j) out[j] = S(sums[j] * inverse);
  static_cast<A*>(a.logsumexp)[(batch * a.heads + head) * a.queries + query] =
      total == 0 ? kInfinity<A> : top + math::log(total);
}

// sums += weights @ rows, four rows at a time.
template <class S, class A>
void add_rows(const A* weights, const S* rows, int64_t apart, int64_t n, int64_t width, A* sums) {
  for (int64_t i = 0; i < n; i += 4) {
    const int64_t count = n - i < 4 ? n - i : 4;
    const S* r[4];
    A w[4];
    for (int64_t p = 0; p < 4; ++p) {
      r[p] = rows + (i + (p < count ? p : 0)) * apart;
      w[p] = p < count ? weights[i + p] : A(0);
    }
    int64_t j = 0;
    if constexpr (kLoadable<S>)
      for (; count == 4 && j + kLanes<A> <= width; j += kLanes<A>)
        store(sums + j, load(sums + j) + w[0] * load_wide(r[0] + j) + w[1] * load_wide(r[1] + j) +
                            w[2] * load_wide(r[2] + j) + w[3] * load_wide(r[3] + j));
    for (; j < width; ++j)
      for (int64_t p = 0; p < count; ++p) sums[j] += w[p] * A(r[p][j]);
  }
}

// A few queries of one head, each by itself.
template <class S>
void forward_few(const Attention& a, int64_t batch, int64_t head, int64_t shared) {
  using A = Accumulator<S>;
  const int64_t q_room = padded<A>(a.width), v_room = padded<A>(a.value_width);
  using Memory = Scratch<A>;
  Memory memory(Memory::room(q_room) + Memory::room(v_room) + kKeyBlock + 64);
  A* const q = memory.take(q_room);
  A* const sums = memory.take(v_room);
  A* const scores = memory.take(kKeyBlock);
  const S *k = rows_of<S>(a.k, batch, shared), *v = rows_of<S>(a.v, batch, shared);
  for (int64_t query = 0; query < a.queries; ++query) {
    copy_rows<S, A>(rows_of<S>(a.q, batch, head) + query * a.q.row, a.q.row, 1, a.width, A(a.scale),
                    q, q_room);
    for (int64_t j = 0; j < v_room; ++j) sums[j] = 0;
    A top = -kInfinity<A>, total = 0;
    const int64_t keys = keys_before(a, query + 1);
    for (int64_t first = 0; first < keys; first += kKeyBlock) {
      const int64_t n = keys - first < kKeyBlock ? keys - first : kKeyBlock;
      for (int64_t j = 0; j < n; ++j) scores[j] = dot(k + (first + j) * a.k.row, q, a.width);
      if (a.mask) apply_mask<S>(a, batch, head, query, first, n, scores);
      const A kept = weigh(scores, n, top, total);
      if (kept != A(1))
        for (int64_t j = 0; j < v_room; ++j) sums[j] *= kept;
      add_rows(scores, v + first * a.v.row, a.v.row, n, a.value_width, sums);
    }
    finish_query<S>(a, batch, head, query, top, total, sums);
  }
}

template <class S>
void forward(const Attention& a, int64_t begin, int64_t end) {
  using A = Accumulator<S>;
  if (a.queries <= kFewQueries) {  // one block for each head
    const int64_t group = a.heads / a.key_heads;
    for (; begin < end; ++begin)
      forward_few<S>(a, begin / a.heads, begin % a.heads, begin % a.heads / group);
    return;
  }
  const int64_t blocks = (a.queries + kQueryBlock - 1) / kQueryBlock;
  const int64_t block = (a.queries + blocks - 1) / blocks;  // of equal size, or nearly
  const int64_t q_room = padded<A>(a.width), v_room = padded<A>(a.value_width);
  const int64_t panel_size = panels<A>(a.keys) * kTileColumns<A> * a.width;
  using Memory = Scratch<A>;
  Memory memory(Memory::room(panel_size) + Memory::room(a.keys * v_room) +
                Memory::room(kQueryBlock * (q_room + v_room + kKeyBlock)) + 64);
  A* const key_panels = memory.take(panel_size);
  A* const value_room = memory.take(a.keys * v_room);
  const A* values = nullptr;
  int64_t v_row = v_room;
  A* const q = memory.take(kQueryBlock * q_room);
  A* const sums = memory.take(kQueryBlock * v_room);
  A* const scores = memory.take(kQueryBlock * kKeyBlock);
  int64_t packed = -1;  // the head whose keys and values are in memory
  for (; begin < end; ++begin) {
    const int64_t head = begin / blocks % a.heads, batch = begin / blocks / a.heads;
    const int64_t shared = head / (a.heads / a.key_heads);
    const int64_t query = begin % blocks * block;
    const int64_t m = a.queries - query < block ? a.queries - query : block;
    if (packed != batch * a.key_heads + shared) {
      packed = batch * a.key_heads + shared;
      pack_transposed<S>(rows_of<S>(a.k, batch, shared), a.k.row, a.keys, a.width, key_panels);
      v_row = v_room;
      values = whole_rows<S, A>(rows_of<S>(a.v, batch, shared), a.v.row, a.keys, a.value_width,
                                value_room, v_row);
    }
    copy_rows<S, A>(rows_of<S>(a.q, batch, head) + query * a.q.row, a.q.row, m, a.width, A(a.scale),
                    q, q_room);
    A top[kQueryBlock], total[kQueryBlock];
    for (int64_t i = 0; i < m; ++i) top[i] = -kInfinity<A>, total[i] = 0;
    for (int64_t i = 0; i < m * v_room; ++i) sums[i] = 0;
    const int64_t keys = keys_before(a, query + m);
    for (int64_t first = 0; first < keys; first += kKeyBlock) {
      const int64_t n = keys - first < kKeyBlock ? keys - first : kKeyBlock;
      masked_scores<S>(a, batch, head, query, m, q, q_room, key_panels, first, n, scores);
      for (int64_t i = 0; i < m; ++i) {
        const A kept = weigh(scores + i * kKeyBlock, n, top[i], total[i]);
        if (kept != A(1))
          for (int64_t j = 0; j < v_room; ++j) sums[i * v_room + j] *= kept;
      }
      add_product(scores, kKeyBlock, 1, m, n, values + first * v_row, v_row, v_room, sums, v_room);
    }
    for (int64_t i = 0; i < m; ++i)
      finish_query<S>(a, batch, head, query + i, top[i], total[i], sums + i * v_room);
  }
}

template <class S, class A>
void store_rows(const A* from, int64_t room, int64_t rows, int64_t width, A scale, S* to,
                int64_t apart) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) to[i * apart + j] = S(scale * from[i * room + j]);
}

// P = e^(scores - logsumexp); dV = P^T dO; dP = dO V^T; dS = P (dP - rows of dO O); dQ = dS K; dK =
// dS^T Q. For all queries of the heads that share one head of keys.
template <class S>
void backward(const Attention& a, int64_t begin, int64_t end) {
  using A = Accumulator<S>;
  constexpr int64_t kRows = 2 * kQueryBlock;
  const int64_t q_room = padded<A>(a.width), v_room = padded<A>(a.value_width);
  const int64_t k_panels = panels<A>(a.keys) * kTileColumns<A> * a.width,
                v_panels = panels<A>(a.keys) * kTileColumns<A> * a.value_width;
  using Memory = Scratch<A>;
  Memory memory(Memory::room(k_panels) + Memory::room(v_panels) +
                2 * Memory::room(a.keys * q_room) + Memory::room(a.keys * v_room) +
                Memory::room(kRows * (2 * q_room + v_room + 2 * kKeyBlock)) + 64);
  A* const key_panels = memory.take(k_panels);
  A* const value_panels = memory.take(v_panels);
  A* const key_room = memory.take(a.keys * q_room);
  A* const grad_keys = memory.take(a.keys * q_room);
  A* const grad_values = memory.take(a.keys * v_room);
  A* const q = memory.take(kRows * q_room);
  A* const grad_q = memory.take(kRows * q_room);
  A* const grad_out = memory.take(kRows * v_room);
  A* const weights = memory.take(kRows * kKeyBlock);
  A* const slopes = memory.take(kRows * kKeyBlock);
  const int64_t group = a.heads / a.key_heads;
  for (; begin < end; ++begin) {
    const int64_t batch = begin / a.key_heads, shared = begin % a.key_heads;
    const S *k = rows_of<S>(a.k, batch, shared), *v = rows_of<S>(a.v, batch, shared);
    pack_transposed<S>(k, a.k.row, a.keys, a.width, key_panels);
    pack_transposed<S>(v, a.v.row, a.keys, a.value_width, value_panels);
    int64_t k_row = q_room;
    const A* const keys_of_head = whole_rows<S, A>(k, a.k.row, a.keys, a.width, key_room, k_row);
    for (int64_t i = 0; i < a.keys * q_room; ++i) grad_keys[i] = 0;
    for (int64_t i = 0; i < a.keys * v_room; ++i) grad_values[i] = 0;
    for (int64_t head = shared * group; head < (shared + 1) * group; ++head) {
      const A* lse = static_cast<const A*>(a.logsumexp) + (batch * a.heads + head) * a.queries;
      for (int64_t query = 0; query < a.queries; query += kRows) {
        const int64_t m = a.queries - query < kRows ? a.queries - query : kRows;
        copy_rows<S, A>(rows_of<S>(a.q, batch, head) + query * a.q.row, a.q.row, m, a.width,
                        A(a.scale), q, q_room);
        copy_rows<S, A>(rows_of<S>(a.grad_out, batch, head) + query * a.grad_out.row,
                        a.grad_out.row, m, a.value_width, A(1), grad_out, v_room);
        const S* out = rows_of<S>(a.out, batch, head) + query * a.out.row;
        A mean_slope[kRows];
        for (int64_t i = 0; i < m; ++i)
          mean_slope[i] = dot(out + i * a.out.row, grad_out + i * v_room, a.value_width);
        for (int64_t i = 0; i < m * q_room; ++i) grad_q[i] = 0;
        const int64_t keys = keys_before(a, query + m);
        for (int64_t first = 0; first < keys; first += kKeyBlock) {
          const int64_t n = keys - first < kKeyBlock ? keys - first : kKeyBlock;
          masked_scores<S>(a, batch, head, query, m, q, q_room, key_panels, first, n, weights);
          times_panels(grad_out, v_room, m, a.value_width, value_panels + first * a.value_width, n,
                       slopes, kKeyBlock);
          for (int64_t i = 0; i < m; ++i) {
            A* __restrict p = weights + i * kKeyBlock;
            A* __restrict s = slopes + i * kKeyBlock;
            const A shift = lse[query + i], mean = mean_slope[i];
            for (int64_t j = 0; j < n; ++j) {
              p[j] = math::exp_of_negative(p[j] - shift);
              s[j] = p[j] * (s[j] - mean);
            }
          }
          add_product(weights, 1, kKeyBlock, n, m, grad_out, v_room, v_room,
                      grad_values + first * v_room, v_room);
          add_product(slopes, 1, kKeyBlock, n, m, q, q_room, q_room, grad_keys + first * q_room,
                      q_room);
          add_product(slopes, kKeyBlock, 1, m, n, keys_of_head + first * k_row, k_row, q_room,
                      grad_q, q_room);
        }
        store_rows(grad_q, q_room, m, a.width, A(a.scale),
                   written_rows<S>(a.grad_q, batch, head) + query * a.grad_q.row, a.grad_q.row);
      }
    }
    store_rows(grad_keys, q_room, a.keys, a.width, A(1), written_rows<S>(a.grad_k, batch, shared),
               a.grad_k.row);
    store_rows(grad_values, v_room, a.keys, a.value_width, A(1),
               written_rows<S>(a.grad_v, batch, shared), a.grad_v.row);
  }
}

struct Loops : AttentionLoops {
  constexpr Loops() : AttentionLoops{} {
    fill<float>();
    fill<double>();
    fill<Half>();
    fill<BFloat16>();
    query_block = kQueryBlock;
  }
  template <class S>
  constexpr void fill() {
    AttentionLoops::forward[int(DTypeOf<S>::value)] = FACULA_ISA::forward<S>;
    AttentionLoops::backward[int(DTypeOf<S>::value)] = FACULA_ISA::backward<S>;
  }
};
constexpr Loops loops;

}  // namespace

extern const AttentionLoops* const attention_loops;
const AttentionLoops* const attention_loops = &loops;

}  // namespace facula::FACULA_ISA

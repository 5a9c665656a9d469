#include "cpu/reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/cast.h"
#include "cpu/iterate.h"
#include "cpu/line_loops.h"
#include "cpu/turn_block.h"

namespace facula {
namespace {

struct Axis {
  int64_t size, in, out;  // byte strides
};

// Sorted by input stride, neighbours merged.
void simplify(std::vector<Axis>& axes) {
  std::erase_if(axes, [](const Axis& a) { return a.size == 1; });
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.in < b.in; });
  size_t n = 0;
  for (const Axis& a : axes) {
    if (n && axes[n - 1].in * axes[n - 1].size == a.in &&
        axes[n - 1].out * axes[n - 1].size == a.out)
      axes[n - 1].size *= a.size;
    else axes[n++] = a;
  }
  axes.resize(n);
}

// Calls f(in offset, out offset) for the linear range [from, to) over the axes.
template <class F>
void walk(const Axis* axes, size_t n, int64_t from, int64_t to, F&& f) {
  int64_t at[kMaxDims];
  int64_t in = 0, out = 0, rest = from;
  for (size_t d = 0; d < n; ++d) {
    at[d] = rest % axes[d].size;
    rest /= axes[d].size;
    in += at[d] * axes[d].in;
    out += at[d] * axes[d].out;
  }
  for (int64_t i = from; i < to; ++i) {
    f(in, out);
    for (size_t d = 0; d < n; ++d) {
      in += axes[d].in;
      out += axes[d].out;
      if (++at[d] < axes[d].size) break;
      in -= at[d] * axes[d].in;
      out -= at[d] * axes[d].out;
      at[d] = 0;
    }
  }
}

int64_t count(const Axis* axes, size_t n) {
  int64_t c = 1;
  for (size_t i = 0; i < n; ++i) c *= axes[i].size;
  return c;
}

// Memory for intermediate results, from the pool of the tensors.
class Room {
 public:
  explicit Room(int64_t bytes)
      : bytes_(size_t(bytes)), data_(static_cast<char*>(host_allocate(bytes_))) {}
  ~Room() { host_free(data_, bytes_); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  char* at(int64_t offset) const { return data_ + offset; }

 private:
  size_t bytes_;
  char* data_;
};

constexpr int64_t kChunkBytes = 16384;  // converted at a time: half of the first-level cache

struct Reducer {
  const ReduceDef& def;
  ReduceLoop reduce;
  Loop fold;
  DType acc;
  CastLoop cast_in;   // null when the input is folded as it is
  ReduceLoop narrow;  // of dense elements that it converts itself, or null; so does narrow_fold
  Loop narrow_fold;
  int64_t in_item;
  CastLoop cast_out;
  ReduceMap map;
  int64_t item;
  std::vector<Axis> kept, reduced;
  const char* in;
  char* out;
  LineLoops::FoldRows fold_together;  // some rows at a time, or null

  bool reads_directly() const { return !cast_in && !map.loop; }
  // n values as they are folded, at `to`.
  void load(char* to, const char* p, int64_t stride, int64_t n) const {
    if (cast_in) {
      cast_in(to, item, p, stride, n);
      p = to;
      stride = item;
    }
    if (!map.loop) return;
    char* const pointers[] = {to, const_cast<char*>(p)};
    const int64_t strides[] = {item, stride};
    map.loop(pointers, strides, n, map.params);
  }

  void run(char* a, const char* p, int64_t stride, int64_t n, bool first) const {
    if (reads_directly()) return reduce(a, p, stride, n, first);
    if (narrow && stride == in_item && n) return narrow(a, p, stride, n, first);
    alignas(64) char buffer[kChunkBytes];
    if (n == 0) return reduce(a, p, stride, 0, first);
    const int64_t chunk = kChunkBytes / item;
    for (int64_t i = 0; i < n; i += chunk) {
      int64_t m = std::min(chunk, n - i);
      load(buffer, p + i * stride, stride, m);
      reduce(a, buffer, item, m, first && i == 0);
    }
  }

  // One output at a time; rows [from, to) of the reduced axes beyond the innermost one.
  void one(char* a, const char* p, int64_t from, int64_t to) const {
    if (reduced.empty()) return run(a, p, 0, 1, true);
    bool first = true;
    walk(reduced.data() + 1, reduced.size() - 1, from, to, [&](int64_t offset, int64_t) {
      run(a, p + offset, reduced[0].in, reduced[0].size, first);
      first = false;
    });
    if (first) run(a, p, 0, 0, true);
  }

  void combine(char* a, char* b) const { fold_into(a, b, item, 1, 1, 0); }  // a = a . b

  void inner() const {
    int64_t outputs = count(kept.data(), kept.size());
    int64_t rows = reduced.empty() ? 1 : count(reduced.data() + 1, reduced.size() - 1);
    int64_t length = reduced.empty() ? 1 : reduced[0].size;
    if (outputs < 8 && rows * length > 4 * kGrain) {
      walk(kept.data(), kept.size(), 0, outputs,
           [&](int64_t i, int64_t o) { split(in + i, out + o, rows, length); });
      return;
    }
    int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * length));
    if (has_short_rows()) return turned(outputs, grain);
    if (reduced.size() == 1 && kept.size() == 1 && reads_directly() && !cast_out) {
      // Plain rows: the loop folds straight into the result.
      const Axis k = kept[0], r = reduced[0];
      const bool together = fold_together && r.in == item && k.out == item &&
                            r.size >= LineLoops::kShortestRow && r.size <= kMostTogether;
      parallel_for(0, outputs, grain, [&](int64_t b, int64_t e) {
        const int64_t some = together ? kTurnedRows : e - b;
        for (; b < e; b += some) {
          const int64_t end = std::min(b + some, e);
          if (together && fold_together(out + b * item, in + b * k.in, k.in, end - b, r.size))
            continue;
          for (int64_t i = b; i < end; ++i)
            reduce(out + i * k.out, in + i * k.in, r.in, r.size, true);
        }
      });
      return;
    }
    parallel_for(0, outputs, grain, [&](int64_t b, int64_t e) {
      walk(kept.data(), kept.size(), b, e, [&](int64_t i, int64_t o) {
        alignas(16) char a[16];
        one(a, in + i, 0, rows);
        store(out + o, a);
      });
    });
  }

  static constexpr int64_t kMostTogether = 1024;  // long rows gain nothing by company
  // Turning pays for rows of up to kShorter elements; for more where items are small and nothing
  // else helps.
  static constexpr int64_t kTurnedRows = 64, kShorter = 32, kShort = 56;
  bool has_short_rows() const {
    return reduced.size() == 1 && kept.size() == 1 &&
           reduced[0].size <= (fold_together || item == 8 ? kShorter : kShort) &&
           reduced[0].in == in_item && kept[0].in == reduced[0].size * in_item &&
           kept[0].size >= kTurnedRows && (item == 4 || item == 8);
  }
  // Dense rows that are shorter than a few vectors: some at a time are turned, and folded as
  // columns are.
  void turned(int64_t outputs, int64_t grain) const {
    const int64_t length = reduced[0].size, step = kTurnedRows * item;
    const bool direct = !cast_out && kept[0].out == item;
    parallel_for(0, outputs, grain, [&](int64_t b, int64_t e) {
      constexpr int64_t kBytes = kTurnedRows * std::max(kShorter * 8, kShort * 4);
      alignas(64) char loaded[kBytes], columns[kBytes];
      for (int64_t i = b; i < e; i += kTurnedRows) {
        const int64_t m = std::min(kTurnedRows, e - i);
        const char* rows = in + i * kept[0].in;
        if (!reads_directly()) {
          load(loaded, rows, in_item, m * length);
          rows = loaded;
        }
        auto turn = [&]<class T>(T) {
          turn_matrix(reinterpret_cast<T*>(columns), kTurnedRows, reinterpret_cast<const T*>(rows),
                      length, length, m);
        };
        if (item == 4) turn(uint32_t{});
        else turn(uint64_t{});
        fold_into(columns, columns + step, item, m, length - 1, step);
        if (direct) std::memcpy(out + i * item, columns, size_t(m * item));
        else store_row(out + i * kept[0].out, kept[0].out, columns, m);
      }
    });
  }

  // One large reduction over the pool. The pieces do not depend on the number of threads, so
  // neither does the result.
  void split(const char* p, char* o, int64_t rows, int64_t length) const {
    int64_t piece_rows = 1, piece_length = length, pieces, per_row = 1;
    if (length >= 2 * kGrain) {
      piece_length = kGrain;
      per_row = (length + kGrain - 1) / kGrain;
      pieces = rows * per_row;
    } else {
      piece_rows = std::max<int64_t>(1, kGrain / std::max<int64_t>(length, 1));
      pieces = (rows + piece_rows - 1) / piece_rows;
    }
    const Room partial(pieces * 16);
    parallel_for(0, pieces, 1, [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        alignas(16) char a[16];
        if (per_row == 1 && piece_length == length) {
          one(a, p, k * piece_rows, std::min(rows, (k + 1) * piece_rows));
        } else {
          int64_t at = k % per_row * piece_length;
          walk(reduced.data() + 1, reduced.size() - 1, k / per_row, k / per_row + 1,
               [&](int64_t offset, int64_t) {
                 run(a, p + offset + at * reduced[0].in, reduced[0].in,
                     std::min(piece_length, length - at), true);
               });
        }
        std::memcpy(partial.at(k * 16), a, 16);
      }
    });
    for (int64_t step = 1; step < pieces; step *= 2)  // pairwise
      for (int64_t k = 0; k + step < pieces; k += 2 * step)
        combine(partial.at(k * 16), partial.at((k + step) * 16));
    store(o, partial.at(0));
  }

  void store(char* o, const char* a) const {
    if (cast_out) cast_out(o, 0, a, 0, 1);
    else std::memcpy(o, a, size_t(item));
  }

  // A row of neighbouring outputs at a time: rows of the input are folded into it. Long columns are
  // cut into pieces whose number depends on the shape alone, so the result does not depend on
  // threads.
  void outer() const {
    const Axis columns = kept[0];
    const int64_t outer_kept = count(kept.data() + 1, kept.size() - 1);
    const int64_t rows = count(reduced.data(), reduced.size());
    const int64_t block = std::min<int64_t>(columns.size, 2048);
    const int64_t blocks = (columns.size + block - 1) / block;
    const int64_t work = rows * block;
    // Their results are folded by one thread in the end.
    const int64_t most = work < 128 * kGrain ? 8 : 16;
    const int64_t pieces =
        outer_kept * blocks >= 16 ? 1 : std::clamp<int64_t>(work / kGrain, 1, std::min(most, rows));
    const int64_t piece_rows = (rows + pieces - 1) / pieces;
    const Room partial(pieces > 1 ? outer_kept * blocks * pieces * block * item : 0);
    parallel_for(0, outer_kept * blocks * pieces,
                 std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work / pieces)),
                 [&](int64_t b, int64_t e) {
                   const int64_t width = std::max(block, kWidened);
                   const Room memory(width * 16 * 3);
                   char* total = memory.at(0);
                   char* part = total + width * 16;
                   char* row = part + width * 16;
                   for (int64_t k = b; k < e; ++k) {
                     int64_t tile = k / pieces, piece = k % pieces, at = tile % blocks * block,
                             m = std::min(block, columns.size - at);
                     walk(kept.data() + 1, kept.size() - 1, tile / blocks, tile / blocks + 1,
                          [&](int64_t i, int64_t o) {
                            fold_rows(total, part, row, in + i + at * columns.in, columns.in, m,
                                      piece * piece_rows, std::min(rows, (piece + 1) * piece_rows));
                            if (pieces == 1)
                              store_row(out + o + at * columns.out, columns.out, total, m);
                            else std::memcpy(partial.at(k * block * item), total, size_t(m * item));
                          });
                   }
                 });
    if (pieces == 1) return;
    for (int64_t tile = 0; tile < outer_kept * blocks; ++tile) {
      int64_t at = tile % blocks * block, m = std::min(block, columns.size - at);
      char* first = partial.at(tile * pieces * block * item);
      fold_into(first, first + block * item, item, m, pieces - 1, block * item);
      walk(kept.data() + 1, kept.size() - 1, tile / blocks, tile / blocks + 1,
           [&](int64_t, int64_t o) {
             store_row(out + o + at * columns.out, columns.out, first, m);
           });
    }
  }

  // Rows [from, to) of the reduced axes into `total`. Of narrow dense rows, some at a time count
  // as one, whose parts are folded in the end.
  static constexpr int64_t kWidened = 128;
  void fold_rows(char* total, char* part, char* row, const char* base, int64_t column_stride,
                 int64_t m, int64_t from, int64_t to) const {
    const Axis fast = reduced[0];
    const int64_t together = kWidened / m;
    if (m > kWidened / 2 || reduced.size() != 1 || column_stride != in_item ||
        fast.in != m * in_item || to - from < 4 * together)
      return fold_rows(total, part, row, base, column_stride, m, from, to, reduced.data(),
                       reduced.size());
    base += from * fast.in;
    const int64_t many = (to - from) / together, rest = to - from - many * together;
    const Axis wide{many, fast.in * together, 0}, single{rest, fast.in, 0};
    fold_rows(total, part, row, base, column_stride, m * together, 0, many, &wide, 1);
    fold_into(total, total + m * item, item, m, together - 1, m * item);
    if (rest == 0) return;
    char* last = total + m * item;
    fold_rows(last, part, row, base + many * together * fast.in, column_stride, m, 0, rest, &single,
              1);
    fold_into(total, last, item, m, 1, 0);
  }

  // In two levels where there are many rows, which keeps float sums accurate.
  void fold_rows(char* total, char* part, char* row, const char* base, int64_t column_stride,
                 int64_t m, int64_t from, int64_t to, const Axis* over, size_t axes) const {
    constexpr int64_t kLevel = 128;
    clear(total, m);
    const bool few = to - from <= kLevel;
    if (few) part = total;
    else clear(part, m);
    int64_t pending = 0;
    const bool converts = narrow_fold && column_stride == in_item;
    auto add = [&](const char* source, int64_t stride, int64_t rows, int64_t row_stride) {
      fold_into(part, source, stride, m, rows, row_stride, converts ? narrow_fold : fold);
      if (!few && (pending += rows) >= kLevel) {
        fold_into(total, part, item, m, 1, 0);
        clear(part, m);
        pending = 0;
      }
    };
    const Axis fast = over[0];
    for (int64_t r = from; r < to;) {
      // A run of rows along the first reduced axis.
      int64_t in_run = std::min({fast.size - r % fast.size, to - r, kLevel});
      walk(over, axes, r, r + 1, [&](int64_t offset, int64_t) {
        if (reads_directly() || converts) return add(base + offset, column_stride, in_run, fast.in);
        for (int64_t j = 0; j < in_run; ++j) {
          load(row, base + offset + j * fast.in, column_stride, m);
          add(row, item, 1, 0);
        }
      });
      r += in_run;
    }
    if (!few) fold_into(total, part, item, m, 1, 0);
  }

  void fold_into(char* acc_row, const char* source, int64_t stride, int64_t m, int64_t rows,
                 int64_t row_stride) const {
    fold_into(acc_row, source, stride, m, rows, row_stride, fold);
  }
  void fold_into(char* acc_row, const char* source, int64_t stride, int64_t m, int64_t rows,
                 int64_t row_stride, Loop by) const {
    char* q[] = {acc_row, const_cast<char*>(source)};
    int64_t s[] = {item, stride, row_stride};
    by(q, s, m, &rows);
  }
  void store_row(char* to, int64_t stride, const char* from, int64_t m) const {
    (cast_out ? cast_out : cast_loop(acc, acc))(to, stride, from, item, m);
  }
  void clear(char* a, int64_t m) const {
    reduce(a, nullptr, 0, 0, true);
    if (m > 1) cast_loop(acc, acc)(a + item, item, a, 0, m - 1);
  }
};

}  // namespace

void cpu_reduce(const ReduceDef& def, const Tensor& in, uint64_t mask, bool keepdim, DType acc,
                const Tensor& out, ReduceMap map) {
  int isa = isa_level();
  // Sums of narrow elements need no pass of conversion.
  const DType wide = is_integral(in.dtype(), true) ? DType::Int64 : DType::Float32;
  auto combines = [&](const char* how) { return !map.loop && !std::strcmp(def.combine, how); };
  const bool sum = acc == wide && combines("a + b");
  ReduceLoop narrow = map.run ? map.run : sum ? line_loops().sum[int(in.dtype())] : nullptr;
  if (acc == DType::Bool && is_integral(in.dtype(), false) && in.item_size() == 1)
    narrow = combines("a | b")   ? line_loops().any_byte
             : combines("a & b") ? line_loops().every_byte
                                 : nullptr;
  Reducer r{def,
            def.loops[isa][int(acc)],
            def.folds[isa][int(acc)],
            acc,
            in.dtype() == acc ? nullptr : cast_loop(in.dtype(), acc),
            narrow,
            map.fold ? map.fold
            : sum    ? line_loops().fold_sum[int(in.dtype())]
                     : nullptr,
            int64_t(in.item_size()),
            out.dtype() == acc ? nullptr : cast_loop(acc, out.dtype()),
            map,
            int64_t(item_size(acc)),
            {},
            {},
            in.data(),
            out.data(),
            nullptr};
  struct Way {
    const char* combine;
    const LineLoops::FoldRows* rows;
  };
  const LineLoops& loops = line_loops();
  for (const Way& way :
       {Way{"a + b", loops.sum_rows}, Way{"a * b", loops.product_rows},
        Way{"maximum(a, b)", loops.largest_rows}, Way{"minimum(a, b)", loops.smallest_rows}}) {
    if (in.dtype() != acc || !combines(way.combine)) continue;
    r.fold_together = way.rows[int(acc)];
    break;
  }
  int64_t in_item = r.in_item, out_item = int64_t(out.item_size()), o = 0;
  for (int64_t d = 0; d < in.dim(); ++d) {
    bool gone = mask >> d & 1;
    if (gone) r.reduced.push_back({in.sizes()[d], in.strides()[d] * in_item, 0});
    else r.kept.push_back({in.sizes()[d], in.strides()[d] * in_item, out.strides()[o] * out_item});
    if (!gone || keepdim) ++o;
  }
  for (const Axis& a : r.reduced)
    if (a.size == 0) {  // nothing to fold: every output is the identity
      r.reduced = {{0, 0, 0}};
      break;
    }
  simplify(r.kept);
  simplify(r.reduced);
  bool by_rows = !r.kept.empty() && !r.reduced.empty() && r.kept[0].in < r.reduced[0].in &&
                 r.kept[0].size >= 4;
  // Elements that are apart are brought together first: dense ones are folded by vectors.
  constexpr int64_t kWorthGathering = 32;
  if (!by_rows && !r.cast_in && !r.reduced.empty() && r.reduced[0].size >= kWorthGathering &&
      r.reduced[0].in != in_item && r.reduced[0].in != 0)
    r.cast_in = cast_loop(acc, acc);
  if (by_rows) r.outer();
  else r.inner();
}

}  // namespace facula

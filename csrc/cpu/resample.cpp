#include "cpu/resample.h"

#include <algorithm>

#include "cpu/cast.h"
#include "cpu/iterate.h"

namespace facula {

namespace baseline {
extern const ResampleLoops resample_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const ResampleLoops resample_loops;
}
namespace v4 {
extern const ResampleLoops resample_loops;
}
#endif

static const ResampleLoops& loops() {
#ifdef FACULA_X86
  static const ResampleLoops* const table[] = {&baseline::resample_loops, &v3::resample_loops,
                                               &v4::resample_loops};
  return *table[isa_level()];
#else
  return baseline::resample_loops;
#endif
}

ResampleTable ResampleTable::identity(int64_t n) {
  ResampleTable t(n, n, 1);
  for (int64_t i = 0; i < n; ++i) t.start[size_t(i)] = i;
  std::fill(t.count.begin(), t.count.end(), 1);
  std::fill(t.weight.begin(), t.weight.end(), 1.0);
  return t;
}

bool ResampleTable::is_identity() const {
  if (in != out || width != 1) return false;
  for (int64_t i = 0; i < out; ++i)
    if (start[size_t(i)] != i || count[size_t(i)] != 1 || weight[size_t(i)] != 1.0) return false;
  return true;
}

ResampleTable ResampleTable::transposed() const {
  // Element i is read by results [first, last).
  std::vector<int64_t> first(size_t(in), out), last(size_t(in), 0);
  for (int64_t t = 0; t < out; ++t)
    for (int64_t k = 0; k < count[size_t(t)]; ++k) {
      const size_t i = size_t(start[size_t(t)] + k);
      first[i] = std::min(first[i], t);
      last[i] = std::max(last[i], t + 1);
    }
  int64_t most = 1;
  for (size_t i = 0; i < first.size(); ++i) most = std::max(most, last[i] - first[i]);
  ResampleTable r(out, in, most);
  int64_t before = 0;
  for (int64_t i = 0; i < in; ++i) {
    const size_t k = size_t(i);
    r.count[k] = std::max<int64_t>(0, last[k] - first[k]);
    // One that nobody reads starts where the one before it did.
    r.start[k] = before = r.count[k] ? first[k] : before;
    for (int64_t j = 0; j < r.count[k]; ++j) {
      const size_t t = size_t(first[k] + j);
      const int64_t at = i - start[t];
      r.weight[size_t(i * most + j)] =
          at >= 0 && at < count[t] ? weight[t * size_t(width) + size_t(at)] : 0.0;
    }
  }
  return r;
}

void resample(DType dtype, int64_t outer, int64_t inner, const ResampleTable tables[3],
              const void* x, void* y) {
  Resample r{dtype, outer, inner, {}};
  std::vector<float> narrow[3];
  for (int i = 0; i < 3; ++i) {
    const ResampleTable& t = tables[i];
    narrow[i].assign(t.weight.begin(), t.weight.end());
    const void* weight = dtype == DType::Float64 ? static_cast<const void*>(t.weight.data())
                                                 : static_cast<const void*>(narrow[i].data());
    // The longest part without shorter sums, which are at the edges where there are any.
    int64_t begin = 0, end = 0;
    for (int64_t k = 0, from = 0; k <= t.out; ++k) {
      if (k < t.out && t.count[size_t(k)] == t.width) continue;
      if (k - from > end - begin) begin = from, end = k;
      from = k + 1;
    }
    r.axis[i] = {t.in,  t.out, t.width, t.start.data(), t.count.data(), weight, t.is_identity(),
                 begin, end};
  }
  const ResampleAxis &d = r.axis[0], &h = r.axis[1], &w = r.axis[2];
  const int64_t planes = outer * d.out;
  const int64_t work = std::max<int64_t>(1, (h.in * w.in + h.out * w.out) * inner);
  // Planes are cut only where there are too few of them to share.
  int64_t pieces = 1;
  if (planes < 2 * num_threads() && work > kGrain)
    pieces =
        std::min<int64_t>(h.out, (2 * num_threads() + planes - 1) / std::max<int64_t>(1, planes));
  const int64_t piece = (h.out + pieces - 1) / std::max<int64_t>(1, pieces);
  parallel_for(
      0, planes * pieces, std::max<int64_t>(1, kGrain * pieces / work), [&](int64_t b, int64_t e) {
        std::vector<double> scratch(size_t(loops().scratch(r) + 7) / 8);
        for (; b < e; ++b) {
          const int64_t from = std::min(b % pieces * piece, h.out);
          loops().rows(r, x, y, b / pieces, from, std::min(from + piece, h.out), scratch.data());
        }
      });
}

void mean_of_planes(DType dtype, int64_t outer, int64_t pixels, int64_t inner, const void* x,
                    void* y) {
  parallel_for(0, outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, pixels * inner)),
               [&](int64_t b, int64_t e) { loops().means(dtype, pixels, inner, x, y, b, e); });
}

}  // namespace facula

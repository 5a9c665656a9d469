#include "cpu/recurrent.h"

#include <algorithm>

#include "core/host_allocator.h"
#include "core/thread_pool.h"
#include "cpu/amx.h"
#include "cpu/cast.h"
#include "cpu/gemm_kernels.h"

namespace facula {

namespace baseline {
extern const RecurrentLoops recurrent_loops;
extern const RecurrentPairLoops *const recurrent_of_tiles, *const recurrent_of_dots;
}  // namespace baseline
#ifdef FACULA_X86
namespace v3 {
extern const RecurrentLoops recurrent_loops;
}
namespace v4 {
extern const RecurrentLoops recurrent_loops;
extern const RecurrentPairLoops *const recurrent_of_tiles, *const recurrent_of_dots;
}  // namespace v4
#endif

static const RecurrentLoops& loops() {
#ifdef FACULA_X86
  static const RecurrentLoops* const tables[] = {&baseline::recurrent_loops, &v3::recurrent_loops,
                                                 &v4::recurrent_loops};
  return *tables[isa_level()];
#else
  return baseline::recurrent_loops;
#endif
}

static const RecurrentPairLoops& pair_loops(DType dtype) {
#ifdef FACULA_X86
  return *(amx_available(dtype) ? v4::recurrent_of_tiles : v4::recurrent_of_dots);
#else
  return (void)dtype, *baseline::recurrent_of_tiles;
#endif
}

// One part of the batch for each thread: it goes through all steps without waiting for others.
template <class F>
static void for_each_part(const RecurrentLayer& l, F run) {
  constexpr double kPartWork = 1 << 18;
  int64_t batch = 0;
  double work = 0;
  for (int64_t t = 0; t < l.steps; ++t) {
    batch = std::max(batch, l.batch_sizes[t]);
    work += double(l.batch_sizes[t]);
  }
  work *= double(gates_of(l.cell) * l.hidden) * double(l.state);
  const int64_t parts = std::min<int64_t>(num_threads(), 1 + int64_t(work / kPartWork));
  parallel_for(0, batch, std::max<int64_t>((batch + parts - 1) / parts, 1),
               [&](int64_t b, int64_t e) { run(l, b, e); });
}

namespace {

// A weight as tiles: its rows are `count` for each of the gates.
class PackedWeight {
 public:
  PackedWeight(DType dtype, const void* weight, int64_t gates, int64_t count, int64_t depth) {
    if (!weight) return;
    const int64_t blocks = (count + 15) / 16, of_block = gates * ((depth + 31) / 32) * 512;
    bytes_ = size_t(blocks * of_block) * sizeof(uint16_t);
    data_ = static_cast<uint16_t*>(host_allocate(bytes_));
    parallel_for(0, blocks, std::max<int64_t>(1, 32768 / of_block), [&](int64_t b, int64_t e) {
      pair_loops(dtype).pack(weight, gates, count, depth, b, e, data_);
    });
  }
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;
  ~PackedWeight() { host_free(data_, bytes_); }
  const uint16_t* data() const { return data_; }

 private:
  size_t bytes_ = 0;
  uint16_t* data_ = nullptr;
};

}  // namespace

bool recurrent_by_pairs(DType dtype) {
  return amx_available(dtype) || fast_dots_available(dtype);
}

void recurrent_forward(const RecurrentLayer& l) {
  if (l.dtype == DType::Float32 || l.dtype == DType::Float64)
    return for_each_part(l, loops().forward[l.dtype == DType::Float64]);
  const PackedWeight weight(l.dtype, l.w_hh, gates_of(l.cell), l.hidden, l.state);
  const PackedWeight projection(l.dtype, l.w_hr, 1, l.state, l.hidden);
  for_each_part(l, [&](const RecurrentLayer& layer, int64_t begin, int64_t end) {
    pair_loops(l.dtype).forward(layer, weight.data(), projection.data(), begin, end);
  });
}
void recurrent_backward(const RecurrentLayer& l) {
  for_each_part(l, loops().backward[l.dtype == DType::Float64]);
}

}  // namespace facula

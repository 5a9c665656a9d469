#include "cpu/attention.h"

#include <algorithm>

#include "core/thread_pool.h"
#include "cpu/amx.h"
#include "cpu/cast.h"
#include "cpu/gemm_kernels.h"

namespace facula {

namespace baseline {
extern const AttentionLoops* const attention_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const AttentionLoops* const attention_loops;
}
namespace v4 {
extern const AttentionLoops* const attention_loops;
extern const AttentionLoops *const attention_by_tiles, *const attention_by_dots;
}  // namespace v4
#endif

static const AttentionLoops& loops() {
#ifdef FACULA_X86
  static const AttentionLoops* const tables[] = {baseline::attention_loops, v3::attention_loops,
                                                 v4::attention_loops};
  return *tables[isa_level()];
#else
  return *baseline::attention_loops;
#endif
}

// Halves by products of pairs, where the processor has them, and packing does not cost more.
static const AttentionLoops& loops_for(const Attention& a) {
#ifdef FACULA_X86
  if (a.queries > kFewQueries && isa_level() == 2) {
    if (amx_available(a.dtype)) return *v4::attention_by_tiles;
    if (fast_dots_available(a.dtype)) return *v4::attention_by_dots;
  }
#endif
  return loops();
}

// Multiplications below which waking a thread costs more than it saves.
constexpr double kPartWork = 1 << 18;

static int64_t grain_of(double work) {
  return work >= kPartWork ? 1 : int64_t(kPartWork / (work + 1)) + 1;
}

void attention_forward(const Attention& a) {
  const AttentionLoops& loops = loops_for(a);
  const int64_t blocks = (a.queries + loops.query_block - 1) / loops.query_block;
  const double rows = double(a.queries) / double(blocks);
  const auto run = loops.forward[int(a.dtype)];
  // A part repeats the packing of keys that its first block needs: of many heads none is cut.
  const int64_t heads = a.batch * a.heads, whole = heads >= 4 * num_threads() ? blocks : 1;
  const double work = rows * double(a.keys) * double(a.width + a.value_width);
  parallel_for(0, heads * blocks, std::max(grain_of(work), std::max(whole, blocks / 4)),
               [&](int64_t b, int64_t e) { run(a, b, e); });
}

void attention_backward(const Attention& a) {
  const double work = double(a.queries) * double(a.keys) * double(a.width + a.value_width) *
                      double(a.heads) / double(a.key_heads);
  const auto run = loops_for(a).backward[int(a.dtype)];
  parallel_for(0, a.batch * a.key_heads, grain_of(work),
               [&](int64_t b, int64_t e) { run(a, b, e); });
}

}  // namespace facula

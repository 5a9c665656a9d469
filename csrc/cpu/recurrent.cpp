#include "cpu/recurrent.h"

#include <algorithm>

#include "core/thread_pool.h"
#include "cpu/cast.h"

namespace facula {

namespace baseline {
extern const RecurrentLoops recurrent_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const RecurrentLoops recurrent_loops;
}
namespace v4 {
extern const RecurrentLoops recurrent_loops;
}
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

void recurrent_forward(const RecurrentLayer& l) {
  for_each_part(l, loops().forward[l.dtype == DType::Float64]);
}
void recurrent_backward(const RecurrentLayer& l) {
  for_each_part(l, loops().backward[l.dtype == DType::Float64]);
}

}  // namespace facula

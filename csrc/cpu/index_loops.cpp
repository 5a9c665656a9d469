#include "cpu/index_loops.h"

#include "cpu/cast.h"

namespace facula {

namespace baseline {
extern const IndexLoops index_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const IndexLoops index_loops;
}
namespace v4 {
extern const IndexLoops index_loops;
}
#endif

const IndexLoops& index_loops() {
#ifdef FACULA_X86
  static const IndexLoops* const tables[] = {&baseline::index_loops, &v3::index_loops,
                                             &v4::index_loops};
  return *tables[isa_level()];
#else
  return baseline::index_loops;
#endif
}

}  // namespace facula

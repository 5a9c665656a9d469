#include "cpu/line_loops.h"

#include "cpu/cast.h"

namespace facula {

namespace baseline {
extern const LineLoops line_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const LineLoops line_loops;
}
namespace v4 {
extern const LineLoops line_loops;
}
#endif

const LineLoops& line_loops() {
#ifdef FACULA_X86
  static const LineLoops* const tables[] = {&baseline::line_loops, &v3::line_loops,
                                            &v4::line_loops};
  return *tables[isa_level()];
#else
  return baseline::line_loops;
#endif
}

}  // namespace facula

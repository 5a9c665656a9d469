#include "cpu/look_up.h"

#include "cpu/cast.h"

namespace facula {

namespace baseline {
extern const LookUpLoops look_up_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const LookUpLoops look_up_loops;
}
namespace v4 {
extern const LookUpLoops look_up_loops;
}
#endif

const LookUpLoops& look_up_loops() {
#ifdef FACULA_X86
  static const LookUpLoops* const tables[] = {&baseline::look_up_loops, &v3::look_up_loops,
                                              &v4::look_up_loops};
  return *tables[isa_level()];
#else
  return baseline::look_up_loops;
#endif
}

}  // namespace facula

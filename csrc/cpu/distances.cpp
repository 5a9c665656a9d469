#include "cpu/distances.h"

#include "cpu/cast.h"
#include "cpu/iterate.h"

namespace facula {

namespace baseline {
extern const DistanceLoops distance_loops;
}
#ifdef FACULA_X86
namespace v3 {
extern const DistanceLoops distance_loops;
}
namespace v4 {
extern const DistanceLoops distance_loops;
}
#endif

const DistanceLoops& distance_loops() {
#ifdef FACULA_X86
  static const DistanceLoops* const tables[] = {&baseline::distance_loops, &v3::distance_loops,
                                                &v4::distance_loops};
  return *tables[isa_level()];
#else
  return baseline::distance_loops;
#endif
}

}  // namespace facula
